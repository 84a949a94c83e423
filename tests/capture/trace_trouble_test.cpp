// Troubles while tracing: what traces, what does not, and what the message says.
#include <torch/torch.h>

#include <cmath>
#include <sstream>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;
using ::testing::HasSubstr;

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

std::string targets(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes()) out += (out.empty() ? "" : " ") + node.target().str();
  return out;
}

TEST(TraceTrouble, S0_17_indexing_is_recorded_and_item_assignment_refused) {
  auto item = symbolic_trace([](auto x) { return x[0]; });
  EXPECT_EQ(targets(item->graph()), "x operator.getitem output");
  EXPECT_EQ((*item)(row({5, 6, 7})).toTensor().item<float>(), 5);
  auto slice = symbolic_trace([](Proxy x) { return x[fx::slice(1, 3)]; });
  EXPECT_EQ(repr(slice->graph().find_node("getitem")->args()), "(x, slice(1, 3, None))");
  EXPECT_TRUE(torch::equal((*slice)(row({5, 6, 7, 8})).toTensor(), row({6, 7})));
  // x[0] = y: refused by the compiler, whose message shows the comment at the declaration.
  using Item = decltype(std::declval<Proxy&>()[0]);
  static_assert(std::is_same_v<Item, Proxy>);
  static_assert(!std::is_assignable_v<Item, Proxy>);
  static_assert(!std::is_assignable_v<Item, const Proxy&>);
  static_assert(!std::is_assignable_v<Item, at::Tensor>);
  static_assert(std::is_assignable_v<Proxy&, Proxy>, "a variable takes another proxy");
}

TEST(TraceTrouble, T_009_S0_18_S4_33_only_control_flow_on_plain_values_traces) {
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) {
                    if (x.sum() > 0) return x;
                    return -x;
                  }),
                  TraceError, kControlFlow, "cannot be used as inputs to control flow");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) {
                    for (const Proxy& item : x) return item;
                    return x;
                  }),
                  TraceError, kIterate, "cannot be iterated");
  const auto unrolled = [](bool negate) {
    return symbolic_trace([=](auto x) {
      auto y = x;
      for (int i = 0; i < 3; ++i) y = y + i;
      if (negate) y = -y;
      return y;
    });
  };
  EXPECT_EQ(targets(unrolled(false)->graph()), "x operator.add operator.add operator.add output");
  EXPECT_EQ(targets(unrolled(true)->graph()),
            "x operator.add operator.add operator.add operator.neg output");
  auto tried = symbolic_trace([](auto x) {
    try {
      return x + 1;
    } catch (const std::exception&) {
      return x - 1;
    }
  });
  EXPECT_EQ(targets(tried->graph()), "x operator.add output") << "the normal path of a try block";
}

TEST(TraceTrouble, S1_37_what_traces_and_what_does_not) {
  struct Case {
    const char* name;
    std::function<TraceArg(Proxy)> body;
    std::optional<ErrorCode> refused = {};
  };
  const std::vector<Case> cases = {
      {"bool", [](Proxy x) { return x ? TraceArg(x) : TraceArg(-x); }, ErrorCode::kControlFlow},
      {"comparison as a condition", [](Proxy x) { return x > 0 ? TraceArg(x) : TraceArg(-x); },
       ErrorCode::kControlFlow},
      {"iterate",
       [](Proxy x) {
         for (const Proxy& item : x) return TraceArg(item);
         return TraceArg(x);
       },
       ErrorCode::kIterate},
      {"len", [](Proxy x) { return TraceArg(x.len()); }, ErrorCode::kConcreteValue},
      {"float", [](Proxy x) { return TraceArg(x.item<float>()); }, ErrorCode::kConcreteValue},
      {"int", [](Proxy x) { return TraceArg(x.item<std::int64_t>()); }, ErrorCode::kConcreteValue},
      {"sizes", [](Proxy x) { return TraceArg(x.sizes()); }, ErrorCode::kConcreteValue},
      {"item as a node", [](Proxy x) { return TraceArg(x.item()); }},
      {"len as a node", [](Proxy x) { return TraceArg(len(x)); }},
      {"a comparison", [](Proxy x) { return TraceArg(x > 0); }},
      {"a list", [](Proxy x) { return TraceArg(std::vector<Proxy>{x, -x}); }},
      {"a dict",
       [](Proxy x) { return TraceArg(std::map<std::string, Proxy>{{"a", x}, {"b", -x}}); }},
      {"a list as an argument", [](Proxy x) { return TraceArg(cat(std::vector<Proxy>{x, x}, 0)); }},
      {"a function of this library", [](Proxy x) { return TraceArg(abs(x)); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::optional<ErrorCode> found;
    try {
      auto gm = symbolic_trace([&](Proxy x) { return c.body(x); });
      gm->graph().lint({.strict = true});
    } catch (const TraceError& error) {
      found = error.code();
    }
    EXPECT_EQ(found, c.refused);
  }
}

// The five names, each by itself. Methods that have a value only later are recorded; a number, a
// length or a bool is asked for in vain.
std::string recorded(const std::function<Proxy(Proxy)>& body) {
  return targets(symbolic_trace([&](Proxy x) { return body(x); })->graph());
}

TEST(TraceTrouble, S3_11_item) {
  EXPECT_EQ(recorded([](Proxy x) { return x.item(); }), "x item output");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.item<double>(); }), TraceError,
                  kConcreteValue, "item<T>()");
}

