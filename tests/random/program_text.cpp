// Programs as text and as GoogleTests in C++.

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <charconv>
#include <cmath>

#include "fx/graph/module_types.h"
#include "fx/graph/text.h"
#include "tests/random/minimise.h"

namespace fx::fuzz {
namespace {

std::string joined(at::IntArrayRef numbers) {
  std::string out;
  for (const std::int64_t number : numbers)
    out += (out.empty() ? "" : ", ") + std::to_string(number);
  return "{" + out + "}";
}

std::string number(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, value);
  std::string out(text, result.ptr);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

std::string dtype_name(at::ScalarType dtype) { return std::string("at::k") + c10::toString(dtype); }

// The elements in row-major order; then, where that is another one, the order they lie in.
std::string literal(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().flatten();
  std::string elements;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    if (i > 0) elements += ", ";
    if (flat.is_floating_point()) {
      elements += number(flat[i].item<double>());
    } else {
      const auto value = flat[i].item<std::int64_t>();
      elements += value == INT64_MIN ? "INT64_MIN" : std::to_string(value);
    }
  }
  std::string out = std::string(flat.is_floating_point() ? "floats(" : "integers(") +
                    dtype_name(tensor.scalar_type()) + ", " + joined(tensor.sizes()) + ", {" +
                    elements + "})";
  if (!tensor.is_contiguous() && tensor.unsafeGetTensorImpl()->is_non_overlapping_and_dense())
    out = "at::empty_strided(" + joined(tensor.sizes()) + ", " + joined(tensor.strides()) + ", " +
          dtype_name(tensor.scalar_type()) + ").copy_(" + out + ")";
  return out;
}

std::string flag(bool value) { return value ? "true" : "false"; }

template <typename Conv>
std::string conv(const Conv& layer, const std::string& name) {
  const auto& options = layer.options;
  return "torch::nn::" + name + "Impl>(torch::nn::" + name + "Options(" +
         std::to_string(options.in_channels()) + ", " + std::to_string(options.out_channels()) +
         ", " +
         joined(at::IntArrayRef(options.kernel_size()->data(), options.kernel_size()->size())) +
         ").bias(" + flag(layer.bias.defined()) + "))";
}

// "torch::nn::LinearImpl>(...)": what stands behind "std::make_shared<"; empty for a class that is
// not written.
std::string made(const torch::nn::Module& module) {
  using namespace torch::nn;
  if (const auto* m = dynamic_cast<const LinearImpl*>(&module))
    return "torch::nn::LinearImpl>(torch::nn::LinearOptions(" +
           std::to_string(m->options.in_features()) + ", " +
           std::to_string(m->options.out_features()) + ").bias(" + flag(m->options.bias()) + "))";
  if (const auto* m = dynamic_cast<const Conv1dImpl*>(&module)) return conv(*m, "Conv1d");
  if (const auto* m = dynamic_cast<const Conv2dImpl*>(&module)) return conv(*m, "Conv2d");
  if (const auto* m = dynamic_cast<const BatchNorm1dImpl*>(&module))
    return "torch::nn::BatchNorm1dImpl>(" + std::to_string(m->options.num_features()) + ")";
  if (const auto* m = dynamic_cast<const BatchNorm2dImpl*>(&module))
    return "torch::nn::BatchNorm2dImpl>(" + std::to_string(m->options.num_features()) + ")";
  if (const auto* m = dynamic_cast<const LayerNormImpl*>(&module))
    return "torch::nn::LayerNormImpl>(torch::nn::LayerNormOptions(" +
           joined(m->options.normalized_shape()) + "))";
  if (const auto* m = dynamic_cast<const EmbeddingImpl*>(&module))
    return "torch::nn::EmbeddingImpl>(" + std::to_string(m->options.num_embeddings()) + ", " +
           std::to_string(m->options.embedding_dim()) + ")";
  if (const auto* m = dynamic_cast<const ReLUImpl*>(&module))
    return "torch::nn::ReLUImpl>(torch::nn::ReLUOptions(" + flag(m->options.inplace()) + "))";
  if (const auto* m = dynamic_cast<const SoftmaxImpl*>(&module))
    return "torch::nn::SoftmaxImpl>(" + std::to_string(m->options.dim()) + ")";
  if (const auto* m = dynamic_cast<const DropoutImpl*>(&module))
    return "torch::nn::DropoutImpl>(" + number(m->options.p()) + ")";
  if (dynamic_cast<const TanhImpl*>(&module)) return "torch::nn::TanhImpl>()";
  if (dynamic_cast<const IdentityImpl*>(&module)) return "torch::nn::IdentityImpl>()";
  return {};
}

// Lines that make `variable`, a module with a graph, its attributes and what it calls.
void write_module(std::string& out, const GraphModule& module, const std::string& variable) {
  out += "  const auto " + variable + " = std::make_shared<GraphModule>(parse_text(R\"fx(" +
         to_text(module.graph()) + ")fx\"));\n  " + variable + "->eval();\n";
  std::set<std::string> done;
  auto starts_inside = [&](const std::string& path) {
    return std::ranges::any_of(done,
                               [&](const std::string& p) { return path.starts_with(p + "."); });
  };
  int nested = 0;
  std::string filled;
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    // Plain modules are paths only; setting what is behind them makes them.
    const torch::nn::Module& part = *item.value();
    if (starts_inside(item.key()) || typeid(part) == typeid(torch::nn::Module)) continue;
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(item.value().get())) {
      const std::string inner = variable + "_" + std::to_string(nested++);
      write_module(out, *graph_module, inner);
      out += "  " + variable + "->set_submodule(\"" + item.key() + "\", " + inner + ");\n";
      done.insert(item.key());
    } else if (find_module_type(*item.value())) {
      const std::string text = made(*item.value());
      const std::string name = "made" + std::to_string(done.size());
      if (text.empty()) {
        out += "#error \"no text for " + module_type_name(part) + "\"\n";
      } else {
        const std::string made_name = variable + "_" + name;
        out += "  const auto " + made_name + " = std::make_shared<" + text + ";\n";
        const auto tensors = part.parameters();
        if (!tensors.empty() && tensors[0].scalar_type() != at::kFloat)
          out += "  " + made_name + "->to(" + dtype_name(tensors[0].scalar_type()) + ");\n";
        out += "  " + made_name + "->train(" + flag(part.is_training()) + ");\n";
      }
      out += "  " + variable + "->set_submodule(\"" + item.key() + "\", " + variable + "_" + name +
             ");\n";
      done.insert(item.key());
    }
  }
  for (const auto& [path, tensor] : state_of(module)) {
    if (module.attr_kind(path) == GraphOwner::AttrKind::kConstant) {
      out += "  " + variable + "->set_constant(\"" + path + "\", " + literal(tensor) + ");\n";
    } else if (starts_inside(path)) {
      // Those of nested graphs were written with them.
      if (std::ranges::none_of(done, [&](const std::string& p) {
            return path.starts_with(p + ".") &&
                   dynamic_cast<const GraphModule*>(module.find_submodule(p).get());
          }))
        filled += "  fill(*" + variable + ", \"" + path + "\", " + literal(tensor) + ");\n";
    } else {
      const bool is_parameter = module.attr_kind(path) == GraphOwner::AttrKind::kParameter;
      out += "  " + variable + (is_parameter ? "->set_parameter(\"" : "->set_buffer(\"") + path +
             "\", " + literal(tensor) +
             (is_parameter && tensor.requires_grad() ? ".set_requires_grad(true)" : "") + ");\n";
    }
  }
  out += filled;
}

}  // namespace

