#include "fx/capture/tracer.h"

#include <thread>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;

struct LinearRelu : torch::nn::Module {
  LinearRelu()
      : linear(register_module("linear", nn::Linear(4, 4))),
        relu(register_module("relu", nn::ReLU())) {}
  auto forward(auto x) { return relu(linear(x)) + 1; }
  nn::Linear linear;
  nn::ReLU relu;
};

TEST(Tracer, T_005_S0_21_S3_62_every_hook_can_be_overridden) {
  struct Recording : Tracer {
    std::vector<std::string> log;

    Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                      std::string_view type) override {
      Node& node = Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, type);
      log.push_back("create_node " + std::string(node.name()));
      return node;
    }
    Proxy proxy(Node& node) override {
      node.meta().set("proxied", true);
      return Tracer::proxy(node);
    }
    Proxy create_proxy(Opcode op, Target target, TraceArgs args, KwTraceArgs kwargs,
                       std::string_view name, std::string_view type) override {
      log.push_back("create_proxy " + target.str());
      return Tracer::create_proxy(op, target, std::move(args), std::move(kwargs), name, type);
    }
    Argument create_arg(const TraceArg& value) override {
      Argument made = Tracer::create_arg(value);
      // Doubles every integer constant.
      return made.kind() == Argument::Kind::kInt ? Argument(made.to_int() * 2) : made;
    }
    bool to_bool(const Proxy&) override { return true; }
    void iter(const Proxy& proxy) override { log.push_back("iter " + proxy.repr()); }
    Proxy getattr(const Proxy& proxy, std::string_view name) override {
      log.push_back("getattr " + std::string(name));
      return Tracer::getattr(proxy, name);
    }
    bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
      return path == "linear" && Tracer::is_leaf_module(module, path);
    }
    std::string path_of_module(const torch::nn::Module& module) const override {
      return Tracer::path_of_module(module);
    }
    TraceArg call_module(const torch::nn::Module& module, const std::function<TraceArg()>& forward,
                         TraceArgs args, KwTraceArgs kwargs) override {
      log.push_back("call_module " + path_of_module(module));
      return Tracer::call_module(module, forward, std::move(args), std::move(kwargs));
    }
  } tracer;
  auto graph = trace(tracer, std::make_shared<LinearRelu>());
  EXPECT_EQ(tracer.log,
            (std::vector<std::string>{
                "create_node x", "call_module linear", "create_proxy linear", "create_node linear",
                "call_module relu", "create_proxy aten::relu", "create_node relu",
                "create_proxy operator.add", "create_node add", "create_node output"}))
      << "relu is no leaf here, so its forward was traced through";
  EXPECT_EQ(repr(graph->find_node("add")->args()), "(relu, 2)") << "create_arg doubled the 1";
  EXPECT_NE(graph->find_node("add")->meta().get<bool>("proxied"), nullptr);

  tracer.log.clear();
  graph = trace(tracer, [](Proxy x) {
    for ([[maybe_unused]] Proxy item : x) break;
    if (x) return x.attr("shape");
    return x;
  });
  EXPECT_EQ(tracer.log, (std::vector<std::string>{"create_node x", "iter Proxy(x)", "getattr shape",
                                                  "create_proxy builtins.getattr",
                                                  "create_node getattr_1", "create_node output"}));
}

TEST(Tracer, S3_64_S3_68_trace_module_tags_leaf_calls) {
  struct Tagging : Tracer {
    void trace_module(const torch::nn::Module&, std::string_view path, Node& node) override {
      node.meta().set("module_name", std::string(path));
    }
  } tracer;
  auto gm = symbolic_trace(tracer, std::make_shared<LinearRelu>());
  EXPECT_EQ(*gm->graph().find_node("linear")->meta().get<std::string>("module_name"), "linear");
  EXPECT_EQ(*gm->graph().find_node("relu")->meta().get<std::string>("module_name"), "relu");
  EXPECT_FALSE(gm->graph().find_node("add")->meta().contains("module_name"));
  const auto* stack = gm->graph().find_node("linear")->meta().get<ModuleStack>("nn_module_stack");
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(*stack, (ModuleStack{{"linear", "torch.nn.Linear"}}));
}

TEST(Tracer, T_024_a_second_call_of_one_module_is_numbered) {
  struct Twice : torch::nn::Module {
    Twice() : linear(register_module("linear", nn::Linear(4, 4))) {}
    at::Tensor forward(at::Tensor x) { return linear(linear(x)); }
    nn::Linear linear;
  };
  auto gm = symbolic_trace(std::make_shared<Twice>());
  const Node& second = *gm->graph().find_node("linear_1");
  EXPECT_EQ(second.target(), "linear");
  EXPECT_EQ(second.meta().get<ModuleStack>("nn_module_stack")->back().first, "linear@1");
}