TEST(TraceTrouble, S3_11_numpy) {
  EXPECT_EQ(recorded([](Proxy x) { return x.call_method("numpy"); }), "x numpy output");
}

TEST(TraceTrouble, S3_11_cpu) {
  EXPECT_EQ(recorded([](Proxy x) { return x.cpu(); }), "x cpu output");
  EXPECT_EQ(recorded([](Proxy x) { return x.to(torch::kCPU); }), "x to output");
}

TEST(TraceTrouble, S3_11_cuda) {
  EXPECT_EQ(recorded([](Proxy x) { return x.cuda(); }), "x cuda output");
}

TEST(TraceTrouble, S3_11_len) {
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.len(); }), TraceError, kConcreteValue,
                  "len()");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return static_cast<bool>(x) ? 1 : 2; }), TraceError,
                  kControlFlow, "control flow");
}

TEST(TraceTrouble, S3_12_the_message_names_method_and_node) {
  for (const char* part :
       {"item<T>() was asked of Proxy(sum_1)", "do not exist while tracing",
        "%sum_1 : [num_users=0] = call_method[target=sum](args = (%x,), kwargs = {})"})
    EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.sum().item<float>(); }), TraceError,
                    kConcreteValue, part);
}

TEST(TraceTrouble, S3_15_a_tensor_beside_a_proxy_becomes_an_attribute) {
  const at::Tensor ones = torch::ones({2});
  auto right = symbolic_trace([&](Proxy x) { return x + ones; });
  auto left = symbolic_trace([&](Proxy x) { return ones + x; });
  EXPECT_EQ(targets(right->graph()), "x _tensor_constant0 operator.add output");
  EXPECT_EQ(targets(left->graph()), "x _tensor_constant0 operator.add output");
  EXPECT_EQ(repr(right->graph().find_node("add")->args()), "(x, _tensor_constant0)");
  EXPECT_EQ(repr(left->graph().find_node("add")->args()), "(_tensor_constant0, x)");
  for (const auto& gm : {left, right}) {
    EXPECT_TRUE(gm->find_tensor("_tensor_constant0").is_same(ones));
    EXPECT_TRUE(torch::equal((*gm)(row({1, 2})).toTensor(), row({2, 3})));
  }
}

TEST(TraceTrouble, S3_16_operators_and_functions_mix_proxies_and_tensors) {
  const at::Tensor t = torch::tensor({{1.f, 2.f}, {3.f, 4.f}});
  const at::Tensor x = torch::tensor({{5.f, 6.f}, {7.f, 8.f}});
  const auto both = [&](auto&& function) {
    auto right = symbolic_trace([&](Proxy p) { return function(p, t); });
    auto left = symbolic_trace([&](Proxy p) { return function(t, p); });
    EXPECT_TRUE(torch::equal((*right)(x).toTensor(), function(x, t)));
    EXPECT_TRUE(torch::equal((*left)(x).toTensor(), function(t, x)));
  };
  both([](const auto& a, const auto& b) { return a + b; });
  both([](const auto& a, const auto& b) { return a - b; });
  both([](const auto& a, const auto& b) { return a * b; });
  both([](const auto& a, const auto& b) { return a / b; });
  both([](const auto& a, const auto& b) { return matmul(a, b); });
  both([](const auto& a, const auto& b) { return maximum(a, b); });
}

TEST(TraceTrouble, S3_18_no_partial_graph_is_left_behind) {
  std::shared_ptr<GraphModule> gm;
  Tracer tracer;
  EXPECT_FX_ERROR(gm = symbolic_trace(tracer,
                                      [](Proxy x) {
                                        Proxy y = x * 2;
                                        return y.sum() > 0 ? y : x;
                                      }),
                  TraceError, kControlFlow, "control flow");
  EXPECT_EQ(gm, nullptr);
  EXPECT_EQ(Tracer::current(), nullptr);
  EXPECT_NO_THROW(gm = symbolic_trace(tracer, [](Proxy x) { return x * 2; }));
  EXPECT_EQ(gm->graph().size(), 3u);
}

