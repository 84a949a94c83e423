#include "fx/capture/make_fx.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <sstream>
#include <unordered_map>

#include "fx/base/text.h"
#include "fx/capture/boxed.h"
#include "fx/capture/tracer.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Operators that make a tensor without saying what is in it.
bool is_uninitialised_factory(std::string_view name) {
  for (std::string_view factory :
       {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty",
        "aten::new_empty_strided", "aten::empty_permuted"})
    if (name == factory) return true;
  return false;
}

// The recorder of one capture. Invariants:
// - known_ maps every live tensor that the program can hold to the node that gives it; keep_ holds
// the
//   tensors, so that an address is never reused by another tensor during the capture.
// - storages_ lists the known tensors of every storage, so that an alias made behind the dispatcher
//   (Tensor::data, set_data) is found instead of being taken for a constant.
// - unwritten_ holds the storages of empty tensors that no recorded operator has written yet:
// reading
//   one means that the program filled it through a pointer.
class Recorder final : public TracerBase {
 public:
  Recorder(const torch::nn::Module& root, const MakeFxOptions& options)
      : options_(options), graph_(std::make_shared<Graph>()) {
    for (const auto& item : root.named_parameters()) name_attribute(item.key(), item.value());
    for (const auto& item : root.named_buffers()) name_attribute(item.key(), item.value());
  }

  Graph& graph() override { return *graph_; }
  const std::shared_ptr<Graph>& graph_ptr() const { return graph_; }
  const GraphModule::Constants& constants() const { return constants_; }
  Assumptions& assumptions() { return assumptions_; }

  void add_input(const std::string& name, const at::Tensor& tensor) {
    Node& node = graph_->placeholder(name);
    assumptions_.push_back({Assumption::Kind::kInput, name + " is a " + describe(tensor)});
    track(tensor, node);
  }

  Argument create_tensor_arg(const at::Tensor& tensor) override {
    if (auto found = known_.find(tensor.unsafeGetTensorImpl()); found != known_.end()) {
      if (Node* constant = resolve_unwritten(tensor, *found->second)) return *constant;
      return *found->second;
    }
    if (auto found = attributes_.find(tensor.unsafeGetTensorImpl()); found != attributes_.end()) {
      Node& node = graph_->get_attr(found->second);
      track(tensor, node);
      return node;
    }
    if (Node* alias = alias_of_known(tensor)) return *alias;
    return new_constant(tensor);
  }

  void record(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const std::size_t num_args = schema.arguments().size();
    // Before the call: in-place operators change what the arguments are.
    mark_written(schema, torch::jit::last(*stack, num_args));
    const std::vector<c10::IValue> args = torch::jit::last(*stack, num_args).vec();
    BoxedCall call = boxed_call(op, args);
    Args positional;
    for (const TraceArg& arg : call.args) positional.push_back(create_arg(arg));
    Kwargs keywords;
    for (const KwTraceArg& kwarg : call.kwargs)
      keywords.emplace_back(kwarg.key, create_arg(kwarg.value));

    op.callBoxed(stack);

    Node& node =
        graph_->call_function(Target(call.function), std::move(positional), std::move(keywords));
    const std::size_t num_returns = schema.returns().size();
    const auto results = torch::jit::last(*stack, num_returns);
    for (std::size_t i = 0; i < num_returns; ++i) {
      Node* item = &node;
      if (num_returns > 1 && holds_tensors(results[i]))
        item = &graph_->call_function("operator.getitem", {node, Argument(i)});
      track_result(schema, results[i], *item);
    }
    if (is_uninitialised_factory(schema.name()) && num_returns == 1 && results[0].isTensor() &&
        results[0].toTensor().has_storage())
      unwritten_[storage_of(results[0].toTensor())] = &node;
  }

  Argument output_arg(const TraceArg& result) { return create_arg(result); }

 private:
  using StorageKey = const c10::StorageImpl*;

