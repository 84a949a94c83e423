#include "fx/passes/functionalize.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/analysis/call_aliases.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/boxed.h"
#include "fx/capture/functional_layout.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/recorder.h"
#include "fx/capture/value_sizes.h"
#include "fx/graph/module_path.h"
#include "fx/graph/subgraphs.h"
#include "fx/graph/tensor_copies.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/nested.h"

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
  at::Tensor content() const { return functional_content(wrapper); }
};

// Runs a graph in a capture, and refuses what would hold for the values of the example alone: a
// number that the run reads and the graph does more with than checking it.
class CheckedRun : public Interpreter {
 public:
  explicit CheckedRun(GraphModule& module) : Interpreter(module), module_(module) {}

  Value run_node(Node& node) override {
    if (higher_order_of(node)) hangs_on_value(node);
    // What nobody checks any more is no check of the result.
    if (node.op() == Opcode::kCallFunction && node.num_users() == 0 && !node.is_impure()) return {};
    const std::size_t before = Recorder::active().num_values_read();
    Value value = Interpreter::run_node(node);
    const bool reads = Recorder::active().num_values_read() > before;
    const bool is_checked = (value.isScalar() || value.isBool()) && only_guards_read(node);
    if (reads && !is_checked && !node.calls("torch._assert") && !is_nested(node))
      hangs_on_value(node);
    return value;
  }

  Value call_module(std::string_view target, Values args, KwValues kwargs) override {
    GraphModule* nested = kwargs.empty() ? nested_graph(target) : nullptr;
    if (!nested) return Interpreter::call_module(target, std::move(args), std::move(kwargs));
    return CheckedRun(*nested).run(std::move(args));
  }

 private:
  GraphModule* nested_graph(std::string_view path) const {
    const auto* found = ModulePath(path).find_module(module_);
    return found ? dynamic_cast<GraphModule*>(found->get()) : nullptr;
  }

  // Whether the nodes of a called graph are judged one by one.
  bool is_nested(const Node& node) const {
    return node.op() == Opcode::kCallModule && node.kwargs().empty() &&
           nested_graph(node.target().str());
  }

  [[noreturn]] static void hangs_on_value(const Node& node) {
    not_functional(node.format_node() +
                   " reads a value: the result would hold for that of the example alone");
  }

  GraphModule& module_;
};

// Runs a graph on wrappers, so that every operator goes through LibTorch's functionalization.
class FunctionalRun : public CheckedRun {
 public:
  explicit FunctionalRun(GraphModule& module) : CheckedRun(module) {}

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
    for (const bool inputs : {false, true})
      for (const Shared& each : shared_) {
        if (each.is_input != inputs || each.content().is_same(each.original)) continue;
        check(each);
        out.push_back(each);
      }
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
  if (value.isTensor()) return functional_content(value.toTensor());
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
  // As the capture was told to.
  options.guard_values = !module.meta().contains("values_unchecked");
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

// The argument that a call gives back or makes a view of without a write, or null.
Node* viewed_value(const Node& node, CallAliasTable& table) {
  if (node.op() != Opcode::kCallFunction || node.num_args() == 0) return nullptr;
  const CallAliases::Arg first = table.of(node).at(0);
  const bool is_view = node.calls("operator.getitem") || (first.returned && !first.written);
  return is_view ? node.arg(0).node_or_null() : nullptr;
}

// Ends the graph by copies, and gives results from behind them: what is the new content of an input
// is that input, and what is a view of the content is a view of the input.
class Ending {
 public:
  explicit Ending(Graph& graph) : graph_(graph) {}

  void copy_back(const Shared& shared, Node& content) {
    moved_[&content] = &graph_.call_function("aten::copy_", {shared_node(graph_, shared), content});
  }

  Node* moved(Node& node) {
    if (const auto found = moved_.find(&node); found != moved_.end()) return found->second;
    Node* viewed = viewed_value(node, table_);
    Node* base = viewed ? moved(*viewed) : nullptr;
    if (!base) return moved_[&node] = nullptr;
    Args args(node.args().begin(), node.args().end());
    args[0] = *base;
    return moved_[&node] = &graph_.call_function(
               node.target(), std::move(args), Kwargs(node.kwargs().begin(), node.kwargs().end()));
  }

