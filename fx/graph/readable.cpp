#include "fx/graph/readable.h"

#include <ATen/core/Tensor.h>

#include <iostream>
#include <sstream>

#include "fx/base/text.h"
#include "fx/graph/module_access.h"
#include "fx/graph/python_forward.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

std::string shown(const TensorMeta& meta, bool include_stride, bool include_device) {
  auto list = [](const std::vector<std::int64_t>& numbers) {
    std::string out = "[";
    for (std::size_t i = 0; i < numbers.size(); ++i)
      out += (i ? ", " : "") + std::to_string(numbers[i]);
    return out + "]";
  };
  return std::string(short_dtype_name(meta.dtype)) + list(meta.shape) +
         (include_stride ? list(meta.stride) : "") + (include_device ? meta.device.str() : "");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string indented(const std::string& text, std::size_t blanks) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    if (!line.empty()) out += std::string(blanks, ' ');
    out += std::string(line) + "\n";
  }
  return out;
}

std::string forward_of(const GraphModule& module, const PythonCodeOptions& options) {
  python::File file;
  file.claim(module.class_name());
  return python::forward_source(module.graph(), file, options, 4);
}

}  // namespace

std::string shown_tensor_meta(const Node& node, bool include_stride, bool include_device) {
  for (const char* key : {"val", "tensor_meta", "example_value"}) {
    if (const auto* tensor = node.meta().get<at::Tensor>(key); tensor && tensor->defined())
      return shown(TensorMeta(*tensor), include_stride, include_device);
    if (const auto* meta = node.meta().get<TensorMeta>(key))
      return shown(*meta, include_stride, include_device);
  }
  return {};
}

std::string format_node_with_tensor_meta(const Node& node) {
  std::string text = node.format_node();
  const std::string meta = shown_tensor_meta(node, true, true);
  const std::size_t users = text.find("[num_users=");
  if (meta.empty() || users == std::string::npos) return text;
  return text.insert(users, "Tensor \"" + meta + "\" ");
}

std::string stack_trace_summary(std::string_view stack_trace) {
  const std::vector<std::string_view> lines = lines_of(stack_trace);
  for (std::size_t i = lines.size(); i-- > 0;) {
    std::string_view line = trimmed(lines[i]);
    if (!line.starts_with("File \"")) continue;
    line.remove_prefix(6);
    const std::size_t quote = line.find("\", line ");
    if (quote == std::string_view::npos) continue;
    std::string_view place = line.substr(quote + 8);  // "3, in forward"
    const std::size_t comma = place.find(", in ");
    if (comma == std::string_view::npos) continue;
    std::string out = "File: " + std::string(line.substr(0, quote)) + ":" +
                      std::string(place.substr(0, comma)) + " in " +
                      std::string(place.substr(comma + 5));
    if (i + 1 < lines.size()) out += ", code: " + std::string(trimmed(lines[i + 1]));
    return out;
  }
  if (!lines.empty() && lines.front().starts_with("frame #")) return std::string(lines.front());
  return {};
}

std::string readable_code(const GraphModule& module, PythonCodeOptions options) {
  options.verbose = true;
  std::string out =
      "class " + module.class_name() + "(torch.nn.Module):\n" + forward_of(module, options);
  for (const auto& child : detail::children(module))
    if (const auto* nested = dynamic_cast<const GraphModule*>(child.value().get()))
      out += "\n" + indented(readable_code(*nested, options), 4);
  return out;
}

void print_readable(const GraphModule& module, const PythonCodeOptions& options) {
  print_readable(module, std::cout, options);
}

void print_readable(const GraphModule& module, std::ostream& out,
                    const PythonCodeOptions& options) {
  out << readable_code(module, options);
}

std::string to_string(const GraphModule& module) {
  std::ostringstream out;
  out << static_cast<const torch::nn::Module&>(module) << "\n\n"
      << forward_of(module, {}) << "\n# print_readable shows shapes and origins\n";
  return out.str();
}

std::string format_graph_code(std::string_view title, const GraphModule& module,
                              const PythonCodeOptions& options) {
  return "TRACED GRAPH\n===== " + std::string(title) + " =====\n" + readable_code(module, options);
}

std::string get_node_context(const Node& node, std::size_t num_nodes) {
  std::string out;
  const Node* at = &node;
  for (std::size_t i = 0; i < num_nodes && at; ++i, at = at->prev())
    out = at->format_node() + (out.empty() ? "" : "\n") + out;
  return out;
}

}  // namespace fx
