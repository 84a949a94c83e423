#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/graph/module_access.h"
#include "fx/graph/text.h"
#include "fx/io/mapped_tensors.h"
#include "fx/io/operator_policy.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/save_module.h"
#include "fx/io/saved_classes.h"
#include "fx/io/saved_meta.h"
#include "fx/io/shown.h"
#include "fx/io/zip_writer.h"
#include "fx/ops/rng_guard.h"

namespace fx::io {
namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

constexpr std::string_view kVersionText = "fxcpp module ";
constexpr std::string_view kKnownVersions[] = {"1"};
constexpr std::uint64_t kMaxPaths = 1'000'000;
constexpr std::uint64_t kMaxVersionBytes = 64;
/// Lists and objects around the structured inputs of a module, and two levels for each of theirs.
constexpr std::size_t kMaxJsonLevels = 2 * kMaxSavedDepth + 20;

/// Turns what other parts of the library throw of bad contents into an ImportError.
template <typename Fn>
auto checked(const std::string& where, Fn&& fn) {
  auto fail = [&](const std::string& text) {
    return ImportError(ErrorCode::kBadSavedModule, where + ": " + text);
  };
  try {
    return fn();
  } catch (const ImportError&) {
    throw;
  } catch (const Error& error) {
    throw fail(error.text());
  } catch (const c10::Error& error) {
    throw fail(error.what_without_backtrace());
  }
}

class Loader {
 public:
  Loader(const OpenedArchive& archive, const LoadOptions& options)
      : archive_(archive), options_(options), policy_(options.allow_operators) {}

  std::shared_ptr<GraphModule> load() {
    check_version();
    const std::string name = "fxa/module.json";
    const JsonDocument document(text(name), shown(archive_.zip->path()) + ": " + name,
                                ErrorCode::kBadSavedModule, ErrorCode::kBadSavedModule,
                                kMaxJsonLevels);
    const JsonObject object(document.root(), {"producer", "tensors", "modules"});
    object.at("tensors").for_each([&](const JsonValue& json) { read_tensor(json); });
    object.at("modules").for_each([&](const JsonValue& json) { read_module(json); });
    auto root =
        modules_.empty() ? nullptr : std::dynamic_pointer_cast<GraphModule>(modules_.back().module);
    if (!root) object.at("modules").fail("the last module has to be a graph");
    if (!options_.model.empty() && options_.model != root->class_name())
      throw ImportError(ErrorCode::kMissingRecord, shown(archive_.zip->path()) +
                                                       " has no program " + shown(options_.model) +
                                                       "; it has " + shown(root->class_name()));
    return root;
  }

 private:
  struct Tensor {
    at::Tensor tensor;
    std::int64_t elements;  // at most those of its record
  };
  struct Module {
    ModulePtr module;
    std::size_t depth = 1;
    std::uint64_t paths = 1;  // that lead to it and to what is below, from it on
  };
  using Named = std::vector<std::pair<std::string, std::optional<std::size_t>>>;

  const ZipEntry& entry(const std::string& name) const {
    if (const ZipEntry* found = archive_.zip->find(name)) return *found;
    throw ImportError(ErrorCode::kBadSavedModule,
                      shown(archive_.zip->path()) + " lacks the record " + shown(name));
  }
  std::string text(const std::string& name) const {
    const ZipEntry& record = entry(name);
    std::string text = read_text(*archive_.zip, record, name, options_.max_json_bytes);
    archive_.file->forget(archive_.zip->data(record));
    return text;
  }

  void check_version() const {
    const ZipEntry& record = entry("fxa/version");
    std::string found;
    if (record.size <= kMaxVersionBytes)
      found = read_text(*archive_.zip, record, record.name, kMaxVersionBytes);
    for (const std::string_view version : kKnownVersions)
      if (found == std::string(kVersionText) + std::string(version) + "\n") return;
    throw ImportError(ErrorCode::kSavedVersion, shown(archive_.zip->path()) + " has the version " +
                                                    shown(found) + ", 'fxcpp module 1' is wanted");
  }

