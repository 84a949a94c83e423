#include "fx/passes/graph_stand_in.h"

#include <utility>

#include "fx/graph/module_types.h"

namespace fx {
namespace {

class StandIn : public torch::nn::Module {
 public:
  explicit StandIn(std::function<Value(Values)> run) : run_(std::move(run)) {}

  static bool make_callable() {
    ModuleType type;
    type.name = type.short_name = "StandIn";
    type.call = [](torch::nn::Module& self, Values inputs, KwValues) {
      return static_cast<StandIn&>(self).run_(std::move(inputs));
    };
    register_module_type(typeid(StandIn), std::move(type));
    return true;
  }

 private:
  std::function<Value(Values)> run_;
};

}  // namespace

std::shared_ptr<GraphModule> graph_of_value(const Value& value) {
  if (!value.isCapsule()) return nullptr;
  const auto holder = value.toCapsule();
  const auto* module = dynamic_cast<const ModuleValue*>(holder.get());
  return module ? std::dynamic_pointer_cast<GraphModule>(module->module) : nullptr;
}

Value graph_stand_in(std::shared_ptr<GraphModule> graph,
                     std::function<Value(GraphModule&, Values)> run) {
  static const bool callable = StandIn::make_callable();
  static_cast<void>(callable);
  return Value::make_capsule(c10::make_intrusive<ModuleValue>(
      std::make_shared<StandIn>([graph = std::move(graph), run = std::move(run)](Values inputs) {
        return run(*graph, std::move(inputs));
      })));
}

}  // namespace fx
