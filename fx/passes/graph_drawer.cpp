#include "fx/passes/graph_drawer.h"

#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/hash.h"
#include "fx/base/text.h"
#include "fx/graph/dot.h"
#include "fx/graph/readable.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/attribute_uses.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/tools_common.h"

namespace fx {
namespace {

// Colours for calls; the target says which.
constexpr std::string_view kColors[] = {
    "CadetBlue1", "Coral",      "DarkOliveGreen1", "DarkSeaGreen1",
    "GhostWhite", "Khaki1",     "LavenderBlush1",  "LightSkyBlue",
    "MistyRose1", "MistyRose2", "PaleTurquoise2",  "PeachPuff1",
    "Salmon",     "Thistle1",   "Thistle3",        "Wheat1"};

std::string color_of(const Node& node) {
  switch (node.op()) {
    case Opcode::kPlaceholder:
      return "AliceBlue";
    case Opcode::kGetAttr:
      return "LightGrey";
    case Opcode::kCallModule:
      return "LemonChiffon1";
    case Opcode::kOutput:
      return "PowderBlue";
    default:
      break;
  }
  // The same in every process, unlike std::hash.
  Hasher hasher;
  hasher.add(node.target().str());
  return std::string(kColors[hasher.value() % std::size(kColors)]);
}

std::string tuple_text(const std::vector<std::int64_t>& items) {
  std::string out = "(";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + std::to_string(items[i]);
  return out + (items.size() == 1 ? ",)" : ")");
}

void add_meta(const NestedTensorMeta& meta, std::vector<std::string>& lines) {
  if (const TensorMeta* tensor = meta.tensor()) {
    lines.push_back("dtype=" + dtype_repr(tensor->dtype));
    lines.push_back("shape=" + tuple_text(tensor->shape));
    lines.push_back(std::string("requires_grad=") + (tensor->requires_grad ? "True" : "False"));
    lines.push_back("stride=" + tuple_text(tensor->stride));
  } else if (const auto* items = meta.items()) {
    for (const NestedTensorMeta& item : *items) add_meta(item, lines);
  }
}

std::vector<std::string> argument_lines(const Node& node, const GraphDrawerOptions& options) {
  Args args(node.args().begin(), node.args().end());
  Kwargs kwargs(node.kwargs().begin(), node.kwargs().end());
  if (options.normalize_args)
    if (auto keywords = normalized_arguments(node)) {
      args.clear();
      kwargs = std::move(*keywords);
    }
  if (options.skip_node_names_in_args) {
    std::erase_if(args, [](const Argument& arg) { return arg.has_nodes(); });
    std::erase_if(kwargs, [](const KwArg& kwarg) { return kwarg.value.has_nodes(); });
  }
  std::vector<std::string> lines;
  if (!args.empty()) lines.push_back("args=" + repr(std::span<const Argument>(args), "%"));
  if (!kwargs.empty()) lines.push_back("kwargs=" + repr(std::span<const KwArg>(kwargs), "%"));
  return lines;
}

std::vector<std::string> label_of(const GraphModule& module, const Node& node,
                                  const GraphDrawerOptions& options) {
  std::vector<std::string> lines{"name=%" + std::string(node.name()),
                                 "op_code=" + std::string(opcode_name(node.op()))};
  if (node.op() == Opcode::kCallModule) lines.push_back(get_node_target(module, node));
  lines.push_back("target=" + node.target().str());
  for (std::string& line : argument_lines(node, options)) lines.push_back(std::move(line));
  lines.push_back("num_users=" + std::to_string(node.num_users()));
  if (const TensorMeta* tensor = tensor_meta(node)) {
    NestedTensorMeta meta;
    meta.data = *tensor;
    add_meta(meta, lines);
  } else if (const auto* nested = node.meta().get<NestedTensorMeta>("tensor_meta")) {
    add_meta(*nested, lines);
  }
  if (options.parse_stack_trace)
    if (std::string place = stack_trace_summary(node.stack_trace()); !place.empty())
      lines.push_back(std::move(place));
  return lines;
}

// The tensors of a called module that has no graph of its own.
std::vector<std::vector<std::string>> tensors_of(const GraphModule& module, const Node& node) {
  std::vector<std::vector<std::string>> out;
  if (node.op() != Opcode::kCallModule) return out;
  const auto called = module.find_submodule(node.target().str());
  if (!called || dynamic_cast<const GraphModule*>(called.get())) return out;
  auto add = [&](const std::string& path, const at::Tensor& tensor, const char* kind) {
    if (!tensor.defined()) return;
    out.push_back({std::string(node.name()) + "." + path, std::string("op_code=") + kind,
                   dtype_repr(tensor.scalar_type()) + tuple_text(tensor.sizes().vec())});
  };
  for (const auto& entry : called->named_parameters())
    add(entry.key(), entry.value(), "get_parameter");
  for (const auto& entry : called->named_buffers()) add(entry.key(), entry.value(), "get_buffer");
  return out;
}

void collect(const GraphModule& module, const std::string& name,
             std::map<std::string, const GraphModule*>& out) {
  if (!out.emplace(name, &module).second) return;
  for (const Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kCallModule) continue;
    const auto called = module.find_submodule(node.target().str());
    if (const auto* nested = dynamic_cast<const GraphModule*>(called.get()))
      collect(*nested, name + "_" + flat_path(node.target().str()), out);
  }
}

}  // namespace

std::string FxGraphDrawer::draw(const GraphModule& module, const std::string& title) const {
  DotOptions dot{.title = title, .shape = options_.dot_graph_shape};
  dot.label = [&](const Node& node) { return label_of(module, node, options_); };
  dot.color = color_of;
  if (options_.ignore_getattr)
    dot.skip = [](const Node& node) { return node.op() == Opcode::kGetAttr; };
  if (!options_.ignore_parameters_and_buffers)
    dot.sources = [&](const Node& node) { return tensors_of(module, node); };
  return to_dot(module.graph(), dot);
}

std::string FxGraphDrawer::get_dot_graph(const std::string& submod_name) const {
  std::map<std::string, const GraphModule*> modules;
  collect(module_, name_, modules);
  const std::string& wanted = submod_name.empty() ? name_ : submod_name;
  const auto found = modules.find(wanted);
  if (found == modules.end()) {
    std::vector<std::string> known;
    for (const auto& [name, module] : modules) known.push_back(name);
    const std::string near = nearest(wanted, known);
    throw GraphError(ErrorCode::kMissingAttribute,
                     "there is no picture of the name " + str_repr(wanted) +
                         (near.empty() ? "" : "; did you mean " + str_repr(near) + "?"));
  }
  return draw(*found->second, wanted);
}

std::map<std::string, std::string> FxGraphDrawer::get_all_dot_graphs() const {
  std::map<std::string, const GraphModule*> modules;
  collect(module_, name_, modules);
  std::map<std::string, std::string> out;
  for (const auto& [name, module] : modules) out.emplace(name, draw(*module, name));
  return out;
}

}  // namespace fx