double foreign(double value) { return std::sin(value); }

template <typename F, typename... Args>
concept Callable = requires(F f, Args... args) { f(args...); };

TEST(TraceTrouble, S3_21_S4_31_foreign_functions_need_a_wrap) {
  static_assert(!Callable<decltype(&foreign), Proxy>, "a proxy is no number");
  static_assert(!Callable<double (*)(double), Proxy>);
  auto wrapped = wrap("trace_trouble_sin", [](at::Tensor x) {
    at::Tensor out = x.clone();
    for (std::int64_t i = 0; i < x.numel(); ++i) out[i] = foreign(x[i].item<double>());
    return out;
  });
  auto gm = symbolic_trace([&](auto x) { return wrapped(x) + 1; });
  EXPECT_EQ(targets(gm->graph()), "x trace_trouble_sin operator.add output");
  const at::Tensor x = row({0.5, 1});
  EXPECT_TRUE(torch::allclose((*gm)(x).toTensor(), x.sin() + 1));
  // Code that reads a tensor's memory by itself.
  EXPECT_FX_ERROR(symbolic_trace([](at::Tensor x) { return x * foreign(*x.data_ptr<float>()); }),
                  TraceError, kConcreteValue, "asked a traced tensor for its memory");
  EXPECT_FX_ERROR(
      symbolic_trace([](at::Tensor x) { return x * foreign(*static_cast<float*>(x.data_ptr())); }),
      TraceError, kConcreteValue, "make_fx and example inputs");
  EXPECT_THROW(symbolic_trace([](at::Tensor) -> at::Tensor { TORCH_CHECK(false, "its own"); }),
               c10::Error);
}

TEST(TraceTrouble, S4_17_modules_that_nobody_registered) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) {
      nn::Linear made_here(10, 5);
      return made_here(x);
    }
  };
  EXPECT_FX_ERROR(symbolic_trace(std::make_shared<Net>()), TraceError, kUnknownModule,
                  "module is not installed as a submodule");
  EXPECT_FX_ERROR(symbolic_trace(std::make_shared<Net>()), TraceError, kUnknownModule,
                  "To mend it: register the module as a submodule of the traced root");
}

TEST(TraceTrouble, F_138_S4_28_dynamic_arguments) {
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) {
                    return record_call("builtins.dict",
                                       {TraceArg::dict({{Argument(x.node()), TraceArg(1)}})});
                  }),
                  GraphError, kWrongArgumentKind,
                  "Keys for dictionaries used as an argument cannot contain a Node");
  auto gm = symbolic_trace([](Proxy x, Proxy y) { return cat(std::vector<Proxy>{x, y, x}, 0); });
  EXPECT_EQ(repr(gm->graph().find_node("cat")->args()), "([x, y, x], 0)");
  EXPECT_TRUE(torch::equal((*gm)(row({1}), row({2})).toTensor(), row({1, 2, 1})));
}

TEST(TraceTrouble, S4_32_printing_records_nothing_and_a_proxy_is_no_tensor) {
  std::ostringstream out;
  auto gm = symbolic_trace([&](auto x) {
    out << x << "\n";
    if constexpr (std::is_same_v<decltype(x), at::Tensor>) return x * 2;
    return x + 1;
  });
  EXPECT_EQ(out.str(), "Proxy(x)\n");
  EXPECT_EQ(targets(gm->graph()), "x operator.add output") << "the branch for what is no tensor";
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.len(); }), TraceError, kConcreteValue,
                  "len()");
}

TEST(TraceTrouble, G_122_S4_46_errors_show_where_a_node_was_made_when_asked_to) {
  const auto body = [](Proxy x, Proxy y) { return x.matmul(y); };
  Tracer plain, recording;
  recording.record_stack_traces = true;
  auto without = symbolic_trace(plain, body);
  auto with = symbolic_trace(recording, body);
  EXPECT_EQ(without->graph().find_node("matmul")->stack_trace(), "");
  const std::string trace = with->graph().find_node("matmul")->stack_trace();
  EXPECT_THAT(trace, HasSubstr("frame #"));
  const at::Tensor x = torch::ones({2, 3});
  EXPECT_FX_ERROR((*with)(x, x), RunError, kNodeFailed, "Original traceback:\nframe #");
  EXPECT_FX_ERROR(Interpreter(*with).run({x, x}), RunError, kNodeFailed, trace.substr(0, 40));
  try {
    (*without)(x, x);
    ADD_FAILURE();
  } catch (const RunError& error) {
    EXPECT_THAT(error.text(), ::testing::Not(HasSubstr("Original traceback")));
  }
}

}  // namespace
}  // namespace fx
