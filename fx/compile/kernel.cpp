#include "fx/compile/kernel.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fx/base/error.h"
#include "fx/compile/kernel_call.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

// More pieces than this mean that the strides differ in each call.
constexpr std::size_t kMaxCodes = 32;

// By operand: the operands that what it is gathered by is computed from.
std::vector<std::vector<std::size_t>> index_sources(const Nest& nest) {
  std::vector<std::vector<std::size_t>> out(nest.operands.size());
  for (const NestValue& load : nest.values) {
    if (load.op != Op::kLoad) continue;
    auto& sources = out[static_cast<std::size_t>(load.index)];
    std::vector<ValueId> todo(load.args.begin() + 1, load.args.end());
    std::vector<bool> seen(nest.values.size());
    while (!todo.empty()) {
      const ValueId id = todo.back();
      todo.pop_back();
      if (id < 0 || seen[static_cast<std::size_t>(id)]) continue;
      seen[static_cast<std::size_t>(id)] = true;
      const NestValue& value = nest.values[static_cast<std::size_t>(id)];
      if (value.op == Op::kLoad || value.op == Op::kIndex)
        sources.push_back(static_cast<std::size_t>(value.index));
      todo.insert(todo.end(), value.args.begin(), value.args.end());
    }
  }
  return out;
}

}  // namespace

DimOrder dim_order(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  DimOrder order(sizes.size());
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  // Insertion sort, since "outside of" is no order: dimensions that say nothing stay where they
  // are, and the others are compared across them.
  for (std::size_t i = 1; i < order.size(); ++i)
    for (std::size_t at = i, k = i; k-- > 0;) {
      const std::uint8_t a = order[k];
      const std::uint8_t b = order[at];
      if (sizes[a] == 1 || sizes[b] == 1 || strides[a] == 0 || strides[b] == 0) continue;
      if (strides[a] >= strides[b]) break;
      std::swap(order[k], order[at]);
      at = k;
    }
  return order;
}

// Two nests: what is stored into, and the stores. Scatters are alone in their kernels; there may be
// no output at all (unbind of nothing).
static bool is_scatter(const TensorProgram& program, const std::vector<Tensor>& outputs) {
  return outputs.size() == 1 && program[outputs[0]].kind == Expr::Kind::kScatter;
}

struct Kernel::Code {
  KernelShape shape;
  std::shared_ptr<const KernelCode> code;  // null: there is none
  std::unique_ptr<const Code> next;
};

Kernel::Kernel(std::string name, TensorProgram program, std::vector<Tensor> outputs,
               std::vector<DimOrder> orders)
    : name_(std::move(name)),
      program_(std::move(program)),
      outputs_(std::move(outputs)),
      orders_(std::move(orders)),
      nest_(first_nest(program_, outputs_, name_)) {
  if (is_scatter(program_, outputs_))
    second_.reset(new Kernel(name_ + "_scatter", program_, outputs_, orders_, Scatters()));
  look_up();
}

Kernel::Kernel(std::string name, TensorProgram program, std::vector<Tensor> outputs,
               std::vector<DimOrder> orders, Scatters)
    : name_(std::move(name)),
      program_(std::move(program)),
      outputs_(std::move(outputs)),
      orders_(std::move(orders)),
      nest_(build_scatter_nest(program_, outputs_[0], name_)) {
  look_up();
}

// Of a scatter: what it stores into.
Nest Kernel::first_nest(TensorProgram& program, const std::vector<Tensor>& outputs,
                        const std::string& name) {
  if (!is_scatter(program, outputs)) return build_nest(program, outputs, name);
  const ExprId id = program[outputs[0]].args[0];
  const Expr& into = program[id];
  const Tensor first{.id = id, .type = into.type, .dims = into.dims};
  return build_nest(program, {&first, 1}, name);
}

// What a call needs, from the nest and the shapes.
void Kernel::look_up() {
  const Shapes& shapes = program_.shapes();
  input_dims_.resize(static_cast<std::size_t>(program_.num_inputs()));
  input_types_.resize(input_dims_.size());
  for (std::size_t id = 0; id < program_.size(); ++id) {
    const Expr& expr = program_[static_cast<ExprId>(id)];
    if (expr.kind != Expr::Kind::kInput) continue;
    const auto at = static_cast<std::size_t>(expr.index);
    input_types_[at] = expr.type;
    for (Dim dim : expr.dims) input_dims_[at].push_back(shapes.find(dim));
  }
  for (std::size_t i = 0; i < shapes.symbols().size(); ++i) {
    const Shapes::Symbol& symbol = shapes.symbols()[i];
    const auto dim = static_cast<Dim>(i);
    if (symbol.kind == Shapes::Symbol::Kind::kConstant)
      constants_.emplace_back(dim, symbol.value);
    else if (symbol.kind == Shapes::Symbol::Kind::kDerived)
      derived_.push_back({shapes.find(dim), symbol.math, shapes.find(symbol.left),
                          shapes.find(symbol.right), symbol.is_size});
  }
  for (NestOperand& operand : nest_.operands) {
    const auto resolve = [&](std::vector<NestOperand::Step>& steps) {
      for (NestOperand::Step& step : steps) step.step = shapes.find(step.step);
    };
    for (auto& steps : operand.steps_of_axis) resolve(steps);
    resolve(operand.offset);
    resolve(operand.gathered);
  }
  index_sources_ = index_sources(nest_);
  for (Dim axis : nest_.axes) axis_roots_.push_back(shapes.find(axis));
  for (const Tensor& output : outputs_) {
    std::vector<Dim> roots;
    for (Dim dim : output.dims) roots.push_back(shapes.find(dim));
    output_roots_.push_back(std::move(roots));
  }
  for (const Dims& factors : nest_.extents) {
    Dims roots;
    for (Dim dim : factors) roots.push_back(shapes.find(dim));
    extent_roots_.push_back(std::move(roots));
  }
  // Axes in the order of the first output that moves along all kept axes: every one does.
  for (const NestOperand& operand : nest_.operands) {
    if (operand.output != 0) continue;
    for (std::uint8_t dim : orders_[0])
      for (std::size_t axis = 0; axis < nest_.axes.size(); ++axis)
        for (const NestOperand::Step& step : operand.steps_of_axis[axis])
          if (step.dim == dim) axis_order_.push_back(static_cast<std::uint8_t>(axis));
  }
  for (std::size_t axis = 0; axis < nest_.axes.size(); ++axis)
    if (std::find(axis_order_.begin(), axis_order_.end(), axis) == axis_order_.end())
      axis_order_.push_back(static_cast<std::uint8_t>(axis));
  std::stable_partition(axis_order_.begin(), axis_order_.end(),
                        [&](std::uint8_t axis) { return axis < nest_.num_kept; });
  for (const NestValue& value : nest_.values) work_ += is_expensive(value.op) ? 8 : 1;
}

