#include "tests/random/maker.h"

#include <ATen/Context.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace fx::fuzz {
namespace {

// The rules that an operation is taken from, by the shares of the options.
enum class Group : std::uint8_t {
  kView,
  kModule,
  kFactory,
  kNoop,
  kWrite,
  kReduction,
  kElementwise
};

std::span<const Rule> rules_of(Group group) {
  switch (group) {
    case Group::kView:
      return view_rules();
    case Group::kModule:
      return module_rules();
    case Group::kFactory:
      return factory_rules();
    case Group::kNoop:
      return noop_rules();
    case Group::kWrite:
      return write_rules();
    case Group::kReduction:
      return reduction_rules();
    case Group::kElementwise:
      return elementwise_rules();
  }
  return {};
}

constexpr int kReductionPercent = 20;

template <typename T>
double special_number(Choices& choices) {
  using Limits = std::numeric_limits<T>;
  switch (choices.bits() % 9) {
    case 0:
      return static_cast<double>(Limits::quiet_NaN());
    case 1:
      return static_cast<double>(Limits::infinity());
    case 2:
      return -static_cast<double>(Limits::infinity());
    case 3:
      return -0.0;
    case 4:
      return static_cast<double>(Limits::max());
    case 5:
      return static_cast<double>(Limits::lowest());
    case 6:
      return static_cast<double>(Limits::denorm_min());
    case 7:
      return static_cast<double>(Limits::min());
    default:
      return 0.0;
  }
}

double special_float(Choices& choices, at::ScalarType dtype) {
  if (dtype == at::kDouble) return special_number<double>(choices);
  if (dtype == at::kBFloat16) return special_number<c10::BFloat16>(choices);
  if (dtype == at::kHalf) return special_number<c10::Half>(choices);
  return special_number<float>(choices);
}

// 0 for what has no sign.
std::int64_t lowest_integer(at::ScalarType dtype) {
  switch (dtype) {
    case at::kChar:
      return INT8_MIN;
    case at::kShort:
      return INT16_MIN;
    case at::kInt:
      return INT32_MIN;
    case at::kLong:
      return INT64_MIN;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Shape> broadcast(at::IntArrayRef a, at::IntArrayRef b) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::int64_t numel_of(at::IntArrayRef shape) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return numel;
}

// --- operands ------------------------------------------------------------------------------------

std::optional<Item> Maker::pick(const Wanted& wanted, bool inexact) {
  // Rather what was made last, so that programs are deep, with some of everything.
  const std::size_t window = choices.chance(70) ? 8 : items_.size();
  std::vector<const Item*> fit;
  for (std::size_t i = items_.size() - std::min(window, items_.size()); i < items_.size(); ++i)
    if ((inexact || !inexact_.contains(items_[i].node)) && (!wanted || wanted(items_[i])))
      fit.push_back(&items_[i]);
  if (fit.empty()) return std::nullopt;
  return *choices.pick(fit);
}

std::optional<std::pair<Node*, std::int64_t>> Maker::pick_int() {
  if (ints_.empty()) return std::nullopt;
  return choices.pick(ints_);
}

bool Maker::writable(const Item& item) const {
  return !inexact_.contains(item.node) &&
         !protected_.contains(item.tensor.storage().unsafeGetStorageImpl()) &&
         at::has_internal_overlap(item.tensor) != at::MemOverlap::Yes;
}

Shape Maker::pick_shape(std::size_t max_dim) {
  Shape shape(choices.below(max_dim + 1));
  for (std::int64_t& size : shape) size = choices.pick(sizes_);
  while (!fits(numel_of(shape))) shape.pop_back();
  return shape;
}

at::Tensor Maker::values(at::ScalarType dtype, const Shape& shape, bool special) {
  const std::int64_t numel = numel_of(shape);
  const int share = special ? options.special_percent : 0;
  auto is_special = [&] { return static_cast<int>(choices.bits() % 100) < share; };
  at::Tensor flat;
  if (at::isFloatingType(dtype)) {
    flat = at::empty({numel}, at::kDouble);
    auto* data = flat.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < numel; ++i) {
      data[i] = static_cast<double>(choices.bits() >> 40) / (1 << 22) - 2;
      if (is_special()) data[i] = special_float(choices, dtype);
    }
  } else {
    flat = at::empty({numel}, at::kLong);
    auto* data = flat.mutable_data_ptr<std::int64_t>();
    const std::int64_t lowest = lowest_integer(dtype);
    for (std::int64_t i = 0; i < numel; ++i) {
      const auto bits = static_cast<std::int64_t>(choices.bits() >> 8);
      data[i] = dtype == at::kBool ? bits % 2 : dtype == at::kByte ? bits % 256 : bits % 21 - 10;
      if (is_special() && lowest < 0) data[i] = bits % 2 ? lowest : -(lowest + 1);
    }
  }
  // No view: LibTorch multiplies by a view of what needs no gradient in another order.
  return flat.to(dtype).reshape(shape).clone();
}

at::Tensor Maker::weight(at::ScalarType dtype, const Shape& shape) {
  const std::int64_t numel = numel_of(shape);
  const std::int64_t channel = shape.empty() || numel == 0 ? 1 : numel / shape[0];
  at::Tensor flat = at::empty({numel}, at::kDouble);
  auto* data = flat.mutable_data_ptr<double>();
  // The first of a channel is the largest one that 8 bits hold.
  for (std::int64_t i = 0; i < numel; ++i)
    data[i] = i % channel == 0 ? 127.0 / 128
                               : static_cast<double>(choices.bits() % 255) / 128 - 127.0 / 128;
  // No view: LibTorch multiplies by a view of what needs no gradient in another order.
  return flat.to(dtype).reshape(shape).clone();
}

// --- nodes ---------------------------------------------------------------------------------------

Node& Maker::emit(Forms forms, Args args, Kwargs kwargs) {
  const std::string_view form = choices.pick(forms);
  return form.starts_with('.')
             ? graph_->call_method(form.substr(1), std::move(args), std::move(kwargs))
             : graph_->call_function(form, std::move(args), std::move(kwargs));
}

Item Maker::add(Node& node, at::Tensor tensor) {
  bool inexact = false;
  auto look = [&](const Argument& argument) {
    argument.for_each_node([&](Node& input) { inexact |= inexact_.contains(&input); });
  };
  for (const Argument& argument : node.args()) look(argument);
  for (const KwArg& argument : node.kwargs()) look(argument.value);
  if (inexact) inexact_.insert(&node);
  items_.push_back({&node, std::move(tensor)});
  return items_.back();
}

Item Maker::call(Forms forms, Args args, Kwargs kwargs, Eager eager) {
  Node& node = emit(forms, std::move(args), std::move(kwargs));
  const Item item = add(node, eager());
  repeats_.push_back({&node, std::move(eager)});
  return item;
}

std::vector<Item> Maker::call_list(Forms forms, Args args, EagerList eager, bool all) {
  Node& node = emit(forms, std::move(args), {});
  const std::vector<at::Tensor> tensors = eager();
  if (is_inexact(*node.all_input_nodes().front())) inexact_.insert(&node);
  std::vector<Item> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!all && !choices.chance(60) && !(i + 1 == tensors.size() && items.empty())) continue;
    const auto index = static_cast<std::int64_t>(i);
    Node& item = graph_->call_function("operator.getitem", {node, index});
    items.push_back(add(item, tensors[i]));
    repeats_.push_back({&item, [tensor = tensors[i]] { return tensor; }});
  }
  return items;
}

