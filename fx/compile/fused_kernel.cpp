#include "fx/compile/fused_kernel.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "fx/base/error.h"
#include "fx/compile/buffer_pool.h"
#include "fx/compile/lower_node.h"
#include "fx/compile/unsupported.h"
#include "fx/graph/module_types.h"
#include "fx/run/tensor_spec.h"

namespace fx::loops {
namespace {

// More combinations than this are left to the operators.
constexpr std::size_t kMaxVariants = 16;

// Lets graphs call kernels. Once in a process.
void register_kernel_type() {
  static const bool done = [] {
    ModuleType type;
    type.name = "fx.FusedKernel";
    type.short_name = "FusedKernel";
    type.is_leaf = true;
    type.call = [](torch::nn::Module& module, Values args, KwValues) {
      return dynamic_cast<FusedKernel&>(module).forward(std::move(args));
    };
    type.is_impure = [](const torch::nn::Module&, bool) { return false; };
    register_module_type(typeid(FusedKernel), std::move(type));
    return true;
  }();
  (void)done;
}

}  // namespace

struct FusedKernel::Variant {
  Signature signature;
  std::shared_ptr<const Kernel> kernel;  // null: these run as operators; equal groups share it
  std::string problem;
  std::unique_ptr<const Variant> next;

  enum Choice : int { kOpen, kKernel, kOperators };
  mutable std::atomic<int> choice{kKernel};
};

FusedKernel::FusedKernel(std::string name, std::shared_ptr<GraphModule> operators, bool autotune)
    : KernelModule(name),
      name_(std::move(name)),
      operators_(std::move(operators)),
      autotune_(autotune) {
  register_kernel_type();
  returns_tuple_ = operators_->graph().output_node().arg(0).is_aggregate();
}

FusedKernel::~FusedKernel() {
  std::unique_ptr<const Variant> variant(variants_.load());
  while (variant) variant = std::move(const_cast<Variant&>(*variant).next);
}

std::shared_ptr<torch::nn::Module> FusedKernel::clone(const std::optional<torch::Device>&) const {
  return std::make_shared<FusedKernel>(name_, operators_->deep_copy(), autotune_);
}

bool FusedKernel::collect(std::span<const Value> values, Inputs& inputs) const {
  const bool gradients = at::GradMode::is_enabled();
  for (const Value& value : values) {
    if (value.isInt()) {
      inputs.scalars.push_back(value.toInt());
      inputs.numbers.push_back(c10::ScalarType::Long);
    } else if (value.isDouble()) {
      inputs.scalars.push_back(std::bit_cast<std::int64_t>(value.toDouble()));
      inputs.numbers.push_back(c10::ScalarType::Double);
    } else if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!plain_tensor(tensor) || (gradients && tensor.requires_grad())) return false;
      inputs.tensors.push_back(tensor);
      inputs.numbers.push_back(c10::ScalarType::Undefined);
    } else {
      return false;
    }
  }
  return plain_dispatch();
}

FusedKernel::Signature FusedKernel::signature_of(const Inputs& inputs) {
  Signature out;
  out.push_back(static_cast<std::uint8_t>(inputs.scalars.size()));
  for (std::size_t i = 0; !inputs.scalars.empty() && i < inputs.numbers.size(); ++i)
    out.push_back(static_cast<std::uint8_t>(inputs.numbers[i]));
  for (const at::Tensor& tensor : inputs.tensors) {
    out.push_back(static_cast<std::uint8_t>(tensor.scalar_type()));
    const at::IntArrayRef sizes = tensor.sizes();
    out.push_back(static_cast<std::uint8_t>(sizes.size()));
    for (std::int64_t size : sizes) out.push_back(size == 1 ? 1 : 0);
    if (tensor.is_contiguous()) continue;
    const at::IntArrayRef strides = tensor.strides();
    for (std::size_t d = 0; d < sizes.size(); ++d) out.push_back(strides[d] == 0 ? 2 : 3);
    for (std::uint8_t d : dim_order(sizes, strides)) out.push_back(d);
  }
  return out;
}