 private:
  Graph& graph_;
  CallAliasTable table_;
  std::unordered_map<const Node*, Node*> moved_;
};

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
  Ending ending(graph);
  for (std::size_t i = 0; i < written.size(); ++i) ending.copy_back(written[i], contents[i].node());
  output.update_arg(0, result.map_nodes([&](Node& node) -> Argument {
    Node* moved = ending.moved(node);
    return moved ? *moved : node;
  }));
}

// Gives parameters, buffers and constants the contents back that they had, however a run ends.
class StateGuard {
 public:
  explicit StateGuard(GraphModule& module) {
    for (const at::Tensor& parameter : module.parameters()) keep(parameter);
    for (const at::Tensor& buffer : module.buffers()) keep(buffer);
    for_each_graph_module(module, [&](GraphModule& nested) {
      for (const auto& [path, constant] : nested.constants()) keep(constant);
    });
  }
  ~StateGuard() {
    const at::NoGradGuard no_grad;
    for (const Kept& each : kept_)
      if (each.tensor._version() != each.version) each.tensor.copy_(each.content);
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  struct Kept {
    at::Tensor tensor, content;
    std::int64_t version;
  };

  void keep(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    if (tensor.defined()) kept_.push_back({tensor, tensor.clone(), tensor._version()});
  }

  std::vector<Kept> kept_;
};

// The module as operators. Running it on the inputs leaves them and its attributes as they were.
std::shared_ptr<GraphModule> without_modules(GraphModule& module, const Values& inputs) {
  const at::NoGradGuard no_grad;
  const StateGuard state(module);
  // With strides, gaps and shared memory as they are: what is a view of them must be one here.
  TensorCopies copy;
  std::vector<at::Tensor> copies;
  for (const at::Tensor& input : tensors_of(inputs, module.graph())) copies.push_back(copy(input));
  MakeFxOptions options;
  options.class_name = module.class_name();
  for (const Node* input : module.graph().placeholders())
    options.input_names.emplace_back(input->name());
  return record_program(module, copies, options, [&](std::vector<at::Tensor>& tensors) {
    return to_trace_arg(CheckedRun(module).run(Values(tensors.begin(), tensors.end())));
  });
}

// Whether all writes are copies to inputs and attributes at the end, as this pass leaves them, with
// views of what they wrote to behind them.
bool is_functional(const Graph& graph, const AliasAnalysis& aliases) {
  bool at_the_end = false;
  CallAliasTable table;
  for (const Node& node : graph.nodes()) {
    if (node.is_output() || node.op() == Opcode::kGetAttr) continue;
    const bool writes = !aliases.writes(node).empty();
    if (at_the_end && !writes && !viewed_value(node, table)) return false;
    if (!writes) continue;
    const bool is_copy = node.calls("aten::copy_") && node.num_args() > 0;
    const Node* target = is_copy ? node.arg(0).node_or_null() : nullptr;
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
      source = without_modules(module, example_inputs);
  std::vector<Shared> written;
  const std::shared_ptr<GraphModule> made =
      recorded(source ? *source : module, example_inputs, written);
  for (const Shared& each : written)
    if (!each.is_input && !module.find_tensor(each.name).defined())
      not_functional(
          "a constant of a nested graph is written to, and nobody would see that any more: make it "
          "a "
          "buffer");
  if (has_size_checks(made->graph()) && !has_size_checks((source ? *source : module).graph()))
    not_functional(
        "sizes that depend on values (nonzero, masks) would be fixed to those of the example: "
        "use masks (torch::where) instead");
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
  std::vector<std::string> names;
  for (const Shared& each : written) names.push_back(each.name);
  const auto rewrites = static_cast<std::int64_t>(names.size());
  module.set_mutations(std::move(names));
  return {.changed = true, .rewrites = rewrites};
}

}  // namespace fx
