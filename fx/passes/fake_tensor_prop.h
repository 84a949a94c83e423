#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fx/interpret/interpreter.h"
#include "fx/passes/pass.h"

namespace fx {

/// Finds shapes and dtypes without computing, as far as LibTorch can: runs a module on tensors
/// without memory, those of the meta device (torch.fx.passes.fake_tensor_prop.FakeTensorProp). Each
/// node that gives tensors gets the meta "tensor_meta", with the device that the tensor would be
/// on, and, if it gives one, "val" (at::Tensor on the meta device); all get "type", as shape_prop
/// sets it.
///
/// An operator without a kernel for the meta device, and a module with tensors of its own, is run
/// on zeros on the CPU: that takes memory for its operands and results, and time, as long as it
/// runs. Attributes and modules are stood in for by copies, so nothing is written to, and the
/// random generators are put back. Operators whose results depend on the values of tensors fail:
/// item(), nonzero. Own functions and modules must not look at values.
///
/// Graphs that a higher-order operator is given are run the same way, and their nodes annotated:
/// both branches of cond, which have to agree, and one step of a loop.
///
///     FakeTensorProp(gm).propagate({torch::empty({64, 3, 224, 224}, torch::kMeta)});
class FakeTensorProp : public Interpreter {
 public:
  explicit FakeTensorProp(GraphModule& module) : Interpreter(module), target_(module) {}

  /// Of the inputs, tensors of any device, only dtype, shape, strides and device count. The result
  /// is on the meta device.
  /// @throws RunError naming the node whose shape cannot be told.
  Value propagate(Values inputs);

  Value get_attr(std::string_view target, Values args, KwValues kwargs) override;
  Value call_function(const Target& target, Values args, KwValues kwargs) override;
  Value call_method(std::string_view target, Values args, KwValues kwargs) override;
  Value call_module(std::string_view target, Values args, KwValues kwargs) override;
  void record_value(Node& node, const Value& value) override;

 protected:
  /// Runs a graph that a higher-order operator is given.
  virtual Value run_subgraph(GraphModule& graph, Values inputs);

 private:
  // Where a result is, and whether that was asked for.
  struct Place {
    c10::Device device;
    bool is_given = false;
  };
  Value without_memory(const Value& value);
  Value placed(const Value& result, Place place);
  Place take_devices(Values& args, KwValues& kwargs) const;
  Value stand_in_for(const std::shared_ptr<GraphModule>& graph);

  GraphModule& target_;
  // The device that a tensor stands for, and the tensor, which keeps the key its own.
  std::unordered_map<const void*, std::pair<c10::Device, at::Tensor>> devices_;
  // By the tensor they stand for, which is kept so that the key stays its own.
  std::unordered_map<const void*, std::pair<at::Tensor, at::Tensor>> stand_ins_;
  std::unordered_map<const void*, std::shared_ptr<torch::nn::Module>> modules_;
};

}  // namespace fx