const FusedKernel::Variant* FusedKernel::find(const Signature& signature) const {
  for (const Variant* v = variants_.load(std::memory_order_acquire); v; v = v->next.get())
    if (v->signature == signature) return v;
  return nullptr;
}

Value FusedKernel::run_operators(Values inputs) {
  operator_calls_.fetch_add(1, std::memory_order_relaxed);
  return operators_->forward(std::move(inputs));
}

Value FusedKernel::forward(Values values) {
  Inputs inputs;
  if (!collect(values, inputs)) return run_operators(std::move(values));
  const Signature signature = signature_of(inputs);
  const Variant* variant = find(signature);
  if (!variant) {
    Value result = run_operators(std::move(values));
    std::vector<TensorMeta> results;
    for (const Value& item : returns_tuple_ ? elements(result) : Values{result})
      results.emplace_back(item.toTensor());
    add_variant(signature, inputs, results);
    return result;
  }
  if (variant->choice.load(std::memory_order_relaxed) == Variant::kOpen)
    choose(*variant, values, inputs);
  c10::SmallVector<at::Tensor, 4> outputs;
  if (!variant->kernel || variant->choice.load(std::memory_order_relaxed) == Variant::kOperators ||
      !variant->kernel->run(inputs.tensors, outputs, inputs.scalars))
    return run_operators(std::move(values));
  kernel_calls_.fetch_add(1, std::memory_order_relaxed);
  if (!returns_tuple_) return std::move(outputs[0]);
  return c10::ivalue::Tuple::create(Values(outputs.begin(), outputs.end()));
}

bool FusedKernel::call_into(std::span<const Value> values, std::span<const at::Tensor> results) {
  Inputs inputs;
  if (!collect(values, inputs)) return false;
  const Variant* variant = find(signature_of(inputs));
  if (!variant || !variant->kernel ||
      variant->choice.load(std::memory_order_relaxed) != Variant::kKernel)
    return false;
  c10::SmallVector<at::Tensor, 4> outputs;
  {
    const OfferedTensors offered(results);
    if (!variant->kernel->run(inputs.tensors, outputs, inputs.scalars)) return false;
  }
  if (outputs.size() != results.size()) return false;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].is_same(results[i])) return false;
  kernel_calls_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Times both. The first run of each warms the caches; the operators have no effects to repeat.
void FusedKernel::choose(const Variant& variant, const Values& values, const Inputs& inputs) {
  using Clock = std::chrono::steady_clock;
  Clock::duration best[2] = {Clock::duration::max(), Clock::duration::max()};
  c10::SmallVector<at::Tensor, 4> outputs;
  for (int run = 0; run < 3; ++run) {
    const auto start = Clock::now();
    if (!variant.kernel || !variant.kernel->run(inputs.tensors, outputs, inputs.scalars)) {
      variant.choice = Variant::kOperators;
      return;
    }
    const auto middle = Clock::now();
    operators_->forward(values);
    best[0] = std::min(best[0], middle - start);
    best[1] = std::min(best[1], Clock::now() - middle);
  }
  variant.choice = best[0] <= best[1] ? Variant::kKernel : Variant::kOperators;
}

void FusedKernel::prepare(const FusedKernel* equal) {
  if (const Variant* known = equal ? equal->variants_.load() : nullptr) {
    auto variant = std::make_unique<Variant>();
    variant->signature = known->signature;
    variant->kernel = known->kernel;
    variant->problem = known->problem;
    variant->choice = autotune_ ? Variant::kOpen : Variant::kKernel;
    const std::lock_guard lock(mutex_);
    FX_ASSERT(!variants_.load(), "prepare() comes first");
    variants_.store(variant.release(), std::memory_order_release);
    return;
  }
  Inputs inputs;
  std::vector<TensorMeta> results;
  for (const Node& node : operators_->graph().nodes()) {
    if (node.is_placeholder()) {
      const TensorMeta* meta = tensor_meta(node);
      if (const auto type = number_type(node); type && !meta) {
        inputs.scalars.push_back(0);
        inputs.numbers.push_back(*type);
        continue;
      }
      if (!meta || meta->layout != c10::Layout::Strided) return;
      inputs.tensors.push_back(at::empty_strided(meta->shape, meta->stride,
                                                 at::TensorOptions(meta->dtype).device(at::kMeta)));
      inputs.numbers.push_back(c10::ScalarType::Undefined);
    } else if (node.is_output()) {
      for (const Node* result : node.all_input_nodes()) {
        const TensorMeta* meta = tensor_meta(*result);
        if (!meta || meta->layout != c10::Layout::Strided) return;
        results.push_back(*meta);
      }
    }
  }
  const Signature signature = signature_of(inputs);
  if (!find(signature)) add_variant(signature, inputs, results);
}