void Maker::call_int(Forms forms, Args args, std::int64_t value) {
  ints_.emplace_back(&emit(forms, std::move(args), {}), value);
}

Item Maker::call_module(const std::string& path, const Item& input, Eager eager) {
  Node& node = graph_->call_module(path, {input});
  const Item item = add(node, eager());
  repeats_.push_back({&node, std::move(eager)});
  return item;
}

Item Maker::get_attr(const std::string& path, const at::Tensor& tensor) {
  return add(graph_->get_attr(path), tensor);
}

// --- attributes ----------------------------------------------------------------------------------

// What is remembered was never written to: attributes are made before their first reader.
void Maker::remember(at::Tensor tensor) {
  at::Tensor copy = tensor.detach().clone();
  originals_.emplace_back(std::move(tensor), std::move(copy));
}

std::string Maker::add_attribute(Kind kind, const at::Tensor& tensor) {
  const std::string stem = kind == Kind::kParameter ? "weight"
                           : kind == Kind::kBuffer  ? "state"
                                                    : "fixed";
  std::string path = (choices.chance(20) ? "block." : "") + stem + std::to_string(counter_++);
  if (kind == Kind::kParameter)
    module_->set_parameter(path,
                           tensor.is_floating_point() ? tensor.set_requires_grad(true) : tensor);
  else if (kind == Kind::kBuffer)
    module_->set_buffer(path, tensor, /*persistent=*/choices.chance(80));
  else
    module_->set_constant(path, tensor);
  remember(tensor);
  attributes_.emplace_back(path, tensor);
  return path;
}