std::string describe(const Program& program) {
  std::string out = to_text(program.module->graph());
  for (const auto& [path, tensor] : state_of(*program.module))
    out += "# " + path + " = " + literal(tensor) + "\n";
  for (const Value& input : program.inputs)
    out += "# input " + (input.isTensor() ? literal(input.toTensor()) : to_string(input)) + "\n";
  return out;
}

std::string cpp_test(const Program& program, const std::string& suite, const std::string& name,
                     const std::string& call, bool fails) {
  std::string out = "TEST(" + suite + ", " + name + ") {\n";
  write_module(out, *program.module, "module");
  out += "  module->recompile();\n  Program program;\n  program.module = module;\n";
  for (const Value& input : program.inputs)
    out += "  program.inputs.emplace_back(" +
           (input.isTensor() ? literal(input.toTensor()) : to_string(input)) + ");\n";
  if (program.writes) out += "  program.writes = true;\n";
  if (program.draws) out += "  program.draws = true;\n";
  if (program.active_dropout) out += "  program.active_dropout = true;\n";
  return out + "  EXPECT_" + (fails ? "NE(" : "EQ(") + call + ", \"\");\n}\n";
}

std::string report(const Program& program, const Failure& failure, const std::string& rerun) {
  const Program small = minimise(program, failure);
  return rerun + "\n" + failure.name + ": " + failure.message + "\n\nThe program, " +
         std::to_string(program.module->graph().size()) + " nodes:\n" +
         to_text(program.module->graph()) + "\nShrunk to " +
         std::to_string(small.module->graph().size()) + " nodes:\n" + describe(small) +
         "\nAs a test:\n" + cpp_test(small, "Found", "name_it", failure.call) +
         "\nfails with: " + failure.check(small) + "\n";
}

}  // namespace fx::fuzz
