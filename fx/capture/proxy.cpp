#include "fx/capture/proxy.h"

#include <ostream>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/tracer.h"

namespace fx {

namespace {

// The tracer of a proxy that was made without one. It dies with that proxy, so that what comes of
// the proxy gets a tracer of its own.
class OwnTracer final : public GraphAppendingTracer {
 public:
  using GraphAppendingTracer::GraphAppendingTracer;
  Proxy proxy(Node& node) override { return Proxy(node); }
};

}  // namespace

// Shared by all copies of one proxy, so that a lazy attribute is recorded once.
struct Proxy::State {
  Node* node = nullptr;
  std::shared_ptr<TracerBase*> tracer;  // points to null once the tracer is gone
  std::shared_ptr<Graph> graph;         // keeps the node alive
  std::unique_ptr<GraphAppendingTracer> own_tracer;
  // Of a lazy attribute until its node is needed.
  std::optional<Proxy> root;
  std::string attribute;
};

Proxy::Proxy(Node& node, TracerBase* tracer) : state_(std::make_shared<State>()) {
  state_->node = &node;
  if (!tracer) {
    state_->own_tracer = std::make_unique<OwnTracer>(node.graph());
    tracer = state_->own_tracer.get();
  }
  state_->tracer = tracer->alive();
  state_->graph = tracer->shared_graph();
}

Proxy::Proxy(const at::Tensor& tensor) {
  if (const Proxy* known = find_proxy(tensor)) {
    state_ = known->state_;
    return;
  }
  Tracer* tracer = Tracer::current();
  if (!tracer)
    throw TraceError(ErrorCode::kNotTracing,
                     "a Tensor was turned into a Proxy while no trace runs on this thread");
  *this = Proxy(tracer->create_tensor_arg(tensor).node(), tracer);
}

Proxy Proxy::attr(std::string_view name) const {
  Proxy made = *this;
  made.state_ = std::make_shared<State>();
  made.state_->tracer = state_->tracer;
  made.state_->graph = state_->graph;
  made.state_->root = *this;
  made.state_->attribute = name;
  return made;
}

Node& Proxy::node() const {
  if (!state_->node) state_->node = &tracer().getattr(*state_->root, state_->attribute).node();
  return *state_->node;
}

TracerBase& Proxy::tracer() const {
  if (TracerBase* tracer = *state_->tracer) return *tracer;
  throw TraceError(ErrorCode::kNotTracing, "the trace that the proxy belongs to is over");
}

std::string Proxy::repr() const { return "Proxy(" + std::string(node().name()) + ")"; }

std::ostream& operator<<(std::ostream& out, const Proxy& proxy) { return out << proxy.repr(); }

Proxy::operator at::Tensor() const { return make_proxy_tensor(*this); }

Proxy::operator bool() const { return tracer().to_bool(*this); }

Proxy Proxy::operator[](const TraceArg& index) const {
  return record_call("operator.getitem", {*this, index});
}

Proxy Proxy::call_method(std::string_view name, TraceArgs args, KwTraceArgs kwargs) const {
  args.insert(args.begin(), TraceArg(*this));
  return tracer().create_proxy(Opcode::kCallMethod, Target::string(name), std::move(args),
                               std::move(kwargs));
}

Proxy* Proxy::begin() const {
  tracer().iter(*this);
  return nullptr;
}
Proxy* Proxy::end() const { return nullptr; }

const at::Tensor& Proxy::known_tensor(std::string_view asked) const {
  if (const at::Tensor* known = tracer().known_tensor(node())) return *known;
  concrete_value(asked);
}

void Proxy::concrete_value(std::string_view what) const {
  throw TraceError(ErrorCode::kConcreteValue,
                   std::string(what) + " was asked of " + repr() +
                       ", but values, sizes and types do not exist while tracing; the node is " +
                       node().format_node());
}

// --- trace arguments
// -------------------------------------------------------------------------------

TraceArg::TraceArg(const Proxy& proxy)
    : kind_(Kind::kProxy), proxy_(std::make_shared<const Proxy>(proxy)) {}

TraceArg::TraceArg(const at::Scalar& scalar) : kind_(Kind::kArgument) {
  if (scalar.isBoolean())
    argument_ = scalar.toBool();
  else if (scalar.isIntegral(/*includeBool=*/false))
    argument_ = scalar.toLong();
  else if (scalar.isComplex())
    argument_ =
        std::complex<double>(scalar.toComplexDouble().real(), scalar.toComplexDouble().imag());
  else
    argument_ = scalar.toDouble();
}

const Proxy& TraceArg::proxy() const {
  FX_ASSERT(kind_ == Kind::kProxy, "the trace argument is no proxy");
  return *proxy_;
}

TraceArg TraceArg::dict(std::vector<std::pair<Argument, TraceArg>> items) {
  TraceArg made;
  made.kind_ = Kind::kDict;
  for (auto& [key, value] : items) {
    made.keys_.push_back(std::move(key));
    made.items_.push_back(std::move(value));
  }
  return made;
}

// --- recording
// -------------------------------------------------------------------------------------

namespace {

// The tracer of the first proxy anywhere in `arg`.
TracerBase* find_tracer(const TraceArg& arg) {
  switch (arg.kind()) {
    case TraceArg::Kind::kProxy:
      return &arg.proxy().tracer();
    case TraceArg::Kind::kTensor: {
      const Proxy* proxy = find_proxy(arg.tensor());
      return proxy ? &proxy->tracer() : nullptr;
    }
    case TraceArg::Kind::kArgument:
      return nullptr;
    default:
      for (const TraceArg& item : arg.items())
        if (TracerBase* found = find_tracer(item)) return found;
      return nullptr;
  }
}

}  // namespace

Proxy record_call(std::string_view function, TraceArgs args, KwTraceArgs kwargs) {
  TracerBase* tracer = nullptr;
  for (const TraceArg& arg : args)
    if (!tracer) tracer = find_tracer(arg);
  for (const KwTraceArg& kwarg : kwargs)
    if (!tracer) tracer = find_tracer(kwarg.value);
  if (!tracer) tracer = Tracer::current();
  if (!tracer)
    throw TraceError(ErrorCode::kNotTracing,
                     std::string(function) + " was recorded without a proxy among its arguments");
  return tracer->create_proxy(Opcode::kCallFunction, Target::function(function), std::move(args),
                              std::move(kwargs));
}

Proxy annotate(const Proxy& proxy, std::string_view type) {
  Node& node = proxy.node();
  if (!node.type().empty())
    throw TraceError(ErrorCode::kAlreadyTyped,
                     "Type annotation already exists on this value: " + node.format_node());
  node.set_type(type);
  return proxy;
}

}  // namespace fx
