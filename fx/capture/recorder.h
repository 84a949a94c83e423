#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fx/capture/called_modules.h"
#include "fx/capture/empty_memory.h"
#include "fx/capture/known_tensors.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/recording.h"
#include "fx/capture/tracer.h"

namespace torch::autograd {
struct Node;
}

namespace fx {

/// Turns the operators that a program runs into a graph: what make_fx hands every operator to.
/// Invariants:
/// - known_ has every tensor that the program can hold and the node that gives it. An alias made
///   behind the dispatcher (Tensor::data, set_data) is found there by its memory, instead of being
///   taken for a constant.
/// - Only inputs, attributes and constants are kept: other values live as long as in the program.
/// - The graph has no state: where the program switched gradients off (NoGradGuard, backward), the
///   operands that require gradients are detached instead.
class Recorder final : public TracerBase {
 public:
  Recorder(const torch::nn::Module& root, const MakeFxOptions& options, RecordingDetail detail);

  Graph& graph() override { return *graph_; }

  /// The recorder of the capture that runs on this thread; there must be one.
  static Recorder& active();

  /// The next placeholder. Also while the program runs, for what only its result tells.
  void add_input(const std::string& name, const at::Tensor& tensor);
  Argument create_tensor_arg(const at::Tensor& tensor) override;

  /// Runs an operator, whose arguments lie on the stack, and records it.
  /// @throws TraceError kBadArgument, kConcreteValue (strict), and what the operator throws.
  void record(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  /// Whether calls are recorded above autograd.
  bool is_above_autograd() const noexcept { return options_.pre_dispatch; }

  /// How often an operator has given the program a number or bool that depends on values.
  std::size_t num_values_read() const noexcept { return num_values_read_; }

  /// Where the program is in the tree of its modules, as far as scopes say.
  CalledModules& modules() noexcept { return modules_; }

  Argument output_arg(const TraceArg& result);

  /// Checks what the program left behind, once nobody else holds its result: attributes that got
  /// other memory, values that it keeps. Ends the recording and gives what was recorded.
  /// @throws TraceError kBadArgument, kConcreteValue (strict).
  Recording finish();

 private:
  using StorageKey = const c10::StorageImpl*;
  struct Input {
    at::Tensor tensor;
    const torch::autograd::Node* history;
    StorageKey storage;
  };
  struct AttributeMemory {
    at::Tensor tensor;
    StorageKey storage;
  };

  void name_attribute(const std::string& path, const at::Tensor& tensor);
  void track(const at::Tensor& tensor, Node& node);
  void track_result(const c10::FunctionSchema& schema, const c10::IValue& result, Node& node);
  void assume(Assumption::Kind kind, std::string text, CallStack where = {});
  void assume_value(std::string_view name, const c10::IValue& value, Node& node);
  void assume_layouts();
  void expose(const TraceArg& result);
  void assume_sizes(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args,
                    c10::ArrayRef<c10::IValue> results, const Node& node);
  void set_module_stacks();
  void mark_written(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> args);
  void refuse_hidden_gradient(const at::Tensor& tensor, const Node& node) const;
  Node& node_of(const at::Tensor& tensor);
  Node& detached(const at::Tensor& tensor, Node& node);
  Node* constant_if_filled(const at::Tensor& tensor, Node& node);
  Node* alias_of_known(const at::Tensor& tensor);
  Node& new_constant(const at::Tensor& tensor);
  Node& own_constant(const at::Tensor& tensor, std::string_view why);
  Node& stored_constant(const at::Tensor& tensor, std::string_view why);

  const MakeFxOptions& options_;
  const RecordingDetail detail_;
  // Whether gradients are recorded at the start, and the graph is to have them.
  const bool gradients_;
  std::shared_ptr<Graph> graph_;
  KnownTensors known_;
  std::unordered_map<const c10::TensorImpl*, std::string> attributes_;
  std::vector<at::Tensor> attribute_tensors_;    // all that attributes_ has
  std::unordered_set<std::string> taken_names_;  // of attributes, where constants might have them
  std::unordered_map<StorageKey, at::Tensor> attribute_storages_;
  std::vector<AttributeMemory> attribute_memory_;
  bool sets_storages_ = false;  // aten::set_ was recorded
  EmptyMemory empty_;
  bool detaching_ = false;  // the operator being recorded runs without gradients
  std::unordered_map<const c10::TensorImpl*, Node*> detached_;
  std::vector<Input> inputs_;
  Node* last_input_ = nullptr;
  std::vector<std::pair<c10::weak_intrusive_ptr<c10::TensorImpl>, Node*>> made_;
  std::unordered_set<StorageKey> exposed_;  // written by the program, or behind its result
  GraphModule::Constants constants_;
  Assumptions assumptions_;
  NodeSizes sizes_;
  NodeStacks stacks_;
  std::vector<ValueSized> value_sizes_;
  bool has_effects_ = false;           // so far: what the caller can see has changed
  std::vector<const Node*> unjudged_;  // since the last check, not known to have none
  std::size_t num_values_read_ = 0;
  CalledModules modules_;
  std::uint32_t first_new_node_ = 0;  // whose module is not set yet
  bool has_checks_ = false;
  bool effects_before_checks_ = false;
};

/// While it lives, the capture on this thread does not see what operators run.
class RecordingPause {
 public:
  RecordingPause();
  ~RecordingPause();
  RecordingPause(const RecordingPause&) = delete;
  RecordingPause& operator=(const RecordingPause&) = delete;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
};

}  // namespace fx
