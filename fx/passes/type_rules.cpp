#include "fx/passes/type_rules.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "fx/base/error.h"
#include "fx/graph/module_types.h"

namespace fx {

// --- TypeCall ------------------------------------------------------------------------------------

const Argument* TypeCall::argument(std::size_t index, std::string_view name) const {
  return index < node_.num_args() ? &node_.args()[index] : node_.find_kwarg(name);
}

std::int64_t TypeCall::int_argument(std::size_t index, std::string_view name,
                                    std::int64_t otherwise) const {
  const Argument* found = argument(index, name);
  if (!found) return otherwise;
  if (found->kind() != Argument::Kind::kInt)
    fail("argument " + std::string(name) + " is " + repr(*found) + ", wanted a number");
  return found->to_int();
}

const ValueType& TypeCall::type_of(std::size_t index, std::string_view name) const {
  static const ValueType kNumber{.is_number = true, .tensor = TensorType::dyn()};
  const Argument* found = argument(index, name);
  if (!found) fail("argument " + std::string(name) + " is missing");
  if (Node* node = found->node_or_null()) return lookup_(*node);
  const Argument::Kind kind = found->kind();
  if (kind != Argument::Kind::kInt && kind != Argument::Kind::kFloat &&
      kind != Argument::Kind::kBool && kind != Argument::Kind::kComplex)
    fail("argument " + std::string(name) + " is " + repr(*found) + ", wanted a tensor or a number");
  return kNumber;
}

const TensorType& TypeCall::input() const { return type_of(0, "input").tensor; }

const TensorType& TypeCall::input_of_rank(std::size_t rank) const {
  if (const TensorType& found = input(); !found.is_dyn()) {
    if (found.dims().size() != rank)
      fail("the input has type " + found.to_string() + ", wanted " + std::to_string(rank) +
           " dimensions");
    return found;
  }
  const Argument* argument_of_input = argument(0, "input");
  Node* node = argument_of_input->node_or_null();
  if (!node) fail("the input is " + repr(*argument_of_input) + ", wanted a tensor");
  return lookup_(*node).tensor = TensorType::of(std::vector<TypeDim>(rank));
}

void TypeCall::fail(const std::string& problem) const {
  throw PassError(ErrorCode::kTypeMismatch,
                  "type_check: node " + std::string(node_.name()) + ", " +
                      (module_ ? module_type_name(*module_) : node_.target().str()) + ": " +
                      problem);
}

namespace {

using Dims = std::vector<TypeDim>;

ValueType tensor(TensorType type) { return {.is_number = false, .tensor = std::move(type)}; }
ValueType tensor(Dims dims) { return tensor(TensorType::of(std::move(dims))); }

// An axis counted from the end or the start, for a tensor of `rank` dimensions.
std::size_t axis_of(const TypeCall& call, std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size)
    call.fail("axis " + std::to_string(axis) + " is out of range for type " +
              call.input().to_string());
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

// Known dimensions up to the first `count`, or from the last ones.
std::vector<DimEquality> equal_dims(const TensorType& a, const TensorType& b, std::size_t count) {
  std::vector<DimEquality> equalities;
  if (a.is_dyn() || b.is_dyn()) return equalities;
  const std::size_t least = std::min({a.dims().size(), b.dims().size(), count});
  for (std::size_t i = 0; i < least; ++i) equalities.push_back({a.dims()[i], b.dims()[i]});
  return equalities;
}

std::vector<DimEquality> last_dims_equal(const TensorType& a, const TensorType& b,
                                         std::size_t count) {
  std::vector<DimEquality> equalities;
  if (a.is_dyn() || b.is_dyn()) return equalities;
  const std::size_t least = std::min({a.dims().size(), b.dims().size(), count});
  for (std::size_t i = 1; i <= least; ++i)
    equalities.push_back({a.dims()[a.dims().size() - i], b.dims()[b.dims().size() - i]});
  return equalities;
}

// --- operators -----------------------------------------------------------------------------------

// The result says no more than either operand: of [1, 2, Dyn] and [1, 2, 1] it is [1, 2, Dyn].
ValueType infer_broadcast(const TypeCall& call) {
  const ValueType& a = call.type_of(0, "input");
  const ValueType& b = call.type_of(1, "other");
  if (a.is_number || b.is_number) return a.is_number ? b : a;
  if (a.tensor.is_dyn() || b.tensor.is_dyn()) return tensor(TensorType::dyn());
  const auto [left, right] = broadcast_types(a.tensor, b.tensor);
  if (!is_consistent(left, right))
    call.fail("the operands have types " + a.tensor.to_string() + " and " + b.tensor.to_string() +
              ", which do not broadcast");
  Dims dims = left.dims();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (right.dims()[i].is_dyn()) dims[i] = right.dims()[i];
  return tensor(std::move(dims));
}

// A dimension that both operands share is that of the result.
std::vector<DimEquality> broadcast_equalities(const TypeCall& call) {
  const ValueType& a = call.type_of(0, "input");
  const ValueType& b = call.type_of(1, "other");
  const TensorType& result = call.annotation();
  if (a.is_number || b.is_number)
    return equal_dims(a.is_number ? b.tensor : a.tensor, result, static_cast<std::size_t>(-1));
  const auto [left, right] = broadcast_types(a.tensor, b.tensor);
  std::vector<DimEquality> equalities;
  if (left.is_dyn() || right.is_dyn() || result.is_dyn() ||
      result.dims().size() != left.dims().size())
    return equalities;
  for (std::size_t i = 0; i < left.dims().size(); ++i)
    if (left.dims()[i] == right.dims()[i]) equalities.push_back({left.dims()[i], result.dims()[i]});
  return equalities;
}

ValueType infer_same(const TypeCall& call) {
  if (call.input().is_dyn() && !call.annotation().is_dyn() && !call.type_of(0, "input").is_number)
    call.input_of_rank(call.annotation().dims().size());
  return call.type_of(0, "input");
}

std::vector<DimEquality> same_equalities(const TypeCall& call) {
  return equal_dims(call.input(), call.annotation(), static_cast<std::size_t>(-1));
}

ValueType infer_transpose(const TypeCall& call) {
  if (call.input().is_dyn()) return tensor(TensorType::dyn());
  Dims dims = call.input().dims();
  const std::size_t first = axis_of(call, call.int_argument(1, "dim0", 0), dims.size());
  const std::size_t second = axis_of(call, call.int_argument(2, "dim1", 0), dims.size());
  std::swap(dims[first], dims[second]);
  return tensor(std::move(dims));
}

std::vector<DimEquality> transpose_equalities(const TypeCall& call) {
  return equal_dims(infer_transpose(call).tensor, call.annotation(), static_cast<std::size_t>(-1));
}

// The sizes that a reshape asks for, with Dyn for -1 and for computed ones.
Dims wanted_sizes(const TypeCall& call, bool* has_rest) {
  std::vector<Argument> sizes;
  const Argument* first = call.argument(1, "shape");
  if (!first) first = call.argument(1, "size");
  if (!first) call.fail("the shape is missing");
  if (first->is_aggregate() && first->kind() != Argument::Kind::kDict)
    sizes.assign(first->items().begin(), first->items().end());
  else
    sizes.assign(call.node().args().begin() + 1, call.node().args().end());
  Dims dims;
  for (const Argument& size : sizes) {
    if (size.is_node()) {
      dims.emplace_back();
      continue;
    }
    if (size.kind() != Argument::Kind::kInt || size.to_int() < -1)
      call.fail("the shape has " + repr(size) + " in it, wanted sizes");
    if (size.to_int() == -1 && std::exchange(*has_rest, true))
      call.fail("the shape has -1 in it twice");
    dims.push_back(size.to_int() == -1 ? TypeDim() : TypeDim(size.to_int()));
  }
  return dims;
}

struct Product {
  std::int64_t known = 1;  // of the known ones
  bool is_exact = true;    // all are known
};

Product product_of(const TypeCall& call, const Dims& dims) {
  Product product;
  for (const TypeDim& dim : dims) {
    if (!dim.number())
      product.is_exact = false;
    else if (__builtin_mul_overflow(product.known, *dim.number(), &product.known))
      call.fail("the number of elements of " + TensorType::of(dims).to_string() +
                " is larger than any tensor's");
  }
  return product;
}

// Whether numbers for the unknown sizes exist.
ValueType infer_reshape(const TypeCall& call) {
  bool has_rest = false;
  Dims dims = wanted_sizes(call, &has_rest);
  if (call.input().is_dyn()) return tensor(std::move(dims));
  const Product from = product_of(call, call.input().dims());
  const Product to = product_of(call, dims);
  const auto divides = [](std::int64_t part, std::int64_t whole) {
    return part == 0 ? whole == 0 : whole % part == 0;
  };
  const bool fits = from.is_exact && to.is_exact ? from.known == to.known
                    : from.is_exact              ? divides(to.known, from.known)
                    : to.is_exact                ? divides(from.known, to.known)
                                                 : true;
  if (!fits)
    call.fail("the input has type " + call.input().to_string() + ", which does not reshape to " +
              TensorType::of(dims).to_string());
  if (from.is_exact && has_rest && to.known != 0 &&
      std::ranges::count_if(dims, [](const TypeDim& dim) { return dim.is_dyn(); }) == 1)
    *std::ranges::find_if(dims, [](const TypeDim& dim) { return dim.is_dyn(); }) =
        from.known / to.known;
  return tensor(std::move(dims));
}

ValueType flatten(const TypeCall& call, std::int64_t start, std::int64_t end) {
  if (call.input().is_dyn()) return tensor(TensorType::dyn());
  Dims dims = call.input().dims();
  if (dims.empty()) dims = {1};
  const std::size_t first = axis_of(call, start, dims.size());
  const std::size_t last = axis_of(call, end, dims.size());
  if (first > last)
    call.fail("axes " + std::to_string(start) + " to " + std::to_string(end) + " of type " +
              call.input().to_string() + " are in the wrong order");
  const Dims middle(dims.begin() + static_cast<std::ptrdiff_t>(first),
                    dims.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  const Product product = product_of(call, middle);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(first),
             dims.begin() + static_cast<std::ptrdiff_t>(last));
  if (middle.size() > 1) dims[first] = product.is_exact ? TypeDim(product.known) : TypeDim();
  return tensor(std::move(dims));
}

std::vector<DimEquality> flatten_equalities(const TypeCall& call, std::int64_t start,
                                            std::int64_t end) {
  if (call.input().is_dyn() || call.input().dims().empty()) return {};
  const std::size_t rank = call.input().dims().size();
  std::vector<DimEquality> equalities =
      equal_dims(call.input(), call.annotation(), axis_of(call, start, rank));
  const std::vector<DimEquality> behind =
      last_dims_equal(call.input(), call.annotation(), rank - 1 - axis_of(call, end, rank));
  equalities.insert(equalities.end(), behind.begin(), behind.end());
  return equalities;
}

// --- modules -------------------------------------------------------------------------------------

// The rule of exactly the class Impl.
template <typename Impl>
const Impl& as(const TypeCall& call) {
  return dynamic_cast<const Impl&>(*call.module());
}

void want_channels(const TypeCall& call, const TensorType& type, std::size_t axis,
                   std::int64_t wanted, std::string_view what) {
  if (!is_consistent(type.dims()[axis], wanted))
    call.fail("type " + type.to_string() + " has " + type.dims()[axis].to_string() + " at axis " +
              std::to_string(axis) + ", wanted " + std::to_string(wanted) + " (" +
              std::string(what) + ")");
}

ValueType infer_batch_norm2d(const TypeCall& call) {
  const auto& module = as<torch::nn::BatchNorm2dImpl>(call);
  const TensorType input = call.input_of_rank(4);
  want_channels(call, input, 1, module.options.num_features(), "num_features");
  return tensor(input);
}

// How a window slides along one axis.
struct Window {
  std::int64_t kernel, stride, padding, dilation;
  bool ceil_mode = false;

  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

TypeDim positions(const TypeCall& call, const TypeDim& size, const Window& window) {
  const std::optional<std::int64_t> known = size.number();
  if (known && *known + 2 * window.padding < window.extent())
    call.fail("type " + call.input().to_string() + " has " + size.to_string() + " where " +
              std::to_string(window.extent() - 2 * window.padding) +
              " is the least that the window fits into");
  if (window.ceil_mode) {
    if (!known)
      return window.stride == 1 ? size.plus(2 * window.padding - window.extent() + 1) : TypeDim();
    const std::int64_t steps =
        (*known + 2 * window.padding - window.extent() + window.stride - 1) / window.stride;
    // The last window has to start inside the input or the padding before it.
    return steps * window.stride >= *known + window.padding ? steps : steps + 1;
  }
  return size.plus(2 * window.padding - window.extent()).floor_div(window.stride).plus(1);
}

// Height and width, the last two axes, behind a window.
Dims slide(const TypeCall& call, const std::array<Window, 2>& windows) {
  Dims dims = call.input().dims();
  for (std::size_t i = 0; i < 2; ++i) {
    TypeDim& dim = dims[dims.size() - 2 + i];
    dim = positions(call, dim, windows[i]);
  }
  return dims;
}

std::array<Window, 2> windows_of(const torch::nn::Conv2dImpl& module) {
  const auto& options = module.options;
  std::array<Window, 2> windows{};
  for (std::size_t i = 0; i < 2; ++i) {
    windows[i] = {.kernel = (*options.kernel_size())[i],
                  .stride = (*options.stride())[i],
                  .padding = 0,
                  .dilation = (*options.dilation())[i]};
    if (const auto* padding = std::get_if<torch::ExpandingArray<2>>(&options.padding()))
      windows[i].padding = (**padding)[i];
    else if (std::holds_alternative<torch::enumtype::kSame>(options.padding()))
      windows[i].kernel = 1;  // of stride 1: the size stays
  }
  return windows;
}

std::array<Window, 2> windows_of(const torch::nn::MaxPool2dImpl& module) {
  const auto& options = module.options;
  std::array<Window, 2> windows{};
  for (std::size_t i = 0; i < 2; ++i)
    windows[i] = {(*options.kernel_size())[i], (*options.stride())[i], (*options.padding())[i],
                  (*options.dilation())[i], options.ceil_mode()};
  return windows;
}

std::array<Window, 2> windows_of(const torch::nn::AvgPool2dImpl& module) {
  const auto& options = module.options;
  std::array<Window, 2> windows{};
  for (std::size_t i = 0; i < 2; ++i)
    windows[i] = {(*options.kernel_size())[i], (*options.stride())[i], (*options.padding())[i], 1,
                  options.ceil_mode()};
  return windows;
}

// Of an input of which nothing is known, one with a batch is taken.
void want_images(const TypeCall& call) {
  if (call.input().is_dyn()) call.input_of_rank(4);
  if (const std::size_t rank = call.input().dims().size(); rank != 3 && rank != 4)
    call.fail("the input has type " + call.input().to_string() + ", wanted 3 or 4 dimensions");
}

ValueType infer_conv2d(const TypeCall& call) {
  const auto& module = as<torch::nn::Conv2dImpl>(call);
  want_images(call);
  const std::size_t channels = call.input().dims().size() - 3;
  want_channels(call, call.input(), channels, module.options.in_channels(), "in_channels");
  Dims dims = slide(call, windows_of(module));
  dims[channels] = module.options.out_channels();
  return tensor(std::move(dims));
}

std::vector<DimEquality> batch_equalities(const TypeCall& call) {
  return equal_dims(call.input(), call.annotation(),
                    call.input().is_dyn() || call.input().dims().size() == 3 ? 0 : 1);
}

// What is known of height and width behind a window, in terms of those before it.
template <typename Impl>
TensorType window_relations(const TypeCall& call) {
  if (call.input().is_dyn() || call.annotation().is_dyn() ||
      call.annotation().dims().size() != call.input().dims().size())
    return call.annotation();
  Dims dims = call.annotation().dims();
  const Dims found = slide(call, windows_of(as<Impl>(call)));
  for (std::size_t i = dims.size() - 2; i < dims.size(); ++i)
    if (!found[i].is_dyn()) dims[i] = found[i];
  return TensorType::of(std::move(dims));
}

template <typename Impl>
ValueType infer_pool2d(const TypeCall& call) {
  want_images(call);
  return tensor(slide(call, windows_of(as<Impl>(call))));
}

std::vector<DimEquality> image_equalities(const TypeCall& call) {
  return equal_dims(call.input(), call.annotation(),
                    call.input().is_dyn() ? 0 : call.input().dims().size() - 2);
}

ValueType infer_adaptive_avg_pool2d(const TypeCall& call) {
  const auto& sizes = *as<torch::nn::AdaptiveAvgPool2dImpl>(call).options.output_size();
  want_images(call);
  Dims dims = call.input().dims();
  for (std::size_t i = 0; i < 2; ++i)
    if (sizes[i]) dims[dims.size() - 2 + i] = *sizes[i];
  return tensor(std::move(dims));
}

ValueType infer_linear(const TypeCall& call) {
  const auto& module = as<torch::nn::LinearImpl>(call);
  if (call.input().is_dyn()) {
    if (call.annotation().is_dyn()) return tensor(TensorType::dyn());
    call.input_of_rank(call.annotation().dims().size());
  }
  Dims dims = call.input().dims();
  if (dims.empty()) call.fail("the input has type TensorType[], wanted at least one dimension");
  want_channels(call, call.input(), dims.size() - 1, module.options.in_features(), "in_features");
  dims.back() = module.options.out_features();
  return tensor(std::move(dims));
}

std::vector<DimEquality> all_but_last_equal(const TypeCall& call) {
  return equal_dims(call.input(), call.annotation(),
                    call.input().is_dyn() ? 0 : call.input().dims().size() - 1);
}

// --- the table -----------------------------------------------------------------------------------

class RuleTable {
 public:
  RuleTable() {
    for (const std::string_view name : {"add", "sub", "mul", "div"})
      for (const std::string_view overload : {".Tensor", ".Scalar"})
        add_operator(name, {infer_broadcast, broadcast_equalities, nullptr}, overload);
    for (const std::string_view name : {"add", "sub", "mul", "truediv"})
      for (const std::string_view form : {"operator.", "operator.i"})
        rules_[std::string(form) + std::string(name)] = {infer_broadcast, broadcast_equalities,
                                                         nullptr};
    for (const std::string_view name :
         {"relu", "sigmoid", "tanh", "abs", "neg", "exp", "dropout", "contiguous", "clone"})
      add_operator(name, {infer_same, same_equalities, nullptr}, "");
    add_operator("transpose", {infer_transpose, transpose_equalities, nullptr}, ".int");
    add_operator("reshape", {infer_reshape, nullptr, nullptr}, "");
    add_operator("view", {infer_reshape, nullptr, nullptr}, "");
    add_operator("flatten",
                 {[](const TypeCall& call) {
                    return flatten(call, call.int_argument(1, "start_dim", 0),
                                   call.int_argument(2, "end_dim", -1));
                  },
                  [](const TypeCall& call) {
                    return flatten_equalities(call, call.int_argument(1, "start_dim", 0),
                                              call.int_argument(2, "end_dim", -1));
                  },
                  nullptr},
                 ".using_ints");
    // Of the attributes of a tensor only its shape is known to the checker, as something unknown.
    rules_["builtins.getattr"] = {[](const TypeCall& call) {
                                    const Argument* name = call.argument(1, "name");
                                    if (!name || !(*name == Argument("shape")))
                                      call.fail("no rule for an attribute other than shape");
                                    return tensor(TensorType::dyn());
                                  },
                                  nullptr, nullptr};
    for (const std::string_view name :
         {"CELU", "Dropout", "Dropout2d", "ELU", "GELU", "Identity", "LeakyReLU", "ReLU", "ReLU6",
          "SELU", "SiLU", "Sigmoid", "Softplus", "Tanh"})
      rules_["torch.nn." + std::string(name)] = {infer_same, same_equalities, nullptr};
    rules_["torch.nn.BatchNorm2d"] = {infer_batch_norm2d, same_equalities, nullptr};
    rules_["torch.nn.Conv2d"] = {infer_conv2d, batch_equalities,
                                 window_relations<torch::nn::Conv2dImpl>};
    rules_["torch.nn.MaxPool2d"] = {infer_pool2d<torch::nn::MaxPool2dImpl>, image_equalities,
                                    window_relations<torch::nn::MaxPool2dImpl>};
    rules_["torch.nn.AvgPool2d"] = {infer_pool2d<torch::nn::AvgPool2dImpl>, image_equalities,
                                    window_relations<torch::nn::AvgPool2dImpl>};
    rules_["torch.nn.AdaptiveAvgPool2d"] = {infer_adaptive_avg_pool2d, image_equalities, nullptr};
    rules_["torch.nn.Linear"] = {infer_linear, all_but_last_equal, nullptr};
    const auto range = [](const TypeCall& call) {
      const auto& options = as<torch::nn::FlattenImpl>(call).options;
      return std::pair(options.start_dim(), options.end_dim());
    };
    rules_["torch.nn.Flatten"] = {[range](const TypeCall& call) {
                                    return flatten(call, range(call).first, range(call).second);
                                  },
                                  [range](const TypeCall& call) {
                                    return flatten_equalities(call, range(call).first,
                                                              range(call).second);
                                  },
                                  nullptr};
  }