  /// A number of a list of `count` things.
  static std::size_t index(const JsonValue& json, std::size_t count, const char* what) {
    const std::int64_t value = json.to_int();
    if (value < 0 || static_cast<std::uint64_t>(value) >= count)
      json.fail("there is no " + std::string(what) + " " + std::to_string(value) + " before it");
    return static_cast<std::size_t>(value);
  }

  // --- tensors ---

  /// All of a record as bytes.
  const at::Tensor& storage(const JsonValue& json) {
    const std::int64_t number = json.to_int();
    at::Tensor& bytes = storages_[number];
    if (bytes.defined()) return bytes;
    const ZipEntry& record = entry("fxa/data/" + std::to_string(number));
    if (record.data_offset % kRecordAlignment != 0)
      json.fail("the record " + shown(record.name) + " is not aligned");
    if (options_.verify_weights) archive_.zip->check_crc(record);
    bytes = flat_tensor(archive_.file, archive_.zip->data(record), at::kByte);
    return bytes;
  }

  static std::vector<std::int64_t> ints(const JsonValue& json) {
    std::vector<std::int64_t> values;
    json.for_each([&](const JsonValue& value) { values.push_back(value.to_int()); });
    return values;
  }
  static bool flag(const JsonObject& object, std::string_view key) {
    const auto value = object.find(key);
    return value && value->to_bool();
  }

  void read_tensor(const JsonValue& json) {
    const JsonObject object(
        json, {"storage", "dtype", "offset", "sizes", "strides", "requires_grad", "conj", "neg"});
    const at::Tensor& bytes = storage(object.at("storage"));
    const at::ScalarType type = read_dtype(object.at("dtype"));
    const std::string label = json.document().label() + ": " + json.path_text();
    const bool number = at::isFloatingType(type) || at::isComplexType(type);
    if (!number && !at::isIntegralType(type, /*includeBool=*/true))
      json.fail("tensors in files hold no " + std::string(at::toString(type)));
    const TensorGeometry geometry{ints(object.at("sizes")), ints(object.at("strides")),
                                  object.at("offset").to_int()};
    const auto size = static_cast<std::uint64_t>(bytes.numel());
    check_geometry(geometry, size / at::elementSize(type), label);
    if (type == at::kBool) check_bools(bytes, label);
    const bool requires_grad = flag(object, "requires_grad");
    if (requires_grad && !number) json.fail("integers cannot require a gradient");
    if (flag(object, "conj") && !at::isComplexType(type))
      json.fail("only complex numbers have conj");

    // set_ and not as_strided: tensors with one storage, none of them a view of another.
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(type));
    tensor.set_(bytes.storage(), geometry.offset, geometry.sizes, geometry.strides);
    if (flag(object, "conj")) tensor = at::_conj(tensor);
    if (flag(object, "neg")) tensor = at::_neg_view(tensor);
    tensor.set_requires_grad(requires_grad);
    const auto held = static_cast<std::int64_t>(size / at::elementSize(type));
    tensors_.push_back({tensor, std::min(held, tensor.numel())});
  }

  void check_bools(const at::Tensor& bytes, const std::string& label) {
    if (!bools_.insert(bytes.unsafeGetTensorImpl()).second || bytes.numel() == 0) return;
    const auto* data = bytes.const_data_ptr<std::uint8_t>();
    if (std::any_of(data, data + bytes.numel(), [](unsigned b) { return b > 1; }))
      throw ImportError(ErrorCode::kBadWeight, label + ": it holds bools that are neither 0 nor 1");
  }

  // --- modules ---

  /// [["name", index or null], ...]
  static Named named(const JsonValue& json, std::size_t count, const char* what) {
    Named out;
    std::unordered_set<std::string> names;
    json.for_each([&](const JsonValue& item) {
      std::size_t i = 0;
      item.for_each([&](const JsonValue& part) {
        if (i++ == 0)
          out.emplace_back(part.to_string(), std::nullopt);
        else if (!part.is_null())
          out.back().second = index(part, count, what);
      });
      if (i != 2) item.fail("a name and a number are wanted");
      if (!names.insert(out.back().first).second)
        item.fail("the name " + shown(out.back().first) + " occurs twice");
    });
    return out;
  }

