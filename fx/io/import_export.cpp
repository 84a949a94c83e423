#include "fx/io/import_export.h"

#include <algorithm>
#include <map>
#include <set>

#include "fx/base/error.h"
#include "fx/io/export_schema.h"
#include "fx/io/file_format.h"
#include "fx/io/graph_importer.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/pt2_origin.h"
#include "fx/io/save_module.h"
#include "fx/io/shown.h"
#include "fx/io/treespec.h"
#include "fx/io/value_meta.h"
#include "fx/io/weights.h"

namespace fx {
namespace io {
namespace {

constexpr std::string_view kWeightsFolder = "data/weights/";
constexpr std::string_view kConstantsFolder = "data/constants/";

ArchiveOptions archive_options_of(const LoadOptions& options) {
  ArchiveOptions archive_options;
  archive_options.access = options.access;
  archive_options.verify_weights = options.verify_weights;
  archive_options.max_json_bytes = options.max_json_bytes;
  return archive_options;
}

/// How often each operator is called, also in graphs inside of the graph.
void count_targets(const schema::Graph& graph, std::map<std::string, std::size_t>& counts) {
  for (const schema::Node& node : graph.nodes) {
    ++counts[node.target];
    for (const schema::NamedArgument& input : node.inputs)
      if (const auto* nested = std::get_if<schema::GraphArgument>(&input.arg.value))
        count_targets(*nested->graph, counts);
  }
}

std::string program_label(const Pt2Archive& archive, const std::string& model) {
  return shown(archive.path()) + ": models/" + model + ".json";
}

schema::ExportedProgram read_program(const Pt2Archive& archive, const std::string& model) {
  return schema::parse_exported_program(archive.text("models/" + model + ".json"),
                                        program_label(archive, model));
}

/// The record that lists weights (constants), under the name of any known version. Archives of
/// torch 2.8 hold a pickle instead.
std::string config_record(const Pt2Archive& archive, std::string_view folder,
                          const std::string& model, std::string_view what) {
  const std::string base = std::string(folder) + model;
  if (archive.find(base + ".pt") != nullptr)
    throw ImportError(ErrorCode::kPickleFile, shown(archive.path()) + " keeps its " +
                                                  std::string(what) + " in a pickle (" + base +
                                                  ".pt), as torch 2.8 wrote them");
  for (const char* suffix : {"_config.json", "_param_config.json"}) {
    std::string name = base + "_" + std::string(what) + suffix;
    if (archive.find(name) != nullptr) return name;
  }
  const std::string old_name =
      base + (what == "weights" ? "_model_param_config.json" : "_model_constants_config.json");
  if (archive.find(old_name) != nullptr) return old_name;
  return base + "_" + std::string(what) + "_config.json";
}

std::string choose_model(const Pt2Archive& archive, const std::string& wanted) {
  const std::vector<std::string>& names = archive.model_names();
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + shown(name);
  if (!wanted.empty()) {
    if (std::ranges::find(names, wanted) != names.end()) return wanted;
    throw ImportError(ErrorCode::kMissingRecord, shown(archive.path()) + " has no program " +
                                                     shown(wanted) + "; it has " + list);
  }
  if (names.size() == 1) return names.front();
  throw ImportError(ErrorCode::kMissingRecord, shown(archive.path()) + " holds several programs (" +
                                                   list +
                                                   "): say which one with LoadOptions::model");
}

RangeConstraints range_constraints(const schema::ExportedProgram& program) {
  RangeConstraints ranges;
  for (const auto& [symbol, range] : program.range_constraints)
    ranges.emplace_back(symbol, std::pair(range.min, range.max));
  return ranges;
}

// What a writer of the program needs besides the module.
Pt2OriginPtr origin_of(const schema::ExportedProgram& program, const GraphModule& module) {
  auto origin = std::make_shared<Pt2Origin>();
  for (const schema::ModuleCallEntry& entry : program.graph_module.module_call_graph) {
    if (!entry.fqn.empty()) {
      origin->modules.push_back(entry.fqn);
    } else if (entry.signature) {
      origin->in_spec_text = entry.signature->in_spec;
      origin->out_spec_text = entry.signature->out_spec;
      origin->forward_arg_names = entry.signature->forward_arg_names;
    }
  }
  if (module.in_spec()) origin->in_spec = *module.in_spec();
  if (module.out_spec()) origin->out_spec = *module.out_spec();
  origin->namedtuple_fields = program.graph_module.treespec_namedtuple_fields;
  origin->guards_code = program.guards_code;
  origin->verifiers = program.verifiers;
  origin->num_inputs = module.graph().placeholders().size();
  return origin;
}

// What calls of the program are checked against: the shapes and dtypes it was exported with.
// Extents that are expressions of symbols are left to the operators. torch.export lets a symbol be
// 0 or 1 at run time although its range starts at 2, so that lower bounds up to 2 do not count.
std::vector<InputGuard> input_guards(const GraphModule& module, const RangeConstraints& ranges) {
  std::vector<InputGuard> guards;
  for (const Node* input : module.graph().placeholders()) {
    const auto* meta = input->meta().get<ValueMetaPtr>("val");
    if (!meta || !*meta || (*meta)->kind != ValueMeta::Kind::kTensor) continue;
    InputGuard guard{input->target().str(), (*meta)->dtype, {}};
    for (const SymDim& size : (*meta)->sizes) {
      InputGuard::Dim dim;
      if (size.is_known()) {
        dim.size = size.value;
      } else if (size.expr->op == SymbolicExpr::Op::kSymbol) {
        dim.symbol = size.expr->name;
        for (const auto& [symbol, range] : ranges) {
          if (symbol != dim.symbol) continue;
          if (range.first && *range.first > 2) dim.min = range.first;
          dim.max = range.second;
        }
      }
      guard.dims.push_back(std::move(dim));
    }
    guards.push_back(std::move(guard));
  }
  return guards;
}

}  // namespace
}  // namespace io

std::shared_ptr<GraphModule> load(const std::string& path, const LoadOptions& options) {
  io::OpenedArchive opened = io::open_archive(path, options.access);
  if (opened.kind == io::ArchiveKind::kSaved) return io::load_saved(opened, options);
  const io::Pt2Archive archive(std::move(opened), io::archive_options_of(options));
  const std::string model = io::choose_model(archive, options.model);
  const io::schema::ExportedProgram program = io::read_program(archive, model);
  io::WeightReader reader(archive);
  const std::string weights_folder(io::kWeightsFolder), constants_folder(io::kConstantsFolder);
  std::vector<io::Weight> weights =
      reader.read(io::config_record(archive, weights_folder, model, "weights"), weights_folder);
  std::vector<io::Weight> constants = reader.read(
      io::config_record(archive, constants_folder, model, "constants"), constants_folder);

  const io::OperatorPolicy policy(options.allow_operators);
  io::GraphImporter importer(program, io::program_label(archive, model), policy);
  std::shared_ptr<GraphModule> module =
      importer.build(std::move(weights), std::move(constants), "ExportedProgram");
  module->meta().set("torch_version", program.torch_version);
  const io::RangeConstraints ranges = io::range_constraints(program);
  module->set_input_guards(io::input_guards(*module, ranges));
  module->meta().set("range_constraints", ranges);
  module->meta().set("warnings", program.warnings);
  module->meta().set(io::kPt2OriginKey, io::origin_of(program, *module));
  // Train or eval is decided in the operators' arguments; the flag only tells passes whether
  // folding weights is welcome.
  module->eval();
  return module;
}

namespace io {
namespace {

/// Tells the type of a value of the program, from its metadata.
class TypeNames {
 public:
  TypeNames(const schema::Graph& graph, const std::string& label) : reader_(label) {
    for (const auto& [name, meta] : graph.tensor_values) tensors_.emplace(name, &meta);
    for (const auto& [name, number] : graph.sym_int_values) ints_.emplace(name, &number);
  }

