#include "fx/capture/control_flow.h"

#include <string>
#include <utility>

#include "fx/base/error.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/tracer.h"
#include "fx/ops/call.h"
#include "fx/ops/higher_order.h"

namespace fx {
namespace {

/// The arguments of a call, for both ways.
class Call {
 public:
  explicit Call(const char* name) : name_(std::string(kHigherOrderPrefix) + name) {}

  void add(const at::Tensor& tensor) {
    look(tensor);
    traced_.emplace_back(tensor);
    values_.emplace_back(tensor);
  }
  void add(const std::shared_ptr<GraphModule>& graph) {
    if (!graph)
      throw TraceError(ErrorCode::kBadArgument, name_ + ": a graph is missing, null was passed");
    traced_.emplace_back(graph);
    values_.push_back(Value::make_capsule(c10::make_intrusive<ModuleValue>(graph)));
  }
  void add(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) look(tensor);
    traced_.push_back(TraceArg::tuple({tensors.begin(), tensors.end()}));
    values_.push_back(c10::ivalue::Tuple::create(Values(tensors.begin(), tensors.end())));
  }

  /// Runs or records; `graph` tells what comes back.
  std::vector<at::Tensor> results(const GraphModule& graph) {
    std::vector<at::Tensor> out;
    if (tracer_ == nullptr) {
      const Value result = call(*Function::get(name_), std::move(values_));
      for (const Value& item : is_sequence(result) ? elements(result) : Values{result})
        out.push_back(item.toTensor());
      return out;
    }
    const Proxy result =
        tracer_->create_proxy(Opcode::kCallFunction, Target::function(name_), std::move(traced_));
    const Node& output = graph.graph().output_node();
    const Argument returned = output.num_args() > 0 ? output.arg(0) : Argument();
    if (returned.kind() != Argument::Kind::kTuple && returned.kind() != Argument::Kind::kList)
      return {static_cast<at::Tensor>(result)};
    for (std::size_t i = 0; i < returned.items().size(); ++i)
      out.push_back(static_cast<at::Tensor>(result[TraceArg(static_cast<std::int64_t>(i))]));
    return out;
  }

 private:
  void look(const at::Tensor& tensor) {
    if (const Proxy* proxy = find_proxy(tensor); proxy && tracer_ == nullptr)
      tracer_ = &proxy->tracer();
  }

  std::string name_;
  TraceArgs traced_;
  Values values_;
  TracerBase* tracer_ = nullptr;
};

}  // namespace

std::vector<at::Tensor> cond(const at::Tensor& predicate,
                             const std::shared_ptr<GraphModule>& on_true,
                             const std::shared_ptr<GraphModule>& on_false,
                             const std::vector<at::Tensor>& operands) {
  Call call("cond");
  call.add(predicate);
  call.add(on_true);
  call.add(on_false);
  call.add(operands);
  return call.results(*on_true);
}

std::vector<at::Tensor> while_loop(const std::shared_ptr<GraphModule>& condition,
                                   const std::shared_ptr<GraphModule>& body,
                                   const std::vector<at::Tensor>& carried,
                                   const std::vector<at::Tensor>& additional) {
  Call call("while_loop");
  call.add(condition);
  call.add(body);
  call.add(carried);
  call.add(additional);
  return call.results(*body);
}

}  // namespace fx
