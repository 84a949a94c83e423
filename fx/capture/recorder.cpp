#include "fx/capture/recorder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <typeinfo>

#include "fx/base/text.h"
#include "fx/capture/boxed.h"
#include "fx/capture/value_sizes.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

// Operators that make a tensor without saying what is in it.
bool is_uninitialised_factory(std::string_view name) {
  for (std::string_view factory :
       {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty",
        "aten::new_empty_strided", "aten::empty_permuted"})
    if (name == factory) return true;
  return false;
}

// Operators whose number or bool follows from sizes, strides, dtypes and the like, which inputs are
// held to, and not from values.
bool tells_of_geometry(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "can_cast",    "dense_dim",         "dim",           "get_device", "is_complex",
      "is_conj",     "is_floating_point", "is_leaf",       "is_neg",     "is_same_size",
      "is_signed",   "is_inference",      "numel",         "output_nr",  "promote_types",
      "result_type", "retains_grad",      "size",          "sparse_dim", "storage_offset",
      "stride",      "sym_is_contiguous", "sym_numel",     "sym_size",   "sym_storage_offset",
      "sym_stride",  "is_contiguous",     "is_distributed"};
  name.remove_prefix(std::min(name.size(), std::string_view("aten::").size()));
  return std::ranges::find(kNames, name) != std::end(kNames);
}

constexpr std::string_view kConstantPrefix = "_tensor_constant";

bool holds_tensors(const c10::IValue& value) {
  return value.isTensor() || value.isTensorList() || value.isList();
}

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

const torch::autograd::Node* history_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta ? meta->grad_fn_.get() : nullptr;
}

// The class of a torch::autograd::Function that made the tensor, or empty. Its backward is C++ code
// that no operator of the graph knows of.
std::string custom_function_of(const at::Tensor& tensor) {
  const torch::autograd::Node* function = history_of(tensor);
  // CppNode<T> is a template over the class of the function: by name, since T is anything.
  return function && std::strstr(typeid(*function).name(), "7CppNodeI") ? function->name()
                                                                        : std::string();
}

}  // namespace

Recorder::Recorder(const torch::nn::Module& root, const MakeFxOptions& options,
                   RecordingDetail detail)
    : options_(options),
      detail_(detail),
      gradients_(options.pre_dispatch && at::GradMode::is_enabled()),
      graph_(std::make_shared<Graph>()),
      modules_(root) {
  for (const auto& item : root.named_parameters()) name_attribute(item.key(), item.value());
  for (const auto& item : root.named_buffers()) name_attribute(item.key(), item.value());
  if (const auto* module = dynamic_cast<const GraphModule*>(&root))
    for (const auto& [path, tensor] : module->constants()) name_attribute(path, tensor);
  assumptions_.push_back({Assumption::Kind::kTraining, root.is_training()
                                                           ? "the module was in train mode"
                                                           : "the module was in eval mode"});
  assumptions_.push_back({Assumption::Kind::kGradMode, at::GradMode::is_enabled()
                                                           ? "gradients were enabled"
                                                           : "gradients were disabled"});
}

void Recorder::add_input(const std::string& name, const at::Tensor& tensor) {
  std::optional<InsertPointGuard> behind_the_others;
  if (last_input_) behind_the_others.emplace(graph_->inserting_after(*last_input_));
  Node& node = graph_->placeholder(name);
  last_input_ = &node;
  const auto behind_inputs = std::ranges::find_if(
      assumptions_, [](const Assumption& each) { return each.kind != Assumption::Kind::kInput; });
  assumptions_.insert(behind_inputs,
                      {Assumption::Kind::kInput, name + " is a " + describe(tensor)});
  track(tensor, node);
  inputs_.push_back(
      {tensor, history_of(tensor), tensor.has_storage() ? storage_of(tensor) : nullptr});
}

namespace {

// A number that LibTorch made a tensor of, which does not promote as a tensor does; nothing for
// others. As a constant it would be a tensor like any other in copies of the module.
std::optional<Argument> wrapped_number(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number() || !tensor.is_cpu()) return std::nullopt;
  switch (tensor.scalar_type()) {
    case c10::kDouble:
      return Argument(*tensor.const_data_ptr<double>());
    case c10::kLong:
      return Argument(*tensor.const_data_ptr<std::int64_t>());
    case c10::kBool:
      return Argument(*tensor.const_data_ptr<bool>());
    default:
      return std::nullopt;
  }
}

}  // namespace

