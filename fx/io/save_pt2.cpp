#include "fx/io/save_pt2.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fx/base/error.h"
#include "fx/capture/graph_module_tracing.h"
#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/atomic_file.h"
#include "fx/io/graph_exporter.h"
#include "fx/io/schema_writer.h"
#include "fx/io/shown.h"
#include "fx/io/weights.h"
#include "fx/io/zip_writer.h"
#include "fx/passes/isolation.h"

namespace fx {
namespace io {
namespace {

/// torch names the folder after the file; a fixed name makes the bytes depend on the module alone.
constexpr std::string_view kRoot = "archive/";
/// Of torch's zip container; what its writer sets for these archives.
constexpr std::string_view kContainerVersion = "6\n";

[[noreturn]] void refuse(const std::string& what) {
  throw ImportError(ErrorCode::kNotExportable, what);
}

/// One record of raw elements and the tensors that lie in it.
struct Record {
  std::string name;
  at::Tensor owner;  // keeps the bytes
  std::span<const std::byte> bytes;
};

schema::SymInt known(std::int64_t value) { return {value, nullptr}; }

void check_tensors(const GraphModule& module, Problems& problems) {
  auto check = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const std::string where = "tensor " + shown(name);
    if (tensor.layout() != at::kStrided || tensor.is_quantized())
      problems.add("sparse and quantized tensors cannot be written, dense ones are wanted", where);
    else if (!tensor.device().is_cpu())
      problems.add("tensors on device " + tensor.device().str() + " have to be moved to the CPU",
                   where);
    else if (!tensor.has_storage())
      problems.add("tensors without memory of their own cannot be written", where);
  };
  for (const auto& item : module.named_parameters()) check(item.key(), item.value());
  for (const auto& item : module.named_buffers()) check(item.key(), item.value());
  for (const auto& [name, tensor] : module.constants()) check(name, tensor);
}

/// Tensors of one memory stay so in the file if they have one type and one folder. Of others, a
/// write to one would no longer be seen in the other.
void check_sharing(const std::vector<ExportedTensor>& weights,
                   const std::vector<ExportedTensor>& constants) {
  std::map<const void*, std::pair<std::pair<bool, at::ScalarType>, std::string>> seen;
  for (bool is_weight : {true, false})
    for (const ExportedTensor& item : is_weight ? weights : constants) {
      if (item.tensor.storage().nbytes() == 0) continue;
      const std::pair place(is_weight, item.tensor.scalar_type());
      const auto [it, added] = seen.try_emplace(item.tensor.storage().data(), place, item.name);
      if (!added && it->second.first != place)
        refuse("the program cannot be exported: the tensors " + shown(it->second.second) + " and " +
               shown(item.name) +
               " share memory, one of them as another type or outside of the state, and the "
               "graph changes its state");
    }
}

/// Puts tensors into records, one for each memory and type that they share.
class Payload {
 public:
  explicit Payload(std::string prefix) : prefix_(std::move(prefix)) {}

  void add(const std::vector<ExportedTensor>& tensors) {
    for (const ExportedTensor& item : tensors) group(item);
    for (Group& group : groups_) write(group);
    // In the order of the tensors, which is that of the state dict.
    for (const ExportedTensor& item : tensors) config.emplace_back(item.name, entries_[item.name]);
  }

  schema::PayloadConfig config;
  std::vector<Record> records;

 private:
  struct Member {
    std::string name;
    at::Tensor tensor;
    bool is_param;
  };
  struct Group {
    std::vector<Member> members;
    std::int64_t first = 0, last = 0;  // elements of the storage that are needed
  };

  static std::int64_t end_of(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return tensor.storage_offset();
    std::int64_t last = tensor.storage_offset();
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    return last + 1;
  }

  void group(const ExportedTensor& item) {
    // Lazily conjugated or negated tensors have other bytes than values.
    const at::Tensor tensor = item.tensor.detach().resolve_conj().resolve_neg();
    const c10::Storage& storage = tensor.storage();
    const void* memory = storage.nbytes() > 0 ? storage.data() : tensor.unsafeGetTensorImpl();
    const std::int64_t first = tensor.storage_offset(), last = end_of(tensor);
    auto [index, added] =
        index_.try_emplace({memory, static_cast<int>(tensor.scalar_type())}, groups_.size());
    if (added) groups_.push_back({{}, first, last});
    Group& group = groups_[index->second];
    group.first = std::min(group.first, first);
    group.last = std::max(group.last, last);
    group.members.push_back({item.name, tensor, item.is_param});
    if (item.tensor.requires_grad()) wants_gradient_.insert(item.name);
  }

  void write(const Group& group) {
    const at::Tensor& any = group.members.front().tensor;
    const auto element = static_cast<std::int64_t>(any.element_size());
    Record record{prefix_ + std::to_string(records.size()), any, {}};
    const auto* base = static_cast<const std::byte*>(any.storage().data());
    if (group.last > group.first)
      record.bytes = std::span(base + group.first * element,
                               static_cast<std::size_t>((group.last - group.first) * element));
    if (any.scalar_type() == at::kBool &&
        std::ranges::any_of(record.bytes, [](std::byte b) { return b > std::byte{1}; }))
      refuse("the tensor " + shown(group.members.front().name) +
             " cannot be exported: it shares its memory with values that are no bools");
    for (const Member& member : group.members) {
      schema::TensorMeta meta;
      meta.dtype = *from_scalar_type(member.tensor.scalar_type());
      for (std::int64_t size : member.tensor.sizes()) meta.sizes.push_back(known(size));
      for (std::int64_t stride : member.tensor.strides()) meta.strides.push_back(known(stride));
      meta.requires_grad = wants_gradient_.contains(member.name);
      meta.device = from_device(at::kCPU);
      meta.storage_offset = known(member.tensor.storage_offset() - group.first);
      meta.layout = schema::Layout::kStrided;
      entries_[member.name] = {record.name, member.is_param, false, std::move(meta)};
    }
    records.push_back(std::move(record));
  }