std::string Maker::add_made_module(std::shared_ptr<torch::nn::Module> module,
                                   at::ScalarType dtype) {
  module->eval();
  module->to(dtype);
  std::string path = (choices.chance(25) ? "block.layer" : "layer") + std::to_string(counter_++);
  for (auto& item : module->named_parameters()) {
    item.value().data().copy_(weight(dtype, item.value().sizes().vec()));
    remember(item.value());
    attributes_.emplace_back(path + "." + item.key(), item.value());
  }
  for (auto& item : module->named_buffers()) {
    if (item.value().is_floating_point())
      item.value().copy_(values(dtype, item.value().sizes().vec(), false).abs().add_(0.5));
    remember(item.value());
  }
  module_->set_submodule(path, std::move(module));
  return path;
}

bool Maker::call_nested(const std::vector<Item>& inputs) {
  if (depth_ > 0) return false;
  auto graph = std::make_shared<Graph>();
  auto nested = std::make_shared<GraphModule>(graph, "Nested");
  nested->eval();
  std::vector<Item> items;
  for (const Item& input : inputs)
    items.push_back({&graph->placeholder("input" + std::to_string(items.size())), input.tensor});
  auto exchange = [&] {
    std::swap(graph_, graph);
    std::swap(module_, nested);
    std::swap(items_, items);
  };
  std::vector<std::pair<Node*, std::int64_t>> outer_ints;
  std::vector<Repeat> outer_repeats;
  std::vector<std::pair<std::string, at::Tensor>> outer_attributes;
  auto exchange_rest = [&] {
    std::swap(ints_, outer_ints);
    std::swap(repeats_, outer_repeats);
    std::swap(attributes_, outer_attributes);
  };
  exchange();
  exchange_rest();
  ++depth_;
  const char* rule = rule_;
  apply_rules(static_cast<int>(choices.between(1, 6)));
  rule_ = rule;
  const Item result = items_.back();
  graph_->output(result);
  --depth_;
  exchange();
  exchange_rest();
  const std::string path = "nested" + std::to_string(counter_++);
  module_->set_submodule(path, nested);
  Args args(inputs.begin(), inputs.end());
  Node& node = graph_->call_module(path, std::move(args));
  add(node, result.tensor);
  if (inexact_.contains(result.node)) inexact_.insert(&node);
  return true;
}

// --- the program ---------------------------------------------------------------------------------

void Maker::add_inputs() {
  const std::size_t count = 1 + choices.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    const at::ScalarType dtype = choices.chance(45) ? at::kFloat : pick_dtype();
    at::Tensor tensor = values(dtype, pick_shape());
    if (tensor.dim() >= 2 && choices.chance(20)) tensor = tensor.transpose(0, -1);
    if (tensor.dim() >= 1 && tensor.size(-1) > 0 && fits(2 * tensor.numel()) && choices.chance(10))
      tensor = at::cat({tensor, tensor}, -1).slice(-1, 0, INT64_MAX, 2);
    // Memory of another input, as a caller may pass it.
    if (i > 0 && choices.chance(8)) {
      const at::Tensor& other = choices.pick(items_).tensor;
      tensor = other.dim() >= 2 ? other.transpose(0, 1) : other;
    }
    items_.push_back({&graph_->placeholder("x" + std::to_string(i)), tensor});
    eager_inputs_.emplace_back(tensor);
  }
  if (choices.chance(15)) {
    const auto value = static_cast<std::int64_t>(choices.below(4));
    ints_.emplace_back(&graph_->placeholder_with_default("count", value, "int"), value);
  }
}

bool Maker::repeat() {
  if (repeats_.empty()) return false;
  rule_ = "repeat";
  const Repeat chosen = choices.pick(repeats_);
  Node& copy = graph_->node_copy(*chosen.node, [](Node& input) { return Argument(input); });
  add(copy, chosen.eager());
  if (inexact_.contains(chosen.node)) inexact_.insert(&copy);
  return true;
}

bool Maker::apply_rule() {
  auto roll = static_cast<int>(choices.below(100));
  auto takes = [&](int percent) { return (roll -= percent) < 0; };
  Group group = Group::kElementwise;
  if (takes(options.view_percent)) {
    group = Group::kView;
  } else if (takes(options.module_percent)) {
    group = Group::kModule;
  } else if (takes(options.factory_percent)) {
    group = Group::kFactory;
  } else if (takes(options.noop_percent)) {
    group = Group::kNoop;
  } else if (writing_ && takes(options.write_percent)) {
    group = Group::kWrite;
  } else if (takes(options.repeat_percent)) {
    return repeat();
  } else if (takes(kReductionPercent)) {
    group = Group::kReduction;
  }
  const std::span<const Rule> rules = rules_of(group);
  std::size_t total = 0;
  for (const Rule& rule : rules) total += static_cast<std::size_t>(rule.weight);
  std::size_t at = choices.below(total);
  const Rule* chosen = &rules.front();
  while (at >= static_cast<std::size_t>(chosen->weight))
    at -= static_cast<std::size_t>((chosen++)->weight);
  rule_ = chosen->name;
  if (!chosen->apply(*this)) return false;
  ++program_.rules[chosen->name];
  return true;
}