  static RuleTable& instance() {
    static RuleTable table;
    return table;
  }

  void set(std::string_view target, TypeRule rule) {
    const std::lock_guard lock(mutex_);
    rules_[std::string(target)] = std::move(rule);
  }

  std::optional<TypeRule> find(const std::string& target) {
    const std::lock_guard lock(mutex_);
    const auto found = rules_.find(target);
    return found == rules_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  // A function of torch, the operator behind it, and the method, each in place as well.
  void add_operator(std::string_view name, const TypeRule& rule, std::string_view overload) {
    for (const std::string_view end : {"", "_"}) {
      const std::string base = std::string(name) + std::string(end);
      rules_["torch." + base] = rules_["torch.nn.functional." + base] = rules_["." + base] = rule;
      rules_["aten::" + base + std::string(overload)] = rule;
    }
  }

  std::mutex mutex_;
  std::map<std::string, TypeRule, std::less<>> rules_;
};

}  // namespace

void register_type_rule(std::string_view target, TypeRule rule) {
  RuleTable::instance().set(target, std::move(rule));
}

std::optional<TypeRule> find_type_rule(const Node& node, const torch::nn::Module* module) {
  if (node.op() == Opcode::kCallModule)
    return module ? RuleTable::instance().find(module_type_name(*module)) : std::nullopt;
  const std::string& target = node.target().str();
  return RuleTable::instance().find(node.op() == Opcode::kCallMethod ? "." + target : target);
}

}  // namespace fx