TEST(Tracer, T_022_modules_that_are_not_registered_are_refused) {
  nn::Linear outside(4, 4);
  EXPECT_FX_ERROR(symbolic_trace([&](auto x) { return outside(x); }), TraceError, kUnknownModule,
                  "not installed as a submodule");
}

TEST(Tracer, G_104_T_060_mutable_operators_are_refused_on_request) {
  Tracer tracer;
  tracer.check_mutable_operations = true;
  EXPECT_FX_ERROR(trace(tracer, [](at::Tensor x) { return x.sigmoid_(); }), TraceError, kMutableOp,
                  "aten::sigmoid_");
  EXPECT_FX_ERROR(trace(tracer, [](Proxy x) { return x.add_(1); }), TraceError, kMutableOp, "add_");
  EXPECT_NO_THROW(trace(tracer, [](at::Tensor x) { return x.sigmoid(); }));
}

TEST(Tracer, T_046_a_proxy_without_a_tracer_appends_to_its_graph) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& out = graph.output(x);
  {
    auto at = graph.inserting_before(out);
    Proxy p(x);
    out.set_args({(p + 1).relu().node()});
  }
  graph.lint({.strict = true});
  EXPECT_EQ(names(graph), (Names{"x", "add", "relu", "output"}));
  EXPECT_FX_ERROR(Proxy(x) + torch::ones({1}), TraceError, kBadArgument,
                  "cannot become an argument of a graph that is built node by node");
}

TEST(Tracer, G_110_annotate_types_once) {
  auto gm = symbolic_trace([](Proxy x) { return annotate(x + 1, "Tensor"); });
  EXPECT_EQ(gm->graph().find_node("add")->type(), "Tensor");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return annotate(annotate(x, "A"), "B"); }),
                  TraceError, kAlreadyTyped, "Type annotation already exists");
}

TEST(Tracer, F48_traces_on_many_threads_do_not_disturb_each_other) {
  auto net = std::make_shared<LinearRelu>();
  const std::string expected = symbolic_trace(net)->graph().str();
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) same += symbolic_trace(net)->graph().str() == expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 200);
}

TEST(Tracer, is_fx_tracing_tells_and_modules_run_normally_outside) {
  EXPECT_FALSE(is_fx_tracing());
  bool inside = false;
  symbolic_trace([&](Proxy x) {
    inside = is_fx_tracing();
    return x;
  });
  EXPECT_TRUE(inside);
  nn::Linear linear(3, 2);
  const at::Tensor x = torch::randn({1, 3});
  EXPECT_TRUE(torch::equal(linear(x), linear->forward(x)));
  nn::LSTM lstm(3, 2);
  auto [out, state] = lstm(torch::randn({5, 1, 3}));
  EXPECT_EQ(out.sizes(), (std::vector<std::int64_t>{5, 1, 2}));
}

TEST(Tracer, holders_of_modules_with_several_results_unpack) {
  struct Net : torch::nn::Module {
    Net() : lstm(register_module("lstm", nn::LSTM(3, 2))) {}
    at::Tensor forward(at::Tensor x) {
      auto [out, state] = lstm(x);
      return out + std::get<0>(state);
    }
    nn::LSTM lstm;
  };
  auto net = std::make_shared<Net>();
  auto gm = symbolic_trace(net);
  const at::Tensor x = torch::randn({5, 1, 3});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), net->forward(x)));
}

// The graph is what torch.fx makes of the same torch.nn.Sequential.
TEST(Tracer, a_bare_sequential_is_traced_through) {
  nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::ReLU(), torch::nn::Linear(3, 1));
  auto gm = symbolic_trace(net);
  EXPECT_EQ(gm->graph().str(),
            "graph():\n"
            "    %input_1 : [num_users=1] = placeholder[target=input]\n"
            "    %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})\n"
            "    %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})\n"
            "    %_2 : [num_users=1] = call_module[target=2](args = (%_1,), kwargs = {})\n"
            "    return _2");
  const at::Tensor x = torch::randn({4, 2});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), net->forward(x)));
  EXPECT_EQ(symbolic_trace(torch::nn::Sequential(torch::nn::Flatten()), {.input_names = {"image"}})
                ->graph()
                .placeholders()[0]
                ->name(),
            "image");
}

}  // namespace
}  // namespace fx
