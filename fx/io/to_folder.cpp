#include "fx/io/to_folder.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/cpp_code.h"
#include "fx/graph/cpp_values.h"
#include "fx/graph/module_access.h"
#include "fx/io/atomic_file.h"
#include "fx/io/folder_templates.h"
#include "fx/io/shown.h"
#include "fx/io/value_meta.h"

namespace fx {
namespace io {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// All tensors that generated code may name: also those of nested graphs and their constants.
void collect(const torch::nn::Module& module, const std::string& path, NamedTensors& out) {
  for (const auto* dict : {&detail::parameters(module), &detail::buffers(module)})
    for (const auto& item : *dict)
      if (item.value().defined())
        out.emplace_back(detail::join_path(path, item.key()), item.value());
  if (const auto* graph_module = dynamic_cast<const GraphModule*>(&module))
    for (const Node& node : graph_module->graph().nodes()) {
      const std::string& target = node.target().str();
      if (node.op() == Opcode::kGetAttr &&
          graph_module->attr_kind(target) == GraphOwner::AttrKind::kConstant)
        out.emplace_back(detail::join_path(path, target), graph_module->find_tensor(target));
    }
  for (const auto& item : detail::children(module))
    if (item.value()) collect(*item.value(), detail::join_path(path, item.key()), out);
}

/// The bytes of the tensors, one after the other, each tensor once; and the table of them.
struct Weights {
  std::vector<at::Tensor> tensors;  // dense
  std::string table;
};

Weights pack(const GraphModule& module) {
  NamedTensors named;
  collect(module, "", named);
  Weights weights;
  std::unordered_map<const c10::TensorImpl*, std::uint64_t> offsets;
  std::unordered_map<std::string, bool> seen;
  std::uint64_t end = 0;
  for (const auto& [path, tensor] : named) {
    if (!seen.emplace(path, true).second) continue;
    if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_meta())
      throw ImportError(ErrorCode::kNotSavable,
                        "cannot write the tensor " + shown(path) + ": a dense one is wanted");
    const auto [found, added] = offsets.emplace(tensor.unsafeGetTensorImpl(), end);
    if (added) {
      weights.tensors.push_back(
          tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous());
      // Each starts aligned.
      end += (weights.tensors.back().nbytes() + 63) / 64 * 64;
    }
    std::string sizes;
    for (const std::int64_t size : tensor.sizes())
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    weights.table += "      {" + cpp::string_literal(path) +
                     ", at::ScalarType::" + at::toString(tensor.scalar_type()) + ", {" + sizes +
                     "}, " + std::to_string(found->second) + "},\n";
  }
  return weights;
}

// "f32[1, 3]" of an input whose shape is known; symbols are their least value.
std::string example_of(const GraphModule& module, const Node& input) {
  if (input.num_args() > 0) {
    const Argument& value = input.arg(0);
    return value.kind() == Argument::Kind::kString ? value.to_string() : repr(value);
  }
  std::string text;
  auto add = [&](std::int64_t size) {
    text += (text.ends_with('[') ? "" : ",") + std::to_string(size);
  };
  for (const InputGuard& guard : module.input_guards()) {
    if (guard.input != input.target().str()) continue;
    text = std::string(short_dtype_name(guard.dtype)) + "[";
    for (const InputGuard::Dim& dim : guard.dims) add(dim.size.value_or(dim.min.value_or(1)));
    return text + "]";
  }
  return text;
}

std::string examples(const GraphModule& module) {
  std::string out;
  for (const Node* input : module.graph().placeholders())
    out += "    {" + cpp::string_literal(input->target().str()) + ", " +
           cpp::string_literal(example_of(module, *input)) + "},\n";
  return out;
}

std::string filled(std::string text, const std::string& name,
                   const std::vector<std::pair<std::string_view, std::string>>& parts = {}) {
  auto replace = [&](std::string_view mark, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size())
      text.replace(at, mark.size(), with);
  };
  replace("@NAME@", name);
  for (const auto& [mark, with] : parts) replace(mark, with);
  return text;
}

void write(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_weights(const std::string& path, const Weights& weights) {
  AtomicFile file(path);
  for (const at::Tensor& tensor : weights.tensors) {
    const auto size = static_cast<std::size_t>(tensor.nbytes());
    file.write(std::span(static_cast<const std::byte*>(tensor.const_data_ptr()), size));
    file.write(std::string((64 - size % 64) % 64, '\0'));
  }
  file.commit();
}

}  // namespace
}  // namespace io

void to_folder(const GraphModule& module, const std::string& folder, const std::string& name) {
  if (!is_identifier(name))
    throw GraphError(ErrorCode::kBadName, str_repr(name) +
                                              " cannot name a program: letters, "
                                              "digits and _ are wanted");
  const std::string code = cpp_code(module.graph(), {.name_space = name});
  const io::Weights weights = io::pack(module);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw ImportError(ErrorCode::kWriteFailed,
                      "Cannot make the folder " + io::shown(folder) + ": " + error.message());
  auto path = [&](const std::string& file) {
    return (std::filesystem::path(folder) / file).string();
  };
  io::write_weights(path("weights.bin"), weights);
  io::write(path("weights.h"), io::filled(io::kWeightsHeader, name, {{"@TABLE@", weights.table}}));
  io::write(path(name + ".h"), "#pragma once\n\n" + code);
  io::write(path("main.cpp"),
            io::filled(io::kMainProgram, name,
                       {{"@WEIGHTS@", "weights.h"}, {"@INPUTS@", io::examples(module)}}));
  io::write(path("CMakeLists.txt"), io::filled(io::kCMakeLists, name));
  io::write(path("README.md"), io::filled(io::kReadme, name));
}

}  // namespace fx