Argument Recorder::create_tensor_arg(const at::Tensor& tensor) {
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number() && !known_.find(tensor))
    if (auto number = wrapped_number(tensor)) return *std::move(number);
  return detached(tensor, node_of(tensor));
}

Node& Recorder::node_of(const at::Tensor& tensor) {
  if (const KnownTensors::Entry* known = known_.find(tensor)) {
    Node& node = *known->node;
    if (Node* constant = constant_if_filled(tensor, node)) return *constant;
    if (gradients_) refuse_hidden_gradient(tensor, node);
    return node;
  }
  if (auto found = attributes_.find(tensor.unsafeGetTensorImpl()); found != attributes_.end()) {
    Node& node = graph_->get_attr(found->second);
    track(tensor, node);
    return node;
  }
  if (Node* alias = alias_of_known(tensor)) return *alias;
  return new_constant(tensor);
}

Node& Recorder::detached(const at::Tensor& tensor, Node& node) {
  if (!detaching_ || !tensor.requires_grad()) return node;
  Node*& made = detached_[tensor.unsafeGetTensorImpl()];
  if (!made) made = &graph_->call_function("aten::detach", {node});
  return *made;
}

void Recorder::record(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::size_t num_args = schema.arguments().size();
  detaching_ = gradients_ && schema.name() != "aten::detach" &&
               (!at::GradMode::is_enabled() || c10::InferenceMode::is_enabled());
  // Before the call: in-place operators change what the arguments are.
  const std::vector<c10::IValue> args = torch::jit::last(*stack, num_args).vec();
  BoxedCall call = boxed_call(op, args);
  Args positional;
  for (const TraceArg& arg : call.args) positional.push_back(create_arg(arg));
  Kwargs keywords;
  for (const KwTraceArg& kwarg : call.kwargs)
    keywords.emplace_back(kwarg.key, create_arg(kwarg.value));
  mark_written(schema, args);

  const bool of_values = has_sizes_of_values(op, args);
  if (detail_.value_sizes == ValueSizes::kAsTheyAre)
    op.callBoxed(stack);
  else
    call_with_other_sizes(op, stack, detail_.value_sizes);

  Node& node =
      graph_->call_function(Target(call.function), std::move(positional), std::move(keywords));
  if (detail_.stacks) stacks_.emplace(&node, CallStack::here());
  const std::size_t num_returns = schema.returns().size();
  const auto results = torch::jit::last(*stack, num_returns);
  for (std::size_t i = 0; i < num_returns; ++i) {
    Node* item = &node;
    if (num_returns > 1 && holds_tensors(results[i]))
      item = &graph_->call_function("operator.getitem", {node, Argument(i)});
    track_result(schema, results[i], *item);
  }
  if (!has_effects_ && !schema.is_mutable()) unjudged_.push_back(&node);
  if (of_values) assume_sizes(op, args, results, node);
  if (is_uninitialised_factory(schema.name()) && num_returns == 1 && results[0].isTensor())
    empty_.add(results[0].toTensor(), node);
  sets_storages_ |= schema.name() == "aten::set_";
  set_module_stacks();
}

// Of what this call made.
void Recorder::set_module_stacks() {
  const ModuleStack* stack = modules_.stack();
  Node* last = graph_->nodes().empty() ? nullptr : &graph_->nodes().back();
  const std::uint32_t end = last ? last->id() + 1 : 0;
  if (stack)
    for (Node* node = last; node && node->id() >= first_new_node_; node = node->prev()) {
      if (!node->is_placeholder()) node->meta().set("nn_module_stack", *stack);
      if (node == &graph_->nodes().front()) break;
    }
  first_new_node_ = end;
}

Argument Recorder::output_arg(const TraceArg& result) {
  detaching_ = false;
  expose(result);
  return create_arg(result);
}