  static StorageKey storage_of(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  static bool holds_tensors(const c10::IValue& value) {
    return value.isTensor() || value.isTensorList() || value.isList();
  }

  void name_attribute(const std::string& path, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    keep_.push_back(tensor);
    if (attributes_.emplace(tensor.unsafeGetTensorImpl(), path).second && tensor.has_storage())
      attribute_storages_.emplace(storage_of(tensor), tensor);
  }

  void track(const at::Tensor& tensor, Node& node) {
    if (!tensor.defined()) return;
    keep_.push_back(tensor);
    known_[tensor.unsafeGetTensorImpl()] = &node;
    if (tensor.has_storage()) storages_[storage_of(tensor)].push_back(tensor);
  }

  void track_result(const c10::FunctionSchema& schema, const c10::IValue& result, Node& node) {
    if (result.isTensor()) {
      track(result.toTensor(), node);
    } else if (result.isTensorList() || result.isList()) {
      const Values items = elements(result);
      for (std::size_t i = 0; i < items.size(); ++i)
        if (items[i].isTensor() && items[i].toTensor().defined())
          track(items[i].toTensor(),
                graph_->call_function("operator.getitem", {node, Argument(i)}));
    } else if (!result.isNone()) {
      assume_value(schema, result, node);
    }
  }

  void assume_value(const c10::FunctionSchema& schema, const c10::IValue& result,
                    const Node& node) {
    std::string text = schema.name() + " gave " + to_string(result) + ", in " + node.format_node();
    if (options_.strict)
      throw TraceError(ErrorCode::kConcreteValue,
                       "the program read a value: " + text +
                           "; a strict capture holds no assumption of this kind");
    assumptions_.push_back({Assumption::Kind::kValue, std::move(text)});
  }

  // Writes of this call end the unwritten state of their storages.
  void mark_written(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> args) {
    if (unwritten_.empty()) return;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (!alias) continue;
      // A view of an empty tensor (alias without write) is no read either: its uses will be seen.
      const auto visit = [&](const at::Tensor& tensor) {
        if (!tensor.defined() || !tensor.has_storage()) return;
        if (alias->isWrite())
          unwritten_.erase(storage_of(tensor));
        else
          viewed_now_ = storage_of(tensor);
      };
      if (args[i].isTensor()) visit(args[i].toTensor());
      if (args[i].isTensorList())
        for (const at::Tensor& tensor : args[i].toTensorVector()) visit(tensor);
    }
  }

  // The program reads a tensor that no recorded operator has written: it was filled through a
  // pointer (torch::tensor, from values; accessors). Its content becomes a constant.
  Node* resolve_unwritten(const at::Tensor& tensor, Node& node) {
    if (unwritten_.empty() || !tensor.has_storage()) return nullptr;
    auto found = unwritten_.find(storage_of(tensor));
    if (found == unwritten_.end()) return nullptr;
    if (std::exchange(viewed_now_, nullptr) == found->first) return nullptr;
    if (found->second != &node)
      throw TraceError(
          ErrorCode::kBadArgument,
          "the program filled the memory behind " + node.format_node() +
              " through a pointer, outside of the dispatcher: use tensor operators, or "
              "make the tensor before the capture");
    unwritten_.erase(found);
    Node& constant = new_constant(tensor.detach().clone(), "filled outside of the dispatcher");
    known_[tensor.unsafeGetTensorImpl()] = &constant;
    if (node.num_users() == 0) graph_->erase_node(node);
    return &constant;
  }

  // Tensor::data, variable_data and set_data alias a known tensor without an operator.
  Node* alias_of_known(const at::Tensor& tensor) {
    if (!tensor.has_storage()) return nullptr;
    const StorageKey storage = storage_of(tensor);
    auto same_geometry = [&](const at::Tensor& other) {
      return other.sizes() == tensor.sizes() && other.strides() == tensor.strides() &&
             other.storage_offset() == tensor.storage_offset() && other.dtype() == tensor.dtype();
    };
    const at::Tensor* source = nullptr;
    bool shares_memory = false;
    if (auto found = storages_.find(storage); found != storages_.end()) {
      shares_memory = true;
      for (const at::Tensor& other : found->second)
        if (same_geometry(other)) source = &other;
    }
    if (auto found = attribute_storages_.find(storage);
        !source && found != attribute_storages_.end()) {
      shares_memory = true;
      if (same_geometry(found->second)) source = &found->second;
    }
    if (source) {
      Node& node = graph_->call_function("aten::detach", {create_tensor_arg(*source)});
      track(tensor, node);
      return &node;
    }
    // A constant from outside may well be a view of something; of a value of this program it is
    // not.
    if (!shares_memory || tensor.numel() == 0) return nullptr;
    throw TraceError(
        ErrorCode::kBadArgument,
        "the program uses a " + describe(tensor) +
            " that shares memory with a value of the graph but was made outside of the "
            "dispatcher");
  }

