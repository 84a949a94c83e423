#include "fx/passes/functionalize.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/boxed.h"
#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/decompose.h"

namespace fx {
namespace {

namespace functional = at::functionalization::impl;

[[noreturn]] void not_functional(const std::string& text) {
  throw PassError(ErrorCode::kNotFunctional, "functionalize: " + text);
}

// A tensor that the graph shares with its callers, and the wrapper that stands for it in the run.
struct Shared {
  std::string name;
  bool is_input;
  at::Tensor original;
  at::Tensor wrapper;

  // The content at the end of the run; the tensor itself if nothing was written.
  at::Tensor content() const {
    functional::sync(wrapper);
    return functional::from_functional_tensor(wrapper);
  }
};

// Runs a graph on wrappers, so that every operator goes through LibTorch's functionalization.
class FunctionalRun : public Interpreter {
 public:
  explicit FunctionalRun(GraphModule& module) : Interpreter(module) {}

  Value wrapped_input(const std::string& name, const at::Tensor& tensor) {
    return wrapped(name, true, tensor);
  }

  Value get_attr(std::string_view target, Values args, KwValues kwargs) override {
    Value value = Interpreter::get_attr(target, std::move(args), std::move(kwargs));
    if (!value.isTensor()) return value;
    const at::Tensor tensor = value.toTensor();
    auto found = attributes_.find(tensor.unsafeGetTensorImpl());
    if (found == attributes_.end())
      found =
          attributes_
              .emplace(tensor.unsafeGetTensorImpl(), wrapped(std::string(target), false, tensor))
              .first;
    return found->second;
  }

  // Attributes and inputs that were written to, attributes first.
  std::vector<Shared> written() const {
    std::vector<Shared> out;
    for (const Shared& each : shared_) {
      if (each.content().is_same(each.original)) continue;
      check(each);
      out.push_back(each);
    }
    std::stable_partition(out.begin(), out.end(),
                          [](const Shared& each) { return !each.is_input; });
    return out;
  }

 private:
  Value wrapped(const std::string& name, bool is_input, const at::Tensor& tensor) {
    shared_.push_back({name, is_input, tensor, functional::to_functional_tensor(tensor)});
    return shared_.back().wrapper;
  }

  void check(const Shared& each) const {
    const std::string what = (each.is_input ? "input " : "attribute ") + str_repr(each.name);
    const at::Tensor content = each.content();
    if (content.sizes() != each.original.sizes() || content.dtype() != each.original.dtype())
      not_functional(what + " becomes " + describe(content) + ", and was " +
                     describe(each.original) +
                     ": a functional graph can give it other contents, but no other shape");
    for (const Shared& other : shared_)
      if (&other != &each && other.original.is_alias_of(each.original))
        not_functional(what + " is written to and shares memory with " + str_repr(other.name) +
                       ": copy one of them");
  }

