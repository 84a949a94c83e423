#include "fx/graph/module_python.h"

#include <ATen/ATen.h>

#include <unordered_set>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/module_types.h"

namespace fx::python {
namespace {

std::string sizes_source(const at::Tensor& tensor) {
  std::string out = "[";
  for (std::int64_t size : tensor.sizes())
    out += (out.size() > 1 ? ", " : "") + std::to_string(size);
  return out + "]";
}

std::string base64(const unsigned char* data, std::size_t size) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((size + 2) / 3 * 4);
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t rest = std::min<std::size_t>(3, size - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < rest ? data[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= rest ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// Writes __init__ of one GraphModule.
class Init {
 public:
  Init(const GraphModule& module, File& file, const PythonCodeOptions& options)
      : root_(module), file_(file), options_(options) {
    for (const auto& [path, tensor] : module.state_dict()) state_.insert(path);
    for (const Node& node : module.graph().nodes())
      if (node.op() == Opcode::kCallModule) called_.insert(node.target().str());
  }

  std::string emit() {
    fill(root_, "");
    constants();
    if (!root_.is_training()) line("self.train(False)");
    training_flags(root_, "");
    return "    def __init__(self):\n        super().__init__()\n" + body_;
  }
  const std::string& nested_classes() const { return nested_; }

 private:
  static std::string join(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }
  static std::string object(const std::string& path) {
    return path.empty() ? "self" : attribute("self", path);
  }
  void line(const std::string& text) { body_ += "        " + text + "\n"; }

  std::string device_argument(const at::Tensor& tensor) {
    if (tensor.device().is_cpu()) return {};
    file_.imports.device = true;
    return ", device=" + repr(Argument(tensor.device()));
  }

  std::string zeros(const at::Tensor& tensor) {
    return "torch.zeros(" + sizes_source(tensor) + ", dtype=" + dtype_repr(tensor.scalar_type()) +
           device_argument(tensor) + ")";
  }

  // A tensor with its values, for what is no part of the state_dict.
  std::string values(const at::Tensor& tensor, const std::string& path) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized())
      throw GraphError(ErrorCode::kNotExpressible, "cannot write the constant " + str_repr(path) +
                                                       ", which is no dense tensor");
    if (tensor.numel() == 0) return zeros(tensor);
    if (tensor.nbytes() > options_.max_constant_bytes)
      throw GraphError(ErrorCode::kNotExpressible, "the constant " + str_repr(path) + " has " +
                                                       std::to_string(tensor.nbytes()) +
                                                       " bytes, and max_constant_bytes is " +
                                                       std::to_string(options_.max_constant_bytes));
    const at::Tensor dense = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
    std::string out;
    if (std::optional<std::string> list = short_list(dense)) {
      out = "torch.tensor(" + *list + ", dtype=" + dtype_repr(dense.scalar_type()) + ")";
    } else {
      file_.imports.base64 = true;
      out = "torch.frombuffer(bytearray(base64.b64decode(\"" +
            base64(static_cast<const unsigned char*>(dense.data_ptr()), dense.nbytes()) +
            "\")), dtype=" + dtype_repr(dense.scalar_type()) + ").reshape(" + sizes_source(dense) +
            ")";
    }
    if (tensor.device().is_cpu()) return out;
    file_.imports.device = true;
    return out + ".to(" + repr(Argument(tensor.device())) + ")";
  }

  // Few finite numbers of a usual type stand as a list.
  static std::optional<std::string> short_list(const at::Tensor& dense) {
    constexpr std::int64_t kFew = 16;
    const at::ScalarType dtype = dense.scalar_type();
    const bool floating = dtype == at::kFloat || dtype == at::kDouble;
    const bool integral = dtype == at::kLong || dtype == at::kInt || dtype == at::kBool;
    if (dense.numel() > kFew || (!floating && !integral)) return std::nullopt;
    if (floating && !at::isfinite(dense).all().item<bool>()) return std::nullopt;
    return list_source(dense, floating);
  }
  static std::string list_source(const at::Tensor& tensor, bool floating) {
    if (tensor.dim() == 0) {
      if (floating) return float_repr(tensor.item<double>());
      if (tensor.scalar_type() == at::kBool) return tensor.item<bool>() ? "True" : "False";
      return std::to_string(tensor.item<std::int64_t>());
    }
    std::string out = "[";
    for (std::int64_t i = 0; i < tensor.size(0); ++i)
      out += (i ? ", " : "") + list_source(tensor[i], floating);
    return out + "]";
  }

  void assign(const std::string& path, const std::string& name, const char* method,
              const std::string& source) {
    if (is_name(name))
      line(object(path) + "." + name + " = " + source);
    else
      line(object(path) + "." + method + "(" + string_literal(name) + ", " + source + ")");
  }

  // Whether the tensor was created under another path already; then that line ties the two.
  bool tie(const at::Tensor& tensor, const std::string& path, const std::string& name,
           const char* method) {
    auto [found, fresh] = tensors_.emplace(tensor.unsafeGetTensorImpl(), join(path, name));
    if (fresh) return false;
    assign(path, name, method, object(found->second));
    return true;
  }

  void fill(const torch::nn::Module& module, const std::string& path) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      if (!tensor.defined() || tie(tensor, path, item.key(), "register_parameter")) continue;
      assign(path, item.key(), "register_parameter",
             "torch.nn.Parameter(" + zeros(tensor) +
                 (tensor.requires_grad() ? "" : ", requires_grad=False") + ")");
    }
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      if (!tensor.defined()) continue;
      const std::string full = join(path, item.key());
      const bool persistent = state_.contains(full);
      auto [found, fresh] = tensors_.emplace(tensor.unsafeGetTensorImpl(), full);
      const std::string source = !fresh       ? object(found->second)
                                 : persistent ? zeros(tensor)
                                              : values(tensor, full);
      line(object(path) + ".register_buffer(" + string_literal(item.key()) + ", " + source +
           (persistent ? ")" : ", persistent=False)"));
    }
    for (const auto& item : module.named_children()) add_child(*item.value(), path, item.key());
  }

  void add_child(const torch::nn::Module& child, const std::string& path, const std::string& name) {
    const std::string full = join(path, name);
    auto [known, fresh] = modules_.emplace(&child, full);
    if (!fresh) return assign(path, name, "add_module", object(known->second));
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(&child)) {
      const std::string class_name = file_.claim(graph_module->class_name() + "_" + name);
      nested_ += class_source(*graph_module, class_name, file_, options_);
      assign(path, name, "add_module", class_name + "()");
      return adopt(child, full);
    }
    std::optional<std::string> call = constructor_call(child);
    const bool container = !call || call->ends_with("()");
    if (!call) {
      if (called_.contains(full) || in_sequential_)
        throw GraphError(ErrorCode::kUnknownModuleType,
                         "cannot write Python code for the submodule " + str_repr(full) +
                             " of class " + module_type_name(child) +
                             ": no class of torch.nn stands for it");
      call = "torch.nn.Module()";
    }
    assign(path, name, "add_module", *call + conversion(child));
    if (!container) return adopt(child, full);
    const bool outer = std::exchange(in_sequential_, call->find("Sequential") != std::string::npos);
    fill(child, full);
    in_sequential_ = outer;
  }

  // What a constructor made: ties, and parameters that are not trained.
  void adopt(const torch::nn::Module& module, const std::string& path) {
    for (const auto& item : module.named_parameters(/*recurse=*/true)) {
      const at::Tensor& tensor = item.value();
      if (!tensor.defined()) continue;
      const std::size_t dot = item.key().rfind('.');
      const std::string parent =
          dot == std::string::npos ? path : path + "." + item.key().substr(0, dot);
      const std::string leaf = item.key().substr(dot == std::string::npos ? 0 : dot + 1);
      if (tie(tensor, parent, leaf, "register_parameter")) continue;
      if (!tensor.requires_grad() && !dynamic_cast<const GraphModule*>(&module))
        line(attribute(object(parent), leaf) + ".requires_grad_(False)");
    }
  }

  // ".to(torch.float64)" where a module is not of the default type and device.
  std::string conversion(const torch::nn::Module& module) {
    for (const at::Tensor& tensor : module.parameters()) {
      if (!tensor.defined() || !tensor.is_floating_point()) continue;
      std::string out;
      if (tensor.scalar_type() != at::kFloat)
        out += ".to(" + dtype_repr(tensor.scalar_type()) + ")";
      if (!tensor.device().is_cpu()) {
        file_.imports.device = true;
        out += ".to(" + repr(Argument(tensor.device())) + ")";
      }
      return out;
    }
    return {};
  }

  // Tensors that the graph reads and that no module holds.
  void constants() {
    for (const Node& node : root_.graph().nodes()) {
      if (node.op() != Opcode::kGetAttr) continue;
      const std::string& path = node.target().str();
      if (root_.attr_kind(path) != GraphOwner::AttrKind::kConstant || !written_.insert(path).second)
        continue;
      const std::size_t dot = path.rfind('.');
      const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
      make_parents(parent);
      line(object(parent) + ".register_buffer(" +
           string_literal(path.substr(dot == std::string::npos ? 0 : dot + 1)) + ", " +
           values(root_.find_tensor(path), path) + ", persistent=False)");
    }
  }

  void make_parents(const std::string& path) {
    if (path.empty() || root_.find_submodule(path) || !written_.insert(path + ".").second) return;
    const std::size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
    make_parents(parent);
    assign(parent, path.substr(dot == std::string::npos ? 0 : dot + 1), "add_module",
           "torch.nn.Module()");
  }

  // Modules whose flag differs from that of the module around them.
  void training_flags(const torch::nn::Module& module, const std::string& path) {
    for (const auto& item : module.named_children()) {
      const std::string full = join(path, item.key());
      if (item.value()->is_training() != module.is_training())
        line(object(full) + ".train(" + (item.value()->is_training() ? "True" : "False") + ")");
      training_flags(*item.value(), full);
    }
  }

  const GraphModule& root_;
  File& file_;
  const PythonCodeOptions& options_;
  std::unordered_set<std::string> state_;   // keys of the state_dict
  std::unordered_set<std::string> called_;  // targets of call_module
  std::unordered_set<std::string> written_;
  std::unordered_map<const void*, std::string> tensors_;
  std::unordered_map<const torch::nn::Module*, std::string> modules_;
  bool in_sequential_ = false;
  std::string body_;
  std::string nested_;
};

}  // namespace

std::string class_source(const GraphModule& module, const std::string& class_name, File& file,
                         const PythonCodeOptions& options) {
  Init init(module, file, options);
  const std::string constructor = init.emit();
  const std::string forward = forward_source(module.graph(), file, options, 4);
  return init.nested_classes() + "\n\nclass " + class_name + "(torch.nn.Module):\n" + constructor +
         "\n" + forward;
}

}  // namespace fx::python