// A variant for inputs of these dtypes, sizes and strides that does what gave these results; the
// values of the inputs are not looked at. Null when there are too many.
const FusedKernel::Variant* FusedKernel::add_variant(const Signature& signature,
                                                     const Inputs& inputs,
                                                     const std::vector<TensorMeta>& results) {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Variant* v = variants_.load(); v; v = v->next.get()) ++count;
  if (const Variant* known = find(signature)) return known;
  if (count >= kMaxVariants) return nullptr;
  auto variant = std::make_unique<Variant>();
  variant->signature = signature;
  if (autotune_) variant->choice = Variant::kOpen;
  try {
    NodeLowering lowering;
    std::size_t at = 0;
    std::size_t value = 0;
    std::vector<Tensor> outputs;
    for (const Node& node : operators_->graph().nodes()) {
      const bool is_input = node.is_placeholder();
      const c10::ScalarType number =
          is_input ? inputs.numbers[value++] : c10::ScalarType::Undefined;
      if (number != c10::ScalarType::Undefined) {
        lowering.add_number(node, number);
      } else if (is_input) {
        lowering.add_input(node, inputs.tensors[at].scalar_type(), inputs.tensors[at].sizes());
        ++at;
      } else if (node.is_output()) {
        const auto add = [&](const Argument& argument) {
          const NodeExpr* expr = argument.is_node() ? lowering.find(argument.node()) : nullptr;
          if (!expr || expr->is_tuple) throw Unsupported("a result that is no tensor");
          outputs.push_back(expr->tensors[0]);
        };
        if (returns_tuple_)
          for (const Argument& item : node.arg(0).items()) add(item);
        else
          add(node.arg(0));
      } else {
        lowering.lower(node);
      }
    }
    std::vector<DimOrder> orders;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorMeta& meta = results[i];
      // What was derived must be what happened; anything else is a mistake in a lowering.
      bool same = meta.dtype == outputs[i].type && meta.dim() == outputs[i].dim();
      for (std::size_t d = 0; same && d < meta.shape.size(); ++d)
        same = meta.shape[d] == lowering.program().shapes().example(outputs[i].dims[d]);
      if (!same) throw Unsupported("the operators gave a result of another type or size");
      orders.push_back(dim_order(meta.shape, meta.stride));
    }
    variant->kernel = std::make_shared<Kernel>(name_, std::move(lowering.program()),
                                               std::move(outputs), std::move(orders));
    // The machine code for these strides, so that the next call has it.
    if (!variant->kernel->prepare(inputs.tensors))
      variant->problem = "no machine code for these strides";
  } catch (const Unsupported& e) {
    variant->kernel = nullptr;
    variant->problem = e.what();
  }
  variant->next.reset(variants_.load());
  const Variant* published = variant.release();
  variants_.store(published, std::memory_order_release);
  return published;
}

FusedKernel::Statistics FusedKernel::statistics() const {
  Statistics out{.kernel_calls = kernel_calls_.load(), .operator_calls = operator_calls_.load()};
  for (const Variant* v = variants_.load(std::memory_order_acquire); v; v = v->next.get()) {
    ++out.variants;
    if (v->kernel) out.codes += v->kernel->num_codes();
    if (!v->problem.empty() && out.problem.empty()) out.problem = v->problem;
  }
  return out;
}

std::vector<const Kernel*> FusedKernel::kernels() const {
  std::vector<const Kernel*> out;
  for (const Variant* v = variants_.load(std::memory_order_acquire); v; v = v->next.get())
    for (const Kernel* kernel = v->kernel.get(); kernel; kernel = kernel->second())
      out.push_back(kernel);
  return out;
}

}  // namespace fx::loops