void Recorder::expose(const TraceArg& result) {
  for (const TraceArg& item : result.items()) expose(item);
  if (result.kind() == TraceArg::Kind::kTensor && result.tensor().defined() &&
      result.tensor().has_storage())
    exposed_.insert(storage_of(result.tensor()));
}

// Tensor::contiguous is no operator where there is nothing to do: of a contiguous input the graph
// shares the memory, where the program would have made a copy of another one.
void Recorder::assume_layouts() {
  for (const auto& [tensor, history, storage] : inputs_) {
    const KnownTensors::Entry* known = known_.find(tensor);
    if (known && storage && exposed_.contains(storage) && tensor.is_contiguous())
      assumptions_.push_back(
          {Assumption::Kind::kLayout,
           std::string(known->node->name()) + " is contiguous; its memory is written or returned"});
  }
}

Recording Recorder::finish() {
  for (const auto& [tensor, storage] : attribute_memory_)
    if (!sets_storages_ && storage_of(tensor) != storage)
      throw TraceError(ErrorCode::kBadArgument,
                       "the program gave other memory to " +
                           str_repr(attributes_.at(tensor.unsafeGetTensorImpl())) +
                           " (set_data): use copy_, which the graph can repeat");
  for (const auto& [tensor, history, storage] : inputs_)
    if (!sets_storages_ && storage && storage_of(tensor) != storage)
      throw TraceError(ErrorCode::kBadArgument,
                       "the program gave other memory to an input, a " + describe(tensor) +
                           " (set_data): use copy_, which the graph can repeat");
  // An input that was written to now has a history, which keeps what its backward needs.
  const bool has_history = std::any_of(inputs_.begin(), inputs_.end(), [](const auto& input) {
    return history_of(input.tensor) != input.history;
  });
  assume_layouts();
  inputs_.clear();
  attribute_tensors_.clear();
  for (const auto& [tensor, node] : made_)
    if (!has_history && tensor.use_count() > 0)
      assume(Assumption::Kind::kKept,
             "the program keeps the value of " + node->format_node() +
                 " beyond its end, in a member or variable of its own; the graph does not");
  Recording made;
  made.graph = graph_;
  made.constants = std::move(constants_);
  made.assumptions = std::move(assumptions_);
  made.sizes = std::move(sizes_);
  made.stacks = std::move(stacks_);
  made.value_sizes = std::move(value_sizes_);
  made.called_modules = modules_.take_paths();
  made.has_checks = has_checks_;
  made.effects_before_checks = effects_before_checks_;
  return made;
}

void Recorder::name_attribute(const std::string& path, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (path.starts_with(kConstantPrefix)) taken_names_.insert(path);
  attribute_tensors_.push_back(tensor);
  if (!attributes_.emplace(tensor.unsafeGetTensorImpl(), path).second || !tensor.has_storage())
    return;
  attribute_storages_.emplace(storage_of(tensor), tensor);
  attribute_memory_.push_back({tensor, storage_of(tensor)});
}

void Recorder::track(const at::Tensor& tensor, Node& node) {
  if (!tensor.defined()) return;
  known_.add(tensor, node);
  if (detail_.sizes) sizes_[&node] = tensor.sizes().vec();
}

void Recorder::track_result(const c10::FunctionSchema& schema, const c10::IValue& result,
                            Node& node) {
  const auto track_tensor = [&](const at::Tensor& tensor, Node& made) {
    if (!tensor.defined()) return;
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    // An operand that the operator gives back: without gradients, the graph's is a detached alias.
    if (detaching_ && detached_.contains(impl)) return;
    if (!known_.find(tensor) && !attributes_.contains(impl))
      made_.emplace_back(tensor.getIntrusivePtr(), &made);
    track(tensor, made);
  };
  if (result.isTensor()) {
    track_tensor(result.toTensor(), node);
  } else if (result.isTensorList() || result.isList()) {
    const Values items = elements(result);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].isTensor() && items[i].toTensor().defined())
        track_tensor(items[i].toTensor(),
                     graph_->call_function("operator.getitem", {node, Argument(i)}));
  } else if (!result.isNone()) {
    assume_value(schema.name(), result, node);
  }
}