  std::string prefix_;
  std::vector<Group> groups_;
  std::map<std::pair<const void*, int>, std::size_t> index_;
  std::map<std::string, schema::PayloadMeta> entries_;
  std::set<std::string> wants_gradient_;
};

/// What stands in the file.
struct Archive {
  schema::ExportedProgram program;
  Payload weights{"weight_"}, constants{"tensor_"};
};

/// The graph as operators, recorded while it runs on `inputs`.
std::shared_ptr<GraphModule> recorded(const GraphModule& source, Values inputs) {
  // Only what the run writes to is replaced meanwhile, and put back.
  auto& module = const_cast<GraphModule&>(source);
  const Isolation isolation(module, inputs);
  MakeFxOptions options;
  options.class_name = module.class_name();
  std::vector<at::Tensor> tensors;
  for (const Node* input : module.graph().placeholders())
    options.input_names.push_back(input->target().str());
  for (const Value& input : inputs) {
    if (!input.isTensor()) refuse("the program cannot be recorded: an example input is no tensor");
    tensors.push_back(input.toTensor());
  }
  auto result = record_program(
      module, std::move(tensors), options, [&](std::vector<at::Tensor>& values) -> TraceArg {
        RunOptions run;
        run.enable_io_processing = false;
        Values args(values.begin(), values.end());
        return detail::traced(Interpreter(module).run(std::move(args), run));
      });
  // Buffers outside of the state dict stay outside of it.
  std::set<std::string> state;
  for (const auto& [name, tensor] : module.state_dict()) state.insert(name);
  for (const auto& item : module.named_buffers())
    if (!state.contains(item.key()) && item.value().defined())
      result->set_buffer(item.key(), item.value(), /*persistent=*/false);
  result->set_specs(module.in_spec(), module.out_spec());
  if (const auto* origin = module.meta().get<Pt2OriginPtr>(kPt2OriginKey))
    result->meta().set(kPt2OriginKey, *origin);
  return result;
}

Archive exported(const GraphModule& module, const SavePt2Options& options) {
  module.graph().lint();
  if (!options.example_inputs.empty() &&
      options.example_inputs.size() != module.graph().placeholders().size())
    refuse("the program cannot be exported: " + std::to_string(options.example_inputs.size()) +
           " example inputs for " + std::to_string(module.graph().placeholders().size()) +
           " placeholders");
  Problems problems;
  check_tensors(module, problems);
  if (!problems.empty()) refuse("the program cannot be exported:" + problems.list());
  const ValueTypes types = find_value_types(module, options.example_inputs, problems);
  GraphExporter exporter(module, types, problems, options.node_meta);
  Archive archive;
  if (problems.empty())
    archive.program = exporter.build();
  else  // nothing is known of the inputs: at least the rest is told too
    for (const Node& node : module.graph().nodes())
      if (const std::string reason = not_an_overload(node); !reason.empty())
        problems.add(reason, shown(node.name()));
  if (exporter.needs_capture() && !options.example_inputs.empty()) {
    const auto operators = recorded(module, options.example_inputs);
    SavePt2Options rest = options;
    rest.example_inputs.clear();
    return exported(*operators, rest);
  }
  if (!problems.empty())
    refuse("the program cannot be exported:" + problems.list() +
           (exporter.needs_capture()
                ? "Pass example inputs (SavePt2Options::example_inputs): the program is then "
                  "recorded as operators while it runs on them.\n"
                : ""));
  if (exporter.changes_state()) check_sharing(exporter.weights(), exporter.constants());
  archive.weights.add(exporter.weights());
  archive.constants.add(exporter.constants());
  return archive;
}

void write(const Archive& archive, const std::string& model, AtomicFile& file) {
  ZipWriter zip(file);
  auto add = [&](const std::string& name, std::string_view text) {
    zip.add(std::string(kRoot) + name, text);
  };
  const auto payload = [&](const Payload& part, const std::string& folder, const char* config) {
    for (const Record& record : part.records)
      zip.add(std::string(kRoot) + folder + record.name, record.bytes);
    add(folder + model + config, schema::to_json(part.config));
  };
  payload(archive.weights, "data/weights/", "_weights_config.json");
  payload(archive.constants, "data/constants/", "_constants_config.json");
  add("models/" + model + ".json", schema::to_json(archive.program));
  // Python unpickles what stands here; nothing at all is no example inputs.
  add("data/sample_inputs/" + model + ".pt", "");
  add("archive_format", "pt2");
  add("archive_version", "0");
  add("byteorder", "little");
  add(".data/version", kContainerVersion);
  zip.finish();
}

}  // namespace
}  // namespace io

void save_pt2(const GraphModule& module, const std::string& path, const SavePt2Options& options) {
  const io::Archive archive = io::exported(module, options);
  io::AtomicFile file(path);
  io::write(archive, options.model, file);
  file.commit(options.flush);
}

}  // namespace fx