  /// Names of entries of a module: one atom of a path each.
  static void check_atoms(const Named& items, const JsonValue& json) {
    for (const auto& [name, index] : items)
      if (name.empty() || name.find('.') != std::string::npos)
        json.fail(shown(name) + " cannot name an entry of a module");
  }

  at::Tensor tensor(const std::optional<std::size_t>& index) const {
    return index ? tensors_[*index].tensor : at::Tensor();
  }

  struct Parts {
    Named parameters, buffers, children;
  };

  void read_module(const JsonValue& json) {
    const JsonObject object(json, {"class", "options", "training", "parameters", "buffers",
                                   "children", "graph", "name", "constants", "state"});
    Parts parts{named(object.at("parameters"), tensors_.size(), "tensor"),
                named(object.at("buffers"), tensors_.size(), "tensor"),
                named(object.at("children"), modules_.size(), "module")};
    check_atoms(parts.parameters, json);
    check_atoms(parts.buffers, json);
    check_atoms(parts.children, json);
    Module made;
    for (const auto& [name, index] : parts.children) {
      if (!index) json.fail("the submodule " + shown(name) + " is null");
      made.depth = std::max(made.depth, modules_[*index].depth + 1);
      made.paths += modules_[*index].paths;
    }
    if (made.depth > kMaxSavedDepth)
      json.fail("modules nest more than " + std::to_string(kMaxSavedDepth) + " deep");
    if (made.paths > kMaxPaths)
      json.fail("more than " + std::to_string(kMaxPaths) + " paths lead to modules");
    const std::string label = json.document().label() + ": " + json.path_text();
    made.module = checked(label, [&] { return make(object, json, parts); });
    detail::training(*made.module) = object.at("training").to_bool();
    modules_.push_back(std::move(made));
  }

  ModulePtr make(const JsonObject& object, const JsonValue& json, const Parts& parts) {
    const std::string name(object.at("class").to_string());
    if (name == "graph") return graph_module(object, parts);
    if (ModulePtr made = container(name, json, parts)) return made;
    ModulePtr made;
    if (const SavedClass* known = find_saved_class(name)) {
      if (!random_) random_.emplace();
      made = known->make(object.at("options"), state_size(parts));
    } else if (const RegisteredClass own = find_registered_class(name); own.make) {
      made = own.make(std::string(object.at("options").to_string()));
      if (!made) json.fail("the class " + shown(name) + " made no module");
    } else {
      json.fail("the class " + shown(name) +
                " is not known; fx::register_saved_module makes own classes known");
    }
    const std::string problem =
        adopt_tensors(*made, *filled(std::make_shared<torch::nn::Module>(), parts));
    if (!problem.empty()) json.fail(shown(name) + ": " + problem);
    // Flags of submodules that the constructor made, and one module for all paths to them.
    for (const auto& [child, index] : parts.children) {
      ModulePtr& mine = *detail::children(*made).find(child);
      detail::training(*mine) = modules_[*index].module->is_training();
      modules_[*index].module = mine;
    }
    return made;
  }

  StateSize state_size(const Parts& parts) const {
    StateSize size;
    for (const Named* list : {&parts.parameters, &parts.buffers})
      for (const auto& [name, index] : *list) {
        if (!index) continue;
        ++size.tensors;
        size.elements += tensors_[*index].elements;
      }
    return size;
  }

  template <typename Ptr>
  Ptr filled(Ptr module, const Parts& parts) const {
    for (const auto& [name, index] : parts.parameters)
      detail::parameters(*module).insert(name, tensor(index));
    for (const auto& [name, index] : parts.buffers)
      detail::buffers(*module).insert(name, tensor(index));
    for (const auto& [name, index] : parts.children)
      detail::children(*module).insert(name, modules_[*index].module);
    return module;
  }