// The value itself lets the program go one way or another: checked where it was read.
void Recorder::assume_value(std::string_view name, const c10::IValue& value, Node& node) {
  if (tells_of_geometry(name)) return;
  ++num_values_read_;
  const CallStack where = CallStack::here();
  const std::string gave = std::string(name) + " gave " + to_string(value);
  assume(Assumption::Kind::kValue, gave + ", in " + node.format_node(), where);
  if (!options_.guard_values) return;
  Argument expected;
  bool is_nan = false;
  if (value.isBool()) {
    expected = value.toBool();
  } else if (value.isInt()) {
    expected = value.toInt();
  } else if (value.isDouble()) {
    expected = value.toDouble();
    is_nan = std::isnan(value.toDouble());
  } else {
    return;
  }
  has_checks_ = true;
  // What a schema says of writes, mark_written has seen; random numbers and batch_norm it hides.
  for (const Node* each : unjudged_)
    has_effects_ = has_effects_ || (!each->is_erased() && each->is_impure());
  unjudged_.clear();
  effects_before_checks_ |= has_effects_;
  Node& same = is_nan ? graph_->call_function("operator.ne", {node, node})
                      : graph_->call_function("operator.eq", {node, expected});
  Node& check = graph_->call_function(
      "torch._assert",
      {same, Argument::tuple(
                 {"the program read a value: " + gave + " when it was captured, and now", node,
                  "; it might go another way from here. Capture again for such inputs, "
                  "or let tensors decide (torch::where)"})});
  if (detail_.stacks) stacks_.emplace(&check, where);
}

// The program may have looked at sizes that depend on values: check_value_sizes finds out.
void Recorder::assume_sizes(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args,
                            c10::ArrayRef<c10::IValue> results, const Node& node) {
  const CallStack where = CallStack::here();
  std::string sizes;
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& result : results) {
    if (result.isTensor()) tensors.push_back(result.toTensor());
    if (result.isTensorList())
      for (const at::Tensor& tensor : result.toTensorVector()) tensors.push_back(tensor);
  }
  for (const at::Tensor& tensor : tensors) sizes += (sizes.empty() ? "" : ", ") + describe(tensor);
  assume(Assumption::Kind::kValue,
         op.schema().name() + " gave " + sizes + ", whose sizes depend on values, in " +
             node.format_node(),
         where);
  const std::optional<std::int64_t> dim = dimension_of_items(op, args);
  for (const at::Tensor& tensor : tensors) {
    const KnownTensors::Entry* known = known_.find(tensor);
    if (!known) continue;
    ValueSized& value = value_sizes_.emplace_back(ValueSized{known->node, {}, where});
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
      if (!dim || i == (*dim < 0 ? *dim + tensor.dim() : *dim))
        value.sizes.emplace_back(i, tensor.size(i));
    if (dim) break;  // all items have the same number
  }
}

void Recorder::assume(Assumption::Kind kind, std::string text, CallStack where) {
  if (options_.strict) {
    const std::string source = where.source();
    throw TraceError(ErrorCode::kConcreteValue,
                     (kind == Assumption::Kind::kValue ? "the program read a value: " : "") + text +
                         (source.empty() ? "" : ", at " + source) +
                         "; a strict capture holds no assumption of this kind");
  }
  assumptions_.push_back({kind, std::move(text), std::move(where)});
}

// Writes of this call end the unwritten state of their memory. A view is no write and no read: its
// uses will be seen.
void Recorder::mark_written(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    const auto write = [&](const at::Tensor& tensor) {
      empty_.forget(tensor);
      if (!tensor.defined() || !tensor.has_storage()) return;
      exposed_.insert(storage_of(tensor));
      has_effects_ |= attribute_storages_.contains(storage_of(tensor)) ||
                      std::ranges::any_of(inputs_, [&](const auto& input) {
                        return input.tensor.is_alias_of(tensor);
                      });
    };
    if (args[i].isTensor()) write(args[i].toTensor());
    if (args[i].isTensorList())
      for (const at::Tensor& tensor : args[i].toTensorVector()) write(tensor);
  }
}