  std::vector<Shared> shared_;
  std::unordered_map<const c10::TensorImpl*, Value> attributes_;
};

// Tensors instead of wrappers.
Value unwrapped(const Value& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return value;
    functional::sync(tensor);
    return functional::from_functional_tensor(tensor);
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict out(dict.keyType(), c10::AnyType::get());
    for (const auto& item : dict) out.insert(item.key(), unwrapped(item.value()));
    return out;
  }
  if (!value.isList() && !value.isTuple()) return value;
  Values items = elements(value);
  for (Value& item : items) item = unwrapped(item);
  if (value.isTuple()) return c10::ivalue::Tuple::create(std::move(items));
  c10::List<Value> list(c10::AnyType::get());
  for (Value& item : items) list.push_back(std::move(item));
  return list;
}

std::vector<at::Tensor> tensors_of(const Values& inputs, const Graph& graph) {
  const std::size_t wanted = graph.placeholders().size();
  if (inputs.size() != wanted)
    not_functional("found " + std::to_string(inputs.size()) + " example inputs, wanted " +
                   std::to_string(wanted) + " tensors");
  std::vector<at::Tensor> out;
  for (const Value& input : inputs) {
    if (!input.isTensor()) not_functional("an input is " + describe(input) + ", wanted tensors");
    out.push_back(input.toTensor());
  }
  return out;
}

// The functional graph with the output (result, (written values)).
std::shared_ptr<GraphModule> recorded(GraphModule& module, const Values& inputs,
                                      std::vector<Shared>& written) {
  MakeFxOptions options;
  options.class_name = module.class_name();
  const std::vector<Node*> placeholders = module.graph().placeholders();
  for (const Node* input : placeholders) options.input_names.emplace_back(input->name());
  const at::NoGradGuard no_grad;
  const auto run = [&](std::vector<at::Tensor>& tensors) {
    const c10::impl::IncludeDispatchKeyGuard functionalizes(c10::DispatchKey::Functionalize);
    const functional::FunctionalizationReapplyViewsGuard views(true);
    FunctionalRun interpreter(module);
    Values values;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      values.push_back(interpreter.wrapped_input(placeholders[i]->target().str(), tensors[i]));
    const Value result = unwrapped(interpreter.run(std::move(values)));
    written = interpreter.written();
    std::vector<TraceArg> contents;
    for (const Shared& each : written) contents.emplace_back(each.content());
    return TraceArg::tuple({to_trace_arg(result), TraceArg::tuple(std::move(contents))});
  };
  try {
    return record_program(module, tensors_of(inputs, module.graph()), options, run);
  } catch (const RunError& error) {
    // LibTorch says in its own words what it cannot make functional.
    const std::string text = error.what();
    if (text.find("unctional") == std::string::npos) throw;
    not_functional(error.text());
  }
}

Node& shared_node(Graph& graph, const Shared& shared) {
  for (Node& node : graph.nodes())
    if ((shared.is_input ? node.is_placeholder() : node.op() == Opcode::kGetAttr) &&
        node.target().str() == shared.name)
      return node;
  return graph.get_attr(shared.name);
}

// Ends the graph as the options want it, instead of with (result, (written values)).
void end_graph(Graph& graph, const std::vector<Shared>& written, bool copy_back) {
  Node& output = graph.output_node();
  const Argument both = output.arg(0);
  const Argument result = both.items()[0];
  const std::span<const Argument> contents = both.items()[1].items();
  if (!copy_back) {
    std::vector<Argument> all(contents.begin(), contents.end());
    if (result.kind() == Argument::Kind::kTuple || result.kind() == Argument::Kind::kList)
      all.insert(all.end(), result.items().begin(), result.items().end());
    else
      all.push_back(result);
    output.update_arg(0, Argument::tuple(std::move(all)));
    return;
  }
  const auto point = graph.inserting_before(output);
  std::map<const Node*, Node*> copies;
  for (std::size_t i = 0; i < written.size(); ++i) {
    Node& content = contents[i].node();
    copies[&content] =
        &graph.call_function("aten::copy_", {shared_node(graph, written[i]), content});
  }
  // A result that is the new content of an input is that input.
  output.update_arg(0, result.map_nodes([&](Node& node) -> Argument {
    const auto copy = copies.find(&node);
    return copy == copies.end() ? node : *copy->second;
  }));
}

// Whether all writes are copies to inputs and attributes at the end, as this pass leaves them.
bool is_functional(const Graph& graph, const AliasAnalysis& aliases) {
  bool at_the_end = false;
  for (const Node& node : graph.nodes()) {
    if (node.is_output() || node.op() == Opcode::kGetAttr) continue;
    const bool writes = !aliases.writes(node).empty();
    if (at_the_end && !writes) return false;
    if (!writes) continue;
    const Node* target = node.calls("aten::copy_") ? node.arg(0).node_or_null() : nullptr;
    if (!target || !(target->is_placeholder() || target->op() == Opcode::kGetAttr)) return false;
    at_the_end = true;
  }
  return true;
}

}  // namespace

PassResult functionalize(GraphModule& module, const Values& example_inputs,
                         const FunctionalizeOptions& options) {
  const AliasAnalysis before(module.graph());
  if (options.copy_back ? is_functional(module.graph(), before) : !before.has_writes()) return {};
  std::shared_ptr<GraphModule> source;
  for (const Node& node : module.graph().nodes())
    if (!source && node.op() == Opcode::kCallModule)
      source = decompose(module, {}, tensors_of(example_inputs, module.graph()));
  std::vector<Shared> written;
  const std::shared_ptr<GraphModule> made =
      recorded(source ? *source : module, example_inputs, written);
  const AliasAnalysis aliases(made->graph());
  for (const Node& node : made->graph().nodes())
    if (!node.is_output() && !aliases.writes(node).empty())
      not_functional(node.format_node() + " writes and has no functional form in LibTorch");
  end_graph(made->graph(), written, options.copy_back);
  made->graph().eliminate_dead_code();  // views that only writes went through
  for (const auto& [path, tensor] : made->constants())
    if (!module.find_tensor(path).defined()) module.set_constant(path, tensor);
  module.set_graph(made->graph_ptr());
  if (!options.copy_back && !written.empty()) module.set_specs(module.in_spec(), std::nullopt);
  module.set_input_guards(made->input_guards());
  Mutations names;
  for (const Shared& each : written) names.push_back(each.name);
  const auto rewrites = static_cast<std::int64_t>(names.size());
  module.meta().set("mutations", std::move(names));
  return {.changed = true, .rewrites = rewrites};
}

}  // namespace fx