  ProgramSummary::Value describe(const schema::Argument& argument) {
    if (const auto* tensor = argument.get<schema::TensorArgument>()) {
      auto meta = tensors_.find(tensor->name);
      return {tensor->name,
              meta == tensors_.end() ? "?" : reader_.read(*meta->second, tensor->name)->str()};
    }
    if (const auto* symbolic = argument.get<schema::SymIntArgument>()) {
      if (const auto* name = std::get_if<std::string>(&symbolic->value)) {
        auto number = ints_.find(*name);
        return {*name, number == ints_.end() ? "?" : reader_.read(*number->second, *name)->str()};
      }
    }
    return {"", constant(argument)};
  }

  static std::string constant(const schema::Argument& argument) {
    if (argument.get<std::monostate>() != nullptr) return "None";
    if (const auto* value = argument.get<std::int64_t>()) return std::to_string(*value);
    if (const auto* value = argument.get<bool>()) return *value ? "True" : "False";
    if (const auto* value = argument.get<double>()) return repr(Argument(*value));
    if (const auto* value = argument.get<std::string>()) return shown(*value);
    return std::string(argument.tag());
  }

 private:
  ValueMetaReader reader_;
  std::map<std::string_view, const schema::TensorMeta*> tensors_;
  std::map<std::string_view, const schema::SymInt*> ints_;
};

std::uint64_t elements_of(const schema::TensorMeta& meta) {
  std::uint64_t count = 1;
  for (const schema::SymInt& size : meta.sizes)
    if (!size.is_known() || size.value < 0 ||
        __builtin_mul_overflow(count, static_cast<std::uint64_t>(size.value), &count))
      return 0;
  return count;
}

void summarize_payload(const Pt2Archive& archive, std::string_view folder, const std::string& model,
                       std::string_view what, ProgramSummary& summary) {
  const std::string record = config_record(archive, folder, model, what);
  const schema::PayloadConfig config =
      schema::parse_payload_config(archive.text(record), shown(archive.path()) + ": " + record);
  std::set<std::string> records;
  for (const auto& [name, meta] : config) {
    if (what == "constants") {
      ++summary.num_constants;
    } else if (meta.is_param) {
      ++summary.num_parameters;
      if (meta.tensor_meta) summary.parameter_elements += elements_of(*meta.tensor_meta);
    } else {
      ++summary.num_buffers;
    }
    if (!records.insert(meta.path_name).second) continue;
    if (const ZipEntry* entry = archive.find(std::string(folder) + meta.path_name))
      summary.weight_bytes += entry->size;
  }
}

ProgramSummary summarize(const Pt2Archive& archive, const std::string& model) {
  const schema::ExportedProgram program = read_program(archive, model);
  const schema::GraphModule& module = program.graph_module;
  const std::string label = program_label(archive, model);
  ProgramSummary summary;
  summary.name = model;
  summary.torch_version = program.torch_version;
  summary.schema_version =
      std::to_string(program.schema_major) + "." + std::to_string(program.schema_minor);
  summary.symbols = range_constraints(program);
  summary.warnings = program.warnings;
  summary.num_nodes = module.graph.nodes.size();

  TypeNames types(module.graph, label);
  for (const schema::InputSpec& spec : module.signature.input_specs) {
    if (spec.kind == schema::InputSpec::Kind::kUserInput)
      summary.inputs.push_back(types.describe(spec.arg));
    else if (spec.kind == schema::InputSpec::Kind::kConstantInput)
      summary.inputs.push_back({spec.target, "= " + TypeNames::constant(spec.arg)});
  }
  for (const schema::OutputSpec& spec : module.signature.output_specs) {
    if (spec.kind == schema::OutputSpec::Kind::kUserOutput)
      summary.outputs.push_back(types.describe(spec.arg));
    else if (!spec.target.empty())
      summary.mutated.push_back(spec.target);
  }
  for (const schema::ModuleCallEntry& entry : module.module_call_graph) {
    if (!entry.fqn.empty() || !entry.signature) continue;
    const auto& fields = module.treespec_namedtuple_fields;
    summary.in_spec = treespec_str(parse_treespec(entry.signature->in_spec, label, fields));
    summary.out_spec = treespec_str(parse_treespec(entry.signature->out_spec, label, fields));
  }
  std::map<std::string, std::size_t> counts;
  count_targets(module.graph, counts);
  summary.operators.assign(counts.begin(), counts.end());
  std::ranges::stable_sort(summary.operators, std::greater<>(),
                           &std::pair<std::string, std::size_t>::second);
  summarize_payload(archive, kWeightsFolder, model, "weights", summary);
  summarize_payload(archive, kConstantsFolder, model, "constants", summary);
  return summary;
}

}  // namespace

ArchiveSummary inspect(const std::string& path, const LoadOptions& options) {
  OpenedArchive opened = open_archive(path, options.access);
  if (opened.kind == ArchiveKind::kSaved) return inspect_saved(opened, options);
  const Pt2Archive archive(std::move(opened), archive_options_of(options));
  ArchiveSummary summary;
  summary.path = path;
  summary.file_bytes = archive.file()->size();
  summary.num_records = archive.zip().entries().size();
  for (const ZipEntry& entry : archive.zip().entries())
    summary.has_aoti_code =
        summary.has_aoti_code || entry.name.starts_with(archive.root() + "/data/aotinductor/");
  for (const std::string& model : archive.model_names())
    if (options.model.empty() || options.model == model)
      summary.programs.push_back(summarize(archive, model));
  if (summary.programs.empty()) choose_model(archive, options.model);
  return summary;
}

}  // namespace io
}  // namespace fx