Kernel::~Kernel() {
  // One after the other: the list may be long for recursion.
  std::unique_ptr<const Code> code(codes_.load());
  while (code) code = std::move(const_cast<Code&>(*code).next);
}

const KernelCode* Kernel::code_for(const KernelShape& shape) const {
  std::size_t count = 0;
  for (const Code* code = codes_.load(std::memory_order_acquire); code; code = code->next.get()) {
    if (code->shape.serves(shape)) return code->code.get();
    ++count;
  }
  if (count >= kMaxCodes) return nullptr;
  const std::lock_guard lock(mutex_);
  const Code* head = codes_.load(std::memory_order_acquire);
  for (const Code* code = head; code; code = code->next.get())
    if (code->shape.serves(shape)) return code->code.get();
  auto made = std::make_unique<Code>();
  made->shape = shape;
  try {
    made->code = compile_kernel(nest_, shape);
  } catch (const Unsupported&) {
    // Remembered as null: asked for no more.
  }
  made->next.reset(head);
  const Code* published = made.release();
  codes_.store(published, std::memory_order_release);
  return published->code.get();
}

std::size_t Kernel::num_codes() const {
  std::size_t count = 0;
  for (const Code* code = codes_.load(std::memory_order_acquire); code; code = code->next.get())
    count += code->code ? 1 : 0;
  return count + (second_ ? second_->num_codes() : 0);
}

std::string Kernel::code_text(CodeStage stage) const {
  std::string text;
  for (const Code* code = codes_.load(std::memory_order_acquire); code; code = code->next.get())
    if (code->code) text += kernel_text(nest_, code->shape, stage);
  return text;
}

std::string Kernel::code_text(CodeStage stage, const std::string& triple) const {
  std::string text;
  for (const Code* code = codes_.load(std::memory_order_acquire); code; code = code->next.get())
    if (code->code) text += kernel_text(nest_, code->shape, stage, triple);
  return text;
}

bool Kernel::bind_sizes(std::span<const at::Tensor> inputs, std::span<std::int64_t> size_of) const {
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
  std::fill(size_of.begin(), size_of.end(), kUnknown);
  for (const auto& [dim, size] : constants_) size_of[static_cast<std::size_t>(dim)] = size;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& tensor = inputs[i];
    const Dims& dims = input_dims_[i];
    const at::IntArrayRef sizes = tensor.sizes();
    if (tensor.scalar_type() != input_types_[i] || sizes.size() != dims.size()) return false;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t size = sizes[d];
      std::int64_t& known = size_of[static_cast<std::size_t>(dims[d])];
      // A symbol may not become 1: what broadcasts was decided without it.
      if (known == kUnknown && size != 1)
        known = size;
      else if (known != size)
        return false;
    }
  }
  // Symbols stand behind what they are derived from.
  for (const Derived& d : derived_) {
    const std::int64_t left = size_of[static_cast<std::size_t>(d.left)];
    const std::int64_t right = size_of[static_cast<std::size_t>(d.right)];
    if (d.math == Shapes::Math::kFloorDiv && right <= 0) return false;
    const std::int64_t value = Shapes::compute(d.math, left, right);
    if (d.is_size && (value == 1) != (d.root == kOne)) return false;
    if (d.is_size && value < 0) return false;
    std::int64_t& known = size_of[static_cast<std::size_t>(d.root)];
    if (known == kUnknown)
      known = value;
    else if (known != value)
      return false;
  }
  return true;
}

bool Kernel::prepare(std::span<const at::Tensor> inputs) const {
  c10::SmallVector<at::Tensor, 4> outputs;
  return Call(*this).prepare(inputs, outputs) &&
         (!second_ || Call(*second_).prepare(inputs, outputs));
}

bool Kernel::run(std::span<const at::Tensor> inputs, c10::SmallVectorImpl<at::Tensor>& outputs,
                 std::span<const std::int64_t> scalars) const {
  if (scalars.size() != static_cast<std::size_t>(program_.num_scalars())) return false;
  return Call(*this, scalars).run(inputs, outputs) &&
         (!second_ || Call(*second_, scalars).run(inputs, outputs));
}

}  // namespace fx::loops
