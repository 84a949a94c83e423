#include "fx/capture/proxy_tensor.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/TensorImpl.h>
#include <torch/library.h>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/boxed.h"
#include "fx/capture/tracer.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

// Every question about geometry goes through the virtual *_custom methods, which refuse unless the
// tracer knows the tensor.
class ProxyTensorImpl final : public c10::TensorImpl {
 public:
  explicit ProxyTensorImpl(Proxy proxy)
      : TensorImpl(c10::DispatchKeySet(c10::DispatchKey::TESTING_ONLY_GenericWrapper),
                   caffe2::TypeMeta(), c10::Device(c10::kCPU)),
        proxy_(std::move(proxy)) {
    if (const at::Tensor* tensor = known()) data_type_ = tensor->dtype();
    set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
    set_storage_access_should_throw();
  }

  const Proxy& proxy() const noexcept { return proxy_; }

  bool is_strides_like_custom(at::MemoryFormat format) const override {
    return ask("is_contiguous()").unsafeGetTensorImpl()->is_strides_like(format);
  }
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override {
    return ask("is_non_overlapping_and_dense()").is_non_overlapping_and_dense();
  }
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override {
    return ask("is_contiguous()").is_contiguous(format);
  }
  std::int64_t size_custom(std::int64_t d) const override {
    return ask("size(" + std::to_string(d) + ")").size(d);
  }
  c10::SymInt sym_size_custom(std::int64_t d) const override {
    return ask("size(" + std::to_string(d) + ")").size(d);
  }
  at::IntArrayRef sizes_custom() const override { return ask("sizes()").sizes(); }
  at::IntArrayRef strides_custom() const override { return ask("strides()").strides(); }
  std::int64_t numel_custom() const override { return ask("numel()").numel(); }
  std::int64_t storage_offset_custom() const override {
    return ask("storage_offset()").storage_offset();
  }
  std::int64_t dim_custom() const override { return ask("dim()").dim(); }
  c10::SymIntArrayRef sym_sizes_custom() const override { return ask("sizes()").sym_sizes(); }
  c10::SymIntArrayRef sym_strides_custom() const override { return ask("strides()").sym_strides(); }
  c10::SymInt sym_numel_custom() const override { return ask("numel()").numel(); }
  c10::SymInt sym_storage_offset_custom() const override {
    return ask("storage_offset()").storage_offset();
  }
  bool has_storage() const override { return false; }
  const c10::Storage& storage() const override { refuse("storage()"); }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion&,
                                                         bool) const override {
    return c10::make_intrusive<ProxyTensorImpl>(proxy_);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&&,
                                                         bool) const override {
    return c10::make_intrusive<ProxyTensorImpl>(proxy_);
  }

 protected:
  const char* tensorimpl_type_name() const override { return "fx::ProxyTensorImpl"; }

 private:
  const at::Tensor* known() const { return proxy_.tracer().known_tensor(proxy_.node()); }
  const at::Tensor& ask(const std::string& what) const {
    if (const at::Tensor* tensor = known()) return *tensor;
    refuse(what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw TraceError(ErrorCode::kConcreteValue,
                     what + " was asked of the traced tensor " + proxy_.repr() +
                         ", but values, sizes and types do not exist while tracing; the node is " +
                         proxy_.node().format_node());
  }

  Proxy proxy_;
};

// The tracer of the first proxy tensor among the arguments.
const Proxy* first_proxy(const c10::IValue& value) {
  if (value.isTensor()) return find_proxy(value.toTensor());
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef())
      if (const Proxy* found = first_proxy(item)) return found;
  }
  return nullptr;
}

// Length of a list result, where the arguments tell; -1 otherwise.
std::int64_t known_length(std::string_view name, c10::ArrayRef<c10::IValue> args) {
  auto count = [&](std::size_t i) -> std::int64_t {
    if (args.size() <= i) return -1;
    return args[i].isInt()       ? args[i].toInt()
           : args[i].isIntList() ? static_cast<std::int64_t>(args[i].toIntVector().size())
                                 : -1;
  };
  if (name == "aten::chunk" || name == "aten::unsafe_chunk" || name == "aten::split_with_sizes" ||
      name == "aten::unsafe_split_with_sizes")
    return count(1);
  if (name == "aten::tensor_split" && args.size() > 1 && args[1].isInt()) return count(1);
  if (name == "aten::split" && args.size() > 1 && args[1].isIntList()) return count(1);
  return -1;
}

c10::IValue list_of_items(const Proxy& list, std::string_view name,
                          c10::ArrayRef<c10::IValue> args) {
  const std::int64_t length = known_length(name, args);
  if (length < 0)
    throw TraceError(ErrorCode::kIterate,
                     std::string(name) +
                         " returns a list whose length is not known while tracing; the "
                         "node is " +
                         list.node().format_node());
  c10::List<at::Tensor> items;
  for (std::int64_t i = 0; i < length; ++i)
    items.push_back(make_proxy_tensor(list[TraceArg(Argument(i))]));
  return items;
}

void record_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::size_t num_args = schema.arguments().size();
  const auto args = torch::jit::last(*stack, num_args);
  const Proxy* proxy = nullptr;
  for (const c10::IValue& arg : args)
    if (!proxy) proxy = first_proxy(arg);
  FX_ASSERT(proxy, "the recording key was dispatched to without a proxy tensor");
  TracerBase& tracer = proxy->tracer();
  BoxedCall call = boxed_call(op, args);
  const Proxy made = tracer.create_proxy(Opcode::kCallFunction, Target(call.function),
                                         std::move(call.args), std::move(call.kwargs));
  torch::jit::Stack results;
  const auto& returns = schema.returns();
  for (std::size_t i = 0; i < returns.size(); ++i) {
    const std::optional<std::size_t> aliased = written_argument(schema, i);
    if (aliased && args[*aliased].isTensor()) {
      // An in-place operator gives its own argument back.
      results.push_back(args[*aliased]);
      continue;
    }
    auto item = [&] { return returns.size() == 1 ? made : made[TraceArg(Argument(i))]; };
    switch (returns[i].type()->kind()) {
      case c10::TypeKind::TensorType:
        results.emplace_back(make_proxy_tensor(item()));
        break;
      case c10::TypeKind::ListType:
        results.push_back(list_of_items(item(), schema.name(), args));
        break;
      default:
        throw TraceError(ErrorCode::kConcreteValue,
                         schema.name() + " was asked for a " + returns[i].type()->str() + " of " +
                             proxy->repr() +
                             ", but values do not exist while tracing; the node is " +
                             made.node().format_node());
    }
  }
  torch::jit::drop(*stack, num_args);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  record_operator(op, stack);
}

// Registered at first use and for ever: proxies may appear on any thread at any time.
void register_fallback() {
  static torch::Library* library = [] {
    auto* made =
        new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::TESTING_ONLY_GenericWrapper,
                           __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
    return made;
  }();
  (void)library;
}

}  // namespace

at::Tensor make_proxy_tensor(const Proxy& proxy) {
  register_fallback();
  return at::detail::make_tensor<ProxyTensorImpl>(proxy);
}

const Proxy* find_proxy(const at::Tensor& tensor) noexcept {
  if (!tensor.defined() || !tensor.key_set().has(c10::DispatchKey::TESTING_ONLY_GenericWrapper))
    return nullptr;
  const auto* impl = dynamic_cast<const ProxyTensorImpl*>(tensor.unsafeGetTensorImpl());
  return impl ? &impl->proxy() : nullptr;
}

}  // namespace fx