void Recorder::refuse_hidden_gradient(const at::Tensor& tensor, const Node& node) const {
  if (const std::string name = custom_function_of(tensor); !name.empty())
    throw TraceError(ErrorCode::kBadArgument,
                     "the program applies a torch::autograd::Function (" + name + ", in " +
                         node.format_node() +
                         "), whose backward is not made of operators, so that the graph would have "
                         "another gradient: capture it under torch::NoGradGuard, or write it with "
                         "operators");
}

// The program uses memory that no recorded operator has written, and that is not as it was made: it
// was filled through a pointer (from values, accessors). Its content becomes a constant.
Node* Recorder::constant_if_filled(const at::Tensor& tensor, Node& node) {
  Node* maker = empty_.maker_if_filled(tensor);
  if (!maker) return nullptr;
  if (maker != &node || node.num_users() > 0)
    throw TraceError(ErrorCode::kBadArgument,
                     "the program filled the memory behind " + node.format_node() +
                         " through a pointer, outside of the dispatcher: use tensor operators, or "
                         "make the tensor before the capture");
  empty_.forget(tensor);
  Node& constant = own_constant(tensor.detach().clone(), "was filled outside of the dispatcher");
  track(tensor, constant);
  for (auto& made : made_)
    if (made.second == &node) made.second = &constant;
  graph_->erase_node(node);
  return &constant;
}

// Tensor::data, variable_data and set_data alias a known tensor without an operator.
Node* Recorder::alias_of_known(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  const auto attribute = attribute_storages_.find(storage_of(tensor));
  const bool is_attribute = attribute != attribute_storages_.end();
  if (const KnownTensors::Entry* source = known_.find_alias(tensor)) {
    Node& node = *source->node;
    if (Node* constant = constant_if_filled(tensor, node)) return constant;
    // Factories of torch:: wrap what at:: made, which then nobody holds: one value.
    const bool is_detached = !source->requires_grad && !tensor.requires_grad();
    // Below autograd, views and saved values are other handles of what an operator gave.
    if (!options_.pre_dispatch || (!source->is_alive() && is_detached)) {
      made_.emplace_back(tensor.getIntrusivePtr(), &node);
      track(tensor, node);
      return &node;
    }
    Node& alias = graph_->call_function("aten::detach", {node});
    track(tensor, alias);
    return &alias;
  }
  if (is_attribute &&
      same_geometry(*attribute->second.unsafeGetTensorImpl(), *tensor.unsafeGetTensorImpl())) {
    Node& node = node_of(attribute->second);
    Node& alias = options_.pre_dispatch ? graph_->call_function("aten::detach", {node}) : node;
    track(tensor, alias);
    return &alias;
  }
  // A constant from outside may well be a view of something; of a value of this program it is
  // not.
  if ((!is_attribute && !known_.knows_memory(tensor)) || tensor.numel() == 0) return nullptr;
  throw TraceError(ErrorCode::kBadArgument,
                   "the program uses a " + describe(tensor) +
                       " that shares memory with a value of the graph but was made outside of the "
                       "dispatcher");
}

// Memory without an allocator is somebody else's (from_blob) and may be gone after the call.
Node& Recorder::new_constant(const at::Tensor& tensor) {
  if (tensor.has_storage() && tensor.numel() > 0 && !tensor.storage().allocator()) {
    Node& node = own_constant(tensor.detach().clone(), "lay in memory of the program, as a copy");
    track(tensor, node);
    return node;
  }
  Node& node = stored_constant(tensor, "came from outside");
  track(tensor, node);
  return node;
}

// A constant that the program makes anew in each call: what writes to it must not reach the next.
Node& Recorder::own_constant(const at::Tensor& tensor, std::string_view why) {
  return graph_->call_function("aten::clone", {stored_constant(tensor, why)});
}

Node& Recorder::stored_constant(const at::Tensor& tensor, std::string_view why) {
  std::string path;
  for (std::size_t i = constants_.size(); path.empty() || taken_names_.contains(path); ++i)
    path = std::string(kConstantPrefix) + std::to_string(i);
  constants_.emplace_back(path, tensor);
  assumptions_.push_back({Assumption::Kind::kConstant,
                          path + " is a " + describe(tensor) + " that " + std::string(why),
                          CallStack::here()});
  return graph_->get_attr(path);
}

}  // namespace fx