  Node& new_constant(const at::Tensor& tensor, std::string_view why = "came from outside") {
    const std::string path = "_tensor_constant" + std::to_string(constants_.size());
    constants_.emplace_back(path, tensor);
    assumptions_.push_back({Assumption::Kind::kConstant,
                            path + " is a " + describe(tensor) + " that " + std::string(why)});
    Node& node = graph_->get_attr(path);
    track(tensor, node);
    return node;
  }

  const MakeFxOptions& options_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<const c10::TensorImpl*, Node*> known_;
  std::unordered_map<StorageKey, std::vector<at::Tensor>> storages_;
  std::unordered_map<const c10::TensorImpl*, std::string> attributes_;
  std::unordered_map<StorageKey, at::Tensor> attribute_storages_;
  std::unordered_map<StorageKey, Node*> unwritten_;
  StorageKey viewed_now_ = nullptr;
  std::vector<at::Tensor> keep_;
  GraphModule::Constants constants_;
  Assumptions assumptions_;
};

thread_local Recorder* active_recorder = nullptr;

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  // Everything below this call is the operator's own business.
  c10::impl::ExcludeDispatchKeyGuard below(kModeKey);
  if (active_recorder)
    active_recorder->record(op, stack);
  else
    op.callBoxed(stack);
}

void register_fallback() {
  static torch::Library* library = [] {
    auto* made = new torch::Library(torch::Library::IMPL, "_", kModeKey, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
    return made;
  }();
  (void)library;
}

// Makes a recorder the one of this thread while a program runs; restores everything on any exit. A
// capture inside of a captured program records for itself: the outer one sees none of it.
class RecordingScope {
 public:
  explicit RecordingScope(Recorder& recorder)
      : previous_(std::exchange(active_recorder, &recorder)), mode_(kModeKey) {}
  ~RecordingScope() { active_recorder = previous_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  Recorder* previous_;
  c10::impl::IncludeDispatchKeyGuard mode_;
};

// A tensor object of its own over the same memory, so that inputs passed twice stay two inputs.
at::Tensor distinct_handle(const at::Tensor& tensor) {
  at::Tensor copy = tensor.detach();
  copy.set_requires_grad(tensor.requires_grad());
  return copy;
}

}  // namespace

std::string_view assumption_kind_name(Assumption::Kind kind) {
  constexpr std::string_view kNames[] = {"input", "value", "training", "grad mode", "constant"};
  return kNames[static_cast<int>(kind)];
}

std::shared_ptr<GraphModule> record_program(
    const torch::nn::Module& root, std::vector<at::Tensor> inputs, const MakeFxOptions& options,
    const std::function<TraceArg(std::vector<at::Tensor>&)>& run) {
  register_fallback();
  TraceOptions naming;
  naming.input_names = options.input_names;
  const auto names = detail::default_input_names(inputs.size(), naming);
  Recorder recorder(root, options);
  std::vector<at::Tensor> seen;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw TraceError(ErrorCode::kBadArgument,
                       "example input " + str_repr(names[i]) + " is an undefined tensor");
    for (const at::Tensor& other : seen)
      if (other.is_same(inputs[i])) {
        inputs[i] = distinct_handle(inputs[i]);
        break;
      }
    seen.push_back(inputs[i]);
    recorder.add_input(names[i], inputs[i]);
  }
  recorder.assumptions().push_back(
      {Assumption::Kind::kTraining,
       root.is_training() ? "the module was in train mode" : "the module was in eval mode"});
  recorder.assumptions().push_back({Assumption::Kind::kGradMode, at::GradMode::is_enabled()
                                                                     ? "gradients were enabled"
                                                                     : "gradients were disabled"});
  TraceArg result;
  {
    const RecordingScope scope(recorder);
    result = run(inputs);
  }
  recorder.graph().output(recorder.output_arg(result));
  auto module = std::make_shared<GraphModule>(
      root, recorder.graph_ptr(),
      options.class_name.empty() ? module_type_name(root) : options.class_name,
      GraphModule::Share::kAll, recorder.constants());
  std::vector<InputGuard> guards;
  for (std::size_t i = 0; i < inputs.size(); ++i) guards.push_back(exact_guard(names[i], seen[i]));
  module->set_input_guards(std::move(guards));
  module->meta().set("assumptions", recorder.assumptions());
  return module;
}

}  // namespace fx
