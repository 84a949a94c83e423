#include "fx/io/save_module.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/graph/module_access.h"
#include "fx/graph/module_types.h"
#include "fx/graph/text.h"
#include "fx/io/atomic_file.h"
#include "fx/io/save_pt2.h"
#include "fx/io/saved_classes.h"
#include "fx/io/saved_meta.h"
#include "fx/io/shown.h"
#include "fx/io/zip_writer.h"

namespace fx {
namespace io {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw ImportError(ErrorCode::kNotSavable, "cannot save " + what);
}

std::string path_text(const std::string& path) {
  return path.empty() ? "the module" : "the submodule " + shown(path);
}

/// Everything that goes into the file; nothing is written before it is complete.
class Contents {
 public:
  explicit Contents(const SaveOptions& options) : options_(options) {}

  void add_root(const GraphModule& module) { add_module(module, "", 1); }

  void write_to(AtomicFile& file) const {
    ZipWriter zip(file);
    zip.add("fxa/version", "fxcpp module 1\n");
    zip.add("fxa/module.json", manifest());
    for (std::size_t i = 0; i < graphs_.size(); ++i)
      zip.add("fxa/graph/" + std::to_string(i) + ".fx", graphs_[i]);
    for (std::size_t i = 0; i < storages_.size(); ++i)
      zip.add("fxa/data/" + std::to_string(i),
              std::span(static_cast<const std::byte*>(storages_[i].data()), storages_[i].nbytes()));
    zip.finish();
  }

 private:
  static void join(std::string& out, const std::vector<std::string>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) out += (i ? ",\n" : "\n") + items[i];
  }
  std::string manifest() const {
    std::string out = "{\"producer\":\"fxcpp\",\n\"tensors\":[";
    join(out, tensors_);
    out += "],\n\"modules\":[";
    join(out, modules_);
    return out + "]}\n";
  }

  std::size_t add_storage(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    // What is one memory in two storages stays one memory.
    const std::pair<const void*, std::size_t> key(
        storage.nbytes() ? storage.data() : storage.unsafeGetStorageImpl(), storage.nbytes());
    const auto [found, added] = storage_index_.emplace(key, storages_.size());
    if (added) storages_.push_back(storage);
    return found->second;
  }

  static void check_tensor(const at::Tensor& tensor, const std::string& path) {
    const std::string what = "the tensor " + shown(path) + ": ";
    if (tensor.layout() != at::kStrided || tensor.is_quantized())
      refuse(what + "it is sparse or quantized, a dense one is wanted");
    if (!tensor.device().is_cpu())
      refuse(what + "it is on device " + tensor.device().str() + ", move it to the CPU first");
    if (!tensor.has_storage()) refuse(what + "it has no memory of its own");
    const auto* bytes = static_cast<const unsigned char*>(tensor.storage().data());
    if (tensor.scalar_type() == at::kBool &&
        std::any_of(bytes, bytes + tensor.storage().nbytes(), [](unsigned b) { return b > 1; }))
      refuse(what + "it shares its memory with values that are no bools; clone it first");
  }

  std::size_t add_tensor(const at::Tensor& tensor, const std::string& path) {
    const auto found = tensor_index_.find(tensor.unsafeGetTensorImpl());
    if (found != tensor_index_.end()) return found->second;
    check_tensor(tensor, path);
    JsonWriter json;
    json.begin_object();
    json.key("storage").integer(static_cast<std::int64_t>(add_storage(tensor))).key("dtype");
    write_dtype(json, tensor.scalar_type());
    json.key("offset").integer(tensor.storage_offset());
    auto ints = [&](const char* key, at::IntArrayRef values) {
      json.key(key).begin_array();
      for (const std::int64_t value : values) json.integer(value);
      json.end_array();
    };
    ints("sizes", tensor.sizes());
    ints("strides", tensor.strides());
    if (tensor.requires_grad()) json.key("requires_grad").boolean(true);
    if (tensor.is_conj()) json.key("conj").boolean(true);
    if (tensor.is_neg()) json.key("neg").boolean(true);
    json.end_object();
    const std::size_t index = tensors_.size();
    tensors_.push_back(json.text());
    tensor_index_.emplace(tensor.unsafeGetTensorImpl(), index);
    return index;
  }

  void add_tensors(JsonWriter& json, const char* key, const detail::TensorDict& dict,
                   const std::string& path) {
    json.key(key).begin_array();
    for (const auto& item : dict) {
      const std::string full = detail::join_path(path, item.key());
      json.begin_array();
      write_text(json, item.key(), "the tensor " + shown(full));
      if (item.value().defined())
        json.integer(static_cast<std::int64_t>(add_tensor(item.value(), full)));
      else
        json.null();
      json.end_array();
    }
    json.end_array();
  }