void Maker::apply_rules(int operations) {
  for (int made = 0, tries = 0; made < operations && tries < 4 * operations; ++tries)
    made += apply_rule();
}

Argument Maker::results(bool nested) {
  auto leaf = [&]() -> Argument {
    if (!ints_.empty() && choices.chance(10)) return *choices.pick(ints_).first;
    if (choices.chance(3)) return choices.pick<Argument>({Argument(), 1, 2.5, true});
    return *pick({}, /*inexact=*/true);
  };
  if (!nested && choices.chance(30)) return *pick({}, /*inexact=*/true);
  std::vector<Argument> items;
  for (std::size_t i = 1 + choices.below(4); i > 0; --i)
    items.push_back(nested || choices.chance(80) ? leaf() : results(true));
  switch (choices.below(3)) {
    case 0:
      return Argument::list(std::move(items));
    case 1:
      return Argument::tuple(std::move(items));
    default: {
      std::vector<DictItem> dict;
      for (Argument& item : items)
        dict.emplace_back("key" + std::to_string(dict.size()), std::move(item));
      return Argument::dict(std::move(dict));
    }
  }
}

Value Maker::value_of(const Argument& argument) const {
  if (Node* node = argument.node_or_null()) {
    for (const Item& item : items_)
      if (item.node == node) return item.tensor.clone();
    for (const auto& [made, value] : ints_)
      if (made == node) return value;
  }
  if (argument.kind() == Argument::Kind::kDict) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (const DictItem& item : argument.dict_items())
      dict.insert(item.first.to_string(), value_of(item.second));
    return dict;
  }
  if (argument.is_aggregate()) {
    Values items;
    for (const Argument& item : argument.items()) items.push_back(value_of(item));
    if (argument.kind() == Argument::Kind::kTuple)
      return c10::ivalue::Tuple::create(std::move(items));
    c10::impl::GenericList list(c10::AnyType::get());
    for (Value& item : items) list.push_back(std::move(item));
    return list;
  }
  if (argument.is_none()) return {};
  if (argument.kind() == Argument::Kind::kBool) return argument.to_bool();
  if (argument.kind() == Argument::Kind::kInt) return argument.to_int();
  return argument.to_double();
}

// What the eager run left behind; then attributes hold again what they held before.
void Maker::finish() {
  Outcome eager;
  eager.results = value_of(graph_->output_node().arg(0));
  for (const Value& input : eager_inputs_) eager.inputs.emplace_back(input.toTensor().clone());
  for (const auto& [name, tensor] : state_of(*module_)) {
    const auto original = std::ranges::find_if(
        originals_, [&](const auto& entry) { return entry.first.is_same(tensor); });
    if (original == originals_.end()) throw std::logic_error("unknown attribute " + name);
    if (!same_bits(tensor, original->second)) eager.written.emplace(name, tensor.detach().clone());
  }
  for (auto& [tensor, copy] : originals_)
    if (!same_bits(tensor, copy)) tensor.data().copy_(copy);
  module_->recompile();
  program_.module = module_;
  program_.eager = std::move(eager);
}

Program Maker::make() {
  const at::NoGradGuard no_grad;
  writing_ = choices.chance(options.writing_programs_percent);
  drawing_ = choices.chance(options.drawing_programs_percent);
  for (int i = 0; i < 3; ++i) sizes_.push_back(choices.pick(options.sizes));
  sizes_.push_back(1);
  add_inputs();
  program_.inputs = copies_of(eager_inputs_);
  if (drawing_) at::manual_seed(2026);
  try {
    apply_rules(1 + static_cast<int>(
                        choices.below(static_cast<std::size_t>(std::max(options.operations, 1)))));
  } catch (const std::exception& error) {
    throw std::logic_error(std::string("rule ") + rule_ + ": " + error.what() + "\n" +
                           graph_->str());
  }
  graph_->output(results(false));
  finish();
  return std::move(program_);
}

// --- the interface -------------------------------------------------------------------------------

Program random_program(Choices& choices, const ProgramOptions& options) {
  return Maker(choices, options).make();
}

Program random_program(std::uint64_t seed, const ProgramOptions& options) {
  Choices choices(seed);
  return random_program(choices, options);
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const Group group : {Group::kView, Group::kModule, Group::kFactory, Group::kNoop,
                            Group::kWrite, Group::kReduction, Group::kElementwise})
    for (const Rule& rule : rules_of(group)) names.emplace_back(rule.name);
  return names;
}

Program copy_of(const Program& program) {
  Program copy = program;
  copy.module = program.module->deep_copy();
  copy.inputs = copies_of(program.inputs);
  return copy;
}

}  // namespace fx::fuzz
