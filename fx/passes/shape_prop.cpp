#include "fx/passes/shape_prop.h"

#include <exception>

#include "fx/base/error.h"
#include "fx/graph/tensor_meta.h"
#include "fx/ops/higher_order.h"
#include "fx/passes/graph_stand_in.h"
#include "fx/passes/isolation.h"
#include "fx/passes/tools_common.h"

namespace fx {
void ShapeProp::record_value(Node& node, const Value& value) {
  set_tensor_meta(node, NestedTensorMeta(value));
  node.meta().set("type", std::any(type_text(value)));
}

Value ShapeProp::call_function(const Target& target, Values args, KwValues kwargs) {
  if (find_higher_order(*target.function()) != nullptr)
    for (Value& arg : args)
      if (auto graph = graph_of_value(arg))
        arg = graph_stand_in(std::move(graph), [](GraphModule& nested, Values inputs) {
          return ShapeProp(nested).run(std::move(inputs));
        });
  return Interpreter::call_function(target, std::move(args), std::move(kwargs));
}

Value ShapeProp::propagate(Values inputs) {
  const Isolation isolation(target_, inputs);
  try {
    // A result that is a buffer must not change when the buffer gets its own memory back.
    return clone_tensors(run(std::move(inputs)));
  } catch (const Error& error) {
    std::throw_with_nested(RunError(error.code(), "ShapeProp error for: " + error.text()));
  }
}

PassResult shape_prop(GraphModule& module, const Values& example_inputs) {
  std::vector<std::optional<TensorMeta>> before;
  for (const Node& node : module.graph().nodes()) {
    const TensorMeta* meta = tensor_meta(node);
    before.push_back(meta ? std::optional(*meta) : std::nullopt);
  }
  ShapeProp(module).propagate(example_inputs);
  PassResult result;
  std::size_t index = 0;
  for (const Node& node : module.graph().nodes()) {
    const TensorMeta* meta = tensor_meta(node);
    result.rewrites += meta && (!before[index] || !(*before[index] == *meta));
    ++index;
  }
  return result;
}

}  // namespace fx