  // Children first, so that an entry refers to earlier ones only.
  std::size_t add_module(const torch::nn::Module& module, const std::string& path,
                         std::size_t depth) {
    if (depth > kMaxSavedDepth)
      refuse(path_text(path) + ": modules nest more than " + std::to_string(kMaxSavedDepth) +
             " deep");
    if (const auto found = module_index_.find(&module); found != module_index_.end())
      return found->second;
    std::vector<std::pair<std::string, std::size_t>> children;
    for (const auto& item : detail::children(module)) {
      const std::string full = detail::join_path(path, item.key());
      if (!item.value()) refuse(path_text(full) + ": it is null");
      children.emplace_back(item.key(), add_module(*item.value(), full, depth + 1));
    }
    JsonWriter json;
    json.begin_object();
    write_class(json, module, path);
    json.key("training").boolean(module.is_training());
    add_tensors(json, "parameters", detail::parameters(module), path);
    add_tensors(json, "buffers", detail::buffers(module), path);
    json.key("children").begin_array();
    for (const auto& [name, index] : children) {
      json.begin_array();
      write_text(json, name, path_text(detail::join_path(path, name)));
      json.integer(static_cast<std::int64_t>(index)).end_array();
    }
    json.end_array().end_object();
    const std::size_t index = modules_.size();
    modules_.push_back(json.text());
    module_index_.emplace(&module, index);
    return index;
  }

  void write_class(JsonWriter& json, const torch::nn::Module& module, const std::string& path) {
    json.key("class");
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(&module)) {
      json.string("graph");
      return write_graph_module(json, *graph_module, path);
    }
    if (const SavedClass* known = find_saved_class(module)) {
      json.string(known->name).key("options");
      return known->write_options(module, json);
    }
    if (is_saved_container(module)) {
      const std::string name = module_type_name(module);
      if (name == "torch.nn.Sequential")
        for (const auto& child : detail::children(module))
          if (const std::string problem = sequential_problem(*child.value()); !problem.empty())
            refuse(path_text(path) + ": " + problem + ", " + shown(child.key()));
      json.string(name);
      return;
    }
    const RegisteredClass own = find_registered_class(typeid(module));
    if (!own.make)
      refuse(path_text(path) + " of class " + module_type_name(module) +
             ": archives know the classes of torch.nn and those registered with "
             "fx::register_saved_module");
    write_text(json, own.name, path_text(path));
    json.key("options");
    write_text(json, own.options ? own.options(module) : "", path_text(path) + ", its options");
  }

  void write_graph_module(JsonWriter& json, const GraphModule& module, const std::string& path) {
    module.graph().lint();
    json.key("graph").integer(static_cast<std::int64_t>(graphs_.size()));
    graphs_.push_back(to_text(module.graph(), {.meta = options_.node_meta}));
    json.key("name");
    write_text(json, module.class_name(), "the class name of " + path_text(path));
    const auto& constants = module.constants();
    if (!constants.empty()) {
      json.key("constants").begin_array();
      for (const auto& [name, tensor] : constants) {
        const std::string full = detail::join_path(path, name);
        json.begin_array();
        write_text(json, name, "the constant " + shown(full));
        if (!tensor.defined()) refuse("the constant " + shown(full) + ": it is undefined");
        json.integer(static_cast<std::int64_t>(add_tensor(tensor, full))).end_array();
      }
      json.end_array();
    }
    json.key("state").begin_object();
    write_state(json, module);
    json.end_object();
  }

  // What may be missing, one object so that a module has few keys.
  void write_state(JsonWriter& json, const GraphModule& module) {
    std::set<std::string> state;
    for (const auto& [name, tensor] : module.state_dict()) state.insert(name);
    json.key("non_persistent").begin_array();
    for (const auto& item : module.named_buffers())
      if (!state.contains(item.key())) write_text(json, item.key(), "a buffer");
    json.end_array();
    if (module.in_spec()) write_spec(json.key("in_spec"), *module.in_spec());
    if (module.out_spec()) write_spec(json.key("out_spec"), *module.out_spec());
    write_guards(json.key("guards"), module.input_guards());
    if (!module.mutations().empty()) {
      json.key("mutations").begin_array();
      for (const std::string& name : module.mutations()) write_text(json, name, "a mutation");
      json.end_array();
    }
    write_meta(json.key("meta"), module.meta());
    const auto* origin = module.meta().get<Pt2OriginPtr>(kPt2OriginKey);
    if (origin && *origin) write_origin(json.key("exported"), **origin);
    if (options_.node_meta) write_values(json.key("values"), module.graph());
  }

  const SaveOptions& options_;
  std::vector<std::string> tensors_, modules_;  // JSON of each
  std::vector<std::string> graphs_;
  std::vector<c10::Storage> storages_;
  std::map<std::pair<const void*, std::size_t>, std::size_t> storage_index_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> tensor_index_;
  std::unordered_map<const torch::nn::Module*, std::size_t> module_index_;
};

}  // namespace
}  // namespace io

void save(const GraphModule& module, const std::string& path, const SaveOptions& options) {
  if (path.ends_with(".pt2"))
    return save_pt2(module, path, {.node_meta = options.node_meta, .flush = options.flush});
  io::Contents contents(options);
  contents.add_root(module);
  io::AtomicFile file(path);
  contents.write_to(file);
  file.commit(options.flush);
}

}  // namespace fx