  ModulePtr container(const std::string& name, const JsonValue& json, const Parts& parts) const {
    SavedChildren children;
    for (const auto& [child, index] : parts.children)
      children.emplace_back(child, modules_[*index].module);
    std::string problem;
    ModulePtr made = make_saved_container(name, children, problem);
    if (!problem.empty()) json.fail(problem);
    if (made) filled(made, {parts.parameters, parts.buffers, {}});
    return made;
  }

  // --- GraphModules ---

  ModulePtr graph_module(const JsonObject& object, const Parts& parts) {
    auto module = filled(std::make_shared<GraphModule>(std::make_shared<Graph>(),
                                                       std::string(object.at("name").to_string())),
                         parts);
    if (const auto constants = object.find("constants"))
      for (const auto& [path, index] : named(*constants, tensors_.size(), "tensor"))
        module->set_constant(path, tensor(index));
    const JsonObject state(object.at("state"), {"non_persistent", "in_spec", "out_spec", "guards",
                                                "mutations", "meta", "values", "exported"});
    state.at("non_persistent").for_each([&](const JsonValue& json) {
      const std::string path(json.to_string());
      if (module->attr_kind(path) != GraphOwner::AttrKind::kBuffer)
        json.fail("there is no buffer " + shown(path));
      module->set_buffer(path, module->find_tensor(path), /*persistent=*/false);
    });
    std::optional<TreeSpec> in_spec, out_spec;
    if (const auto json = state.find("in_spec")) in_spec = read_spec(*json);
    if (const auto json = state.find("out_spec")) out_spec = read_spec(*json);
    module->set_specs(std::move(in_spec), std::move(out_spec));
    module->set_input_guards(read_guards(state.at("guards")));
    if (const auto json = state.find("mutations")) {
      std::vector<std::string> mutations;
      json->for_each([&](const JsonValue& name) { mutations.emplace_back(name.to_string()); });
      module->set_mutations(std::move(mutations));
    }
    read_meta(state.at("meta"), module->meta());
    if (const auto json = state.find("exported"))
      module->meta().set(kPt2OriginKey, read_origin(*json, shown(archive_.zip->path())));

    const std::string record = "fxa/graph/" + std::to_string(object.at("graph").to_int()) + ".fx";
    const std::string label = shown(archive_.zip->path()) + ": " + record;
    checked(label, [&] {
      std::shared_ptr<Graph> graph = parse_text(text(record));
      check_operators(*graph, label);
      if (const auto values = state.find("values")) read_values(*values, *graph, label);
      module->set_graph(std::move(graph));
      module->graph().lint();
    });
    return module;
  }

  void check_operators(const Graph& graph, const std::string& label) const {
    std::string refused;
    for (const Node& node : graph.nodes()) {
      std::string name;
      if (node.op() == Opcode::kCallMethod) name = "aten::" + node.target().str();
      if (node.op() == Opcode::kCallFunction) {
        const Function& function = *node.target().function();
        const std::string base(function.base_name());
        if (function.kind() == FunctionKind::kTorch) name = "aten::" + base;
        if (function.kind() == FunctionKind::kOperator)
          name = function.name().substr(0, function.name().find("::")) + "::" + base;
      }
      if (name.empty()) continue;
      if (const auto reason = policy_.refusal(name))
        refused += (refused.empty() ? "" : "; ") + std::string(node.name()) + " calls " +
                   shown(name) + ": " + *reason;
    }
    if (!refused.empty()) throw ImportError(ErrorCode::kForbiddenOperator, label + ": " + refused);
  }

  const OpenedArchive& archive_;
  const LoadOptions& options_;
  OperatorPolicy policy_;
  std::unordered_map<std::int64_t, at::Tensor> storages_;
  std::unordered_set<const c10::TensorImpl*> bools_;
  std::vector<Tensor> tensors_;
  std::vector<Module> modules_;
  std::optional<RngGuard> random_;  // constructors of torch.nn modules draw numbers
};

}  // namespace

std::shared_ptr<GraphModule> load_saved(const OpenedArchive& archive, const LoadOptions& options) {
  return checked(shown(archive.zip->path()), [&] { return Loader(archive, options).load(); });
}

}  // namespace fx::io
