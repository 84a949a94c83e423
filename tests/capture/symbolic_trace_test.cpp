#include "fx/capture/symbolic_trace.h"

#include <numeric>

#include "examples/resnet18.h"
#include "fx/capture/nn.h"
#include "fx/capture/wrap.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;

std::string targets(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes()) out += (out.empty() ? "" : " ") + node.target().str();
  return out;
}

// y * (x + param) -> linear
struct ParamNet : torch::nn::Module {
  ParamNet()
      : param(register_parameter("param", torch::rand({10, 20}))),
        linear(register_module("linear", nn::Linear(20, 5))) {}
  auto forward(auto x, auto y) { return linear(y * (x + param)); }

  at::Tensor param;
  nn::Linear linear;
};

TEST(SymbolicTrace, S0_15_S0_35_S0_42_S4_02_S4_27_gives_a_printable_graph_module) {
  torch::manual_seed(0);
  auto net = std::make_shared<ParamNet>();
  auto gm = symbolic_trace(net);
  EXPECT_EQ(gm->graph().tabular(),
            "opcode         name    target        args        kwargs\n"
            "-------------  ------  ------------  ----------  ------\n"
            "placeholder    x       x             ()          {}\n"
            "placeholder    y       y             ()          {}\n"
            "get_attr       param   param         ()          {}\n"
            "call_function  add     operator.add  (x, param)  {}\n"
            "call_function  mul     operator.mul  (y, add)    {}\n"
            "call_module    linear  linear        (mul,)      {}\n"
            "output         output  output        (linear,)   {}\n");
  torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});
  EXPECT_TRUE(torch::equal((*gm)(x, y).toTensor(), net->forward(x, y)));
}

TEST(SymbolicTrace, T_025_S0_37_one_get_attr_for_a_parameter_used_twice) {
  struct Inner : torch::nn::Module {
    Inner() : weight(register_parameter("weight", torch::ones({3}))) {}
    at::Tensor weight;
  };
  struct Net : torch::nn::Module {
    Net() : inner(register_module("inner", std::make_shared<Inner>())) {}
    at::Tensor forward(at::Tensor x) { return x * inner->weight + inner->weight; }
    std::shared_ptr<Inner> inner;
  };
  auto gm = symbolic_trace(std::make_shared<Net>());
  const auto reads = gm->graph().find_nodes(Opcode::kGetAttr);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0]->target(), "inner.weight");
  EXPECT_EQ(reads[0]->name(), "inner_weight");
  EXPECT_EQ(reads[0]->num_users(), 2u);
}

TEST(SymbolicTrace, T_008_S0_22_branching_on_a_proxy_throws) {
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.sum() > 0 ? x : -x; }), TraceError,
                  kControlFlow,
                  "symbolically traced variables cannot be used as inputs to control flow");
}

TEST(SymbolicTrace, S0_24_S4_37_wrap_keeps_a_function_as_one_node) {
  auto my_util = wrap("test_my_util", [](at::Tensor x, std::int64_t k) {
    return x.sum().item<double>() > 0 ? x * k : x - k;
  });
  auto gm = symbolic_trace([&](auto x) { return my_util(x, 3); });
  EXPECT_EQ(targets(gm->graph()), "x test_my_util output");
  const at::Tensor positive = torch::ones({2});
  EXPECT_TRUE(torch::equal((*gm)(positive).toTensor(), positive * 3));
  EXPECT_TRUE(torch::equal((*gm)(-positive).toTensor(), -positive - 3));
  EXPECT_TRUE(torch::equal(Interpreter(*gm).run({-positive}).toTensor(), -positive - 3));
  // By name: a graph built by hand calls the same function.
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_function("test_my_util", {graph->placeholder("x"), 3}));
  EXPECT_TRUE(torch::equal(GraphModule(graph)(positive).toTensor(), positive * 3));
}

TEST(SymbolicTrace, S1_38_wrap_records_all_arguments) {
  auto my_util = wrap("test_my_util2", [](at::Tensor x, std::int64_t k) { return x * k; });
  auto gm = symbolic_trace([&](auto x) { return my_util(x, 3); });
  const Node& node = *gm->graph().find_node("test_my_util2");
  EXPECT_EQ(repr(node.args()), "(x, 3)");
  EXPECT_TRUE(node.kwargs().empty());
}

TEST(SymbolicTrace, T_040_S4_19_wrap_refuses_names_of_operators) {
  auto function = [](at::Tensor x) { return x; };
  EXPECT_FX_ERROR(wrap("aten::relu", function), TraceError, kWrap, "cannot wrap 'aten::relu'");
  EXPECT_FX_ERROR(wrap("operator.add", function), TraceError, kWrap, "cannot wrap 'operator.add'");
}

TEST(SymbolicTrace, S3_23_black_box_by_wrap_or_by_hand) {
  auto box = wrap("test_box", [](at::Tensor x) { return x.cumsum(0); });
  auto traced = symbolic_trace([&](auto x) { return box(x) + 1; });
  auto by_hand = symbolic_trace([](auto x) { return x + 1; });
  Graph& graph = by_hand->graph();
  Node& x = *graph.find_node("x");
  {
    auto at = graph.inserting_after(x);
    Node& call = graph.call_function("test_box", {x});
    x.replace_all_uses_with(call, [&](Node& user) { return &user != &call; });
  }
  graph.lint();
  by_hand->recompile();
  const at::Tensor input = torch::arange(4, torch::kFloat);
  const at::Tensor expected = input.cumsum(0) + 1;
  EXPECT_TRUE(torch::equal((*traced)(input).toTensor(), expected));
  EXPECT_TRUE(torch::equal((*by_hand)(input).toTensor(), expected));
}

TEST(SymbolicTrace, S1_56_keywords_stay_keywords_in_order) {
  auto gm = symbolic_trace([](auto x) { return clamp(x, kw("min", -5.0), kw("max", 5.0)); });
  const Node& node = *gm->graph().find_node("clamp");
  EXPECT_EQ(node.target(), Target::function("torch.clamp"));
  EXPECT_EQ(repr(node.args()), "(x,)");
  EXPECT_EQ(repr(node.kwargs()), "{'min': -5.0, 'max': 5.0}");
  EXPECT_EQ((*gm)(torch::tensor(7.0)).toTensor().item<double>(), 5.0);
}

TEST(SymbolicTrace, T_004_S3_02_S3_03_S3_04_a_proxy_is_its_node_and_its_tracer) {
  Tracer tracer;
  std::string text;
  Node* node = nullptr;
  trace(tracer,
        [&](Proxy q) {
          text = q.repr();
          node = &q.node();
          EXPECT_EQ(&q.tracer(), &tracer);
          EXPECT_TRUE(q.node().meta().empty()) << "no shape or dtype before shape propagation";
          EXPECT_FX_ERROR(q.sizes(), TraceError, kConcreteValue, "sizes() was asked of Proxy(q)");
          EXPECT_FX_ERROR(q.scalar_type(), TraceError, kConcreteValue, "scalar_type()");
          return q;
        },
        {.input_names = {"q"}});
  EXPECT_EQ(text, "Proxy(q)");
  ASSERT_NE(node, nullptr);
}

TEST(SymbolicTrace, S3_03_T_048_an_attribute_proxy_makes_its_node_when_used) {
  auto gm = symbolic_trace([](Proxy x) {
    Proxy unused = x.attr("dtype");
    Proxy shape = x.attr("shape");
    return x.view(shape[0], -1);
  });
  EXPECT_EQ(gm->graph().find_calls("builtins.getattr").size(), 1u);
  const at::Tensor input = torch::rand({2, 3, 4});
  EXPECT_TRUE(torch::equal((*gm)(input).toTensor(), input.view({2, -1})));
}

TEST(SymbolicTrace, S3_05_recording_computes_nothing_and_each_operator_is_one_node) {
  int operators = 0;
  at::RecordFunctionGuard enabled;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction&) {
                                   return std::unique_ptr<at::ObserverContext>();
                                 }).scopes({at::RecordScope::FUNCTION}));
  static thread_local int calls;
  calls = 0;
  at::removeCallback(handle);
  const auto counting =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction&) {
                                   ++calls;
                                   return std::unique_ptr<at::ObserverContext>();
                                 }).scopes({at::RecordScope::FUNCTION}));
  auto graph_of = [&](auto fn) {
    Tracer tracer;
    return trace(tracer, fn);
  };
  auto a = graph_of([](Proxy a, Proxy b) {
    std::vector<Proxy> all{a + b,
                           a - b,
                           a * b,
                           a / b,
                           a % b,
                           a & b,
                           a | b,
                           a ^ b,
                           a << b,
                           a >> b,
                           a == b,
                           a != b,
                           a<b, a <= b, a>
                               b,
                           a >= b,
                           -a,
                           +a,
                           ~a,
                           a[0],
                           abs(a),
                           matmul(a, b),
                           floordiv(a, b),
                           5 - a};
    return all;
  });
  operators = calls;
  at::removeCallback(counting);
  EXPECT_EQ(operators, 0) << "no kernel runs while tracing";
  EXPECT_EQ(
      targets(*a),
      "x y operator.add operator.sub operator.mul operator.truediv operator.mod operator.and_ "
      "operator.or_ operator.xor operator.lshift operator.rshift operator.eq operator.ne "
      "operator.lt operator.le operator.gt operator.ge operator.neg operator.pos "
      "operator.invert operator.getitem operator.abs torch.matmul operator.floordiv "
      "operator.sub output");
  EXPECT_EQ(repr(a->find_node("sub_1")->args()), "(5, x)") << "reflected forms keep their order";
}

TEST(SymbolicTrace, S3_06_S3_43_nodes_stand_in_the_order_of_the_calls) {
  auto gm = symbolic_trace([](auto a) { return (a + 1) * 3; }, {.input_names = {"a"}});
  EXPECT_EQ(
      gm->graph().str(),
      "graph():\n"
      "    %a : [num_users=1] = placeholder[target=a]\n"
      "    %add : [num_users=1] = call_function[target=operator.add](args = (%a, 1), kwargs = {})\n"
      "    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, 3), kwargs = "
      "{})\n"
      "    return mul");
}

TEST(SymbolicTrace, S3_14_the_value_of_constants_and_of_nothing_else) {
  const at::Tensor two = torch::tensor({2.0});
  auto gm = symbolic_trace([&](auto x) { return (x + two) * 3; });
  const Node& add = *gm->graph().find_node("add");
  const Node& mul = *gm->graph().find_node("mul");
  EXPECT_TRUE(concrete_value(*gm, add.arg(1))->toTensor().is_same(two));
  EXPECT_EQ(concrete_value(*gm, mul.arg(1))->toInt(), 3);
  EXPECT_FALSE(concrete_value(*gm, add.arg(0)).has_value());
  EXPECT_FALSE(concrete_value(*gm, mul.arg(0)).has_value());
}

TEST(SymbolicTrace, S3_17_W_35_tensors_become_constants_and_by_hand_a_node) {
  auto traced =
      symbolic_trace([](auto x) { return torch::tensor({2.0f}) * x + x * torch::ones({2}); });
  EXPECT_EQ(targets(traced->graph()),
            "x _tensor_constant0 operator.mul _tensor_constant1 operator.mul operator.add output");
  const at::Tensor x = torch::tensor({1.f, 2.f});
  EXPECT_TRUE(torch::equal((*traced)(x).toTensor(), 2 * x + x));
  EXPECT_TRUE(traced->state_dict().empty()) << "a constant is no part of the state";

  auto graph = std::make_shared<Graph>();
  Node& input = graph->placeholder("x");
  Node& two = graph->call_function("torch.tensor", {Argument::list({2.0})});
  graph->output(graph->call_function("torch.mul", {two, input}));
  EXPECT_TRUE(torch::equal(GraphModule(graph)(x).toTensor(), 2 * x));
}

TEST(SymbolicTrace, S3_19_where_and_masks_instead_of_branches) {
  auto by_where = symbolic_trace([](auto x) { return where(x > 0, x, -x); });
  auto by_mask = symbolic_trace([](auto x) { return x * (x > 0) - x * (x <= 0); });
  for (const at::Tensor& x : {torch::tensor({-3., 4.}), torch::tensor({5., -6.})}) {
    EXPECT_TRUE(torch::equal((*by_where)(x).toTensor(), x.abs()));
    EXPECT_TRUE(torch::equal((*by_mask)(x).toTensor(), x.abs()));
  }
}

TEST(SymbolicTrace, S3_27_other_results_than_proxies_are_kept) {
  auto constant = symbolic_trace([](Proxy) { return 3; });
  EXPECT_EQ(constant->graph().output_node().arg(0), Argument(3));
  EXPECT_EQ((*constant)(torch::ones(1)).toInt(), 3);
  auto nested = symbolic_trace([](Proxy x) {
    return std::make_tuple(x, std::map<std::string, Proxy>{{"neg", -x}}, std::vector<int>{1, 2});
  });
  EXPECT_EQ(repr(nested->graph().output_node().arg(0)), "(x, {'neg': neg}, [1, 2])");
  const Value out = (*nested)(torch::ones(1));
  EXPECT_EQ(out.toTupleRef().elements()[1].toGenericDict().at("neg").toTensor().item<double>(), -1);
}

TEST(SymbolicTrace, S3_35_functions_trace_too) {
  auto gm = symbolic_trace([](auto x) { return relu(x); }, {.class_name = "my_function"});
  EXPECT_EQ(gm->class_name(), "my_function");
  EXPECT_TRUE(gm->children().empty());
  EXPECT_TRUE(gm->state_dict().empty());
}

struct ThreeLayers : torch::nn::Module {
  ThreeLayers()
      : linear1(register_module("linear1", nn::Linear(4, 8))),
        relu(register_module("relu", nn::ReLU())),
        linear2(register_module("linear2", nn::Linear(8, 2))) {}
  at::Tensor forward(at::Tensor x) { return linear2(relu(linear1(x))); }

  nn::Linear linear1;
  nn::ReLU relu;
  nn::Linear linear2;
};

TEST(SymbolicTrace, T_021_S3_41_leaf_modules_become_call_module) {
  auto gm = symbolic_trace(std::make_shared<ThreeLayers>());
  EXPECT_EQ(
      gm->graph().str(),
      "graph():\n"
      "    %x : [num_users=1] = placeholder[target=x]\n"
      "    %linear1 : [num_users=1] = call_module[target=linear1](args = (%x,), kwargs = {})\n"
      "    %relu : [num_users=1] = call_module[target=relu](args = (%linear1,), kwargs = {})\n"
      "    %linear2 : [num_users=1] = call_module[target=linear2](args = (%relu,), kwargs = {})\n"
      "    return linear2");
}

TEST(SymbolicTrace, S4_76_convolution_batch_norm_relu_pool_are_leaves) {
  struct Net : torch::nn::Module {
    Net()
        : conv(register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)))),
          bn(register_module("bn", nn::BatchNorm2d(16))),
          relu(register_module("relu", nn::ReLU())),
          pool(register_module("pool", nn::MaxPool2d(2))) {}
    at::Tensor forward(at::Tensor x) { return pool(relu(bn(conv(x)))); }
    nn::Conv2d conv;
    nn::BatchNorm2d bn;
    nn::ReLU relu;
    nn::MaxPool2d pool;
  };
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = symbolic_trace(net);
  EXPECT_EQ(targets(gm->graph()), "x conv bn relu pool output");
  EXPECT_EQ(gm->graph().find_nodes(Opcode::kCallModule).size(), 4u);
  EXPECT_FALSE(gm->is_training()) << "the flag of the root is taken over";
  const at::Tensor x = torch::randn({1, 3, 32, 32});
  const at::Tensor y = (*gm)(x).toTensor();
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{1, 16, 16, 16}));
  EXPECT_TRUE(torch::equal(y, net->forward(x)));
}

// sub(x): prints when it really runs.
struct PrintingSubImpl : torch::nn::Module {
  PrintingSubImpl(int* count, std::int64_t in, std::int64_t out)
      : calls(count), linear(register_module("linear", nn::Linear(in, out))) {}
  at::Tensor forward(at::Tensor x) {
    ++*calls;
    return linear(x);
  }
  int* calls;
  nn::Linear linear;
};
FX_MODULE(PrintingSub);

struct TwoSubs : torch::nn::Module {
  explicit TwoSubs(int* count)
      : sub_module_a(register_module("sub_module_a", PrintingSub(count, 10, 20))),
        sub_module_b(register_module("sub_module_b", PrintingSub(count, 20, 5))) {}
  auto forward(auto x) { return sub_module_b(relu(sub_module_a(x))); }
  PrintingSub sub_module_a, sub_module_b;
};

TEST(SymbolicTrace, T_023_S4_48_S4_51_forward_runs_once_while_tracing_unless_leaf) {
  register_module_type<PrintingSubImpl>("PrintingSub", "x", /*is_leaf=*/false);
  int calls = 0;
  auto net = std::make_shared<TwoSubs>(&calls);
  auto through = symbolic_trace(net);
  EXPECT_EQ(calls, 2) << "bodies of user modules run while tracing";
  EXPECT_EQ(targets(through->graph()),
            "x sub_module_a.linear torch.relu sub_module_b.linear output");
  EXPECT_EQ(through->graph().find_node("relu")->target(), Target::function("torch.relu"));
  (*through)(torch::randn({5, 10}));
  EXPECT_EQ(calls, 2) << "the graph no longer runs them";

  struct LeafSubs : Tracer {
    bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
      return dynamic_cast<const PrintingSubImpl*>(&module) || Tracer::is_leaf_module(module, path);
    }
  } tracer;
  calls = 0;
  auto leaves = symbolic_trace(tracer, net);
  EXPECT_EQ(calls, 0) << "bodies of leaves do not run while tracing";
  EXPECT_EQ(targets(leaves->graph()), "x sub_module_a torch.relu sub_module_b output");
  const at::Tensor x = torch::randn({5, 10});
  const at::Tensor y = Interpreter(*leaves).run({x}).toTensor();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(torch::equal(y, (*through)(x).toTensor()));
}

TEST(SymbolicTrace, F_004_S4_25_variadic_placeholders_collect_the_rest) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& rest = graph->placeholder("*args");
  Node& named = graph->placeholder("**kwargs");
  Node& first = graph->call_function("operator.getitem", {rest, 0});
  Node& k = graph->call_function("operator.getitem", {named, "k"});
  Node& sum = graph->call_function("operator.add", {x, first});
  graph->output(graph->call_function("operator.mul", {sum, k}));
  GraphModule gm(graph);
  const at::Tensor one = torch::ones({2});
  KwValues keywords{{Symbol("k"), torch::full({2}, 5.f)}};
  EXPECT_TRUE(torch::equal(gm.forward({one, one * 2, one * 9}, keywords).toTensor(), one * 15));
  EXPECT_TRUE(torch::equal(
      Interpreter(gm).run({one, one * 2, one * 9}, {.kwargs = keywords}).toTensor(), one * 15));
}

TEST(SymbolicTrace, F_160_T_033_S3_66_concrete_arguments_specialise_an_input) {
  auto fn = [](at::Tensor x, bool negate, std::int64_t k) { return negate ? -x * k : x * k; };
  auto gm = symbolic_trace(
      fn, {.input_names = {"x", "negate", "k"}, .concrete_args = {{"negate", true}, {"k", 3}}});
  const at::Tensor x = torch::ones({2});
  EXPECT_TRUE(torch::equal((*gm)(x, true, 3).toTensor(), -3 * x));
  EXPECT_FX_ERROR((*gm)(x, false, 3), RunError, kNodeFailed,
                  "negate has been specialized to have value True but got another value");
  EXPECT_FX_ERROR(symbolic_trace(fn), TraceError, kConcreteArgs, "input 'y' is a bool");
  EXPECT_FX_ERROR(symbolic_trace([](auto x) { return x; }, {.concrete_args = {{"q", 1}}}),
                  TraceError, kConcreteArgs, "there is no input 'q' to specialise");
}

TEST(SymbolicTrace, F39_state_dict_is_that_of_the_module) {
  resnet::ResNet18 net(10);
  auto gm = symbolic_trace(net);
  std::vector<std::string> before, after;
  for (const auto& item : net->named_parameters()) before.push_back(item.key());
  for (const auto& item : net->named_buffers()) before.push_back(item.key());
  for (const auto& [key, tensor] : gm->state_dict()) after.push_back(key);
  EXPECT_EQ(after, before);
  EXPECT_TRUE(gm->find_tensor("layer1.0.conv1.weight")
                  .is_same(net->named_parameters()["layer1.0.conv1.weight"]));
}

TEST(SymbolicTrace, W_38_the_graph_holds_for_every_shape) {
  resnet::ResNet18 net(10);
  net->eval();
  torch::NoGradGuard no_grad;
  auto gm = symbolic_trace(net);
  for (std::int64_t batch : {1, 3}) {
    const at::Tensor x = torch::randn({batch, 3, 64, 64});
    EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), net->forward(x))) << batch;
    EXPECT_TRUE(torch::equal(Interpreter(*gm).run({x}).toTensor(), net->forward(x))) << batch;
  }
}

TEST(SymbolicTrace, W_34_methods_are_recorded_and_values_refused) {
  auto gm = symbolic_trace([](Proxy x) { return x.cpu().to(torch::kDouble).item(); });
  EXPECT_EQ(targets(gm->graph()), "x cpu to item output");
  EXPECT_EQ((*gm)(torch::tensor(1.5f)).toDouble(), 1.5);
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.len(); }), TraceError, kConcreteValue,
                  "len()");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.item<float>(); }), TraceError,
                  kConcreteValue, "item<T>()");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return *x.data_ptr<float>(); }), TraceError,
                  kConcreteValue, "data_ptr()");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) {
                    for (Proxy row : x) return row;
                    return x;
                  }),
                  TraceError, kIterate, "cannot be iterated");
  auto unpacked = symbolic_trace([](Proxy x) {
    auto [a, b] = x.chunk(2).unpack<2>();
    return a - b;
  });
  EXPECT_EQ((*unpacked)(torch::tensor({5., 2.})).toTensor().item<double>(), 3);
}

TEST(SymbolicTrace, tensor_code_traces_through_the_dispatcher) {
  auto fn = [](const at::Tensor& x) {
    at::Tensor y = torch::relu(x).add_(1);
    auto halves = torch::chunk(y, 2, 0);
    auto [values, indices] = torch::max(halves[0], 0);
    return values + halves[1].sum(0);
  };
  auto gm = symbolic_trace(fn);
  const at::Tensor x = torch::randn({4, 3});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), fn(x)));
  EXPECT_EQ(gm->graph().find_calls("aten::add_").size(), 1u);
}

TEST(SymbolicTrace, tensor_code_that_asks_for_geometry_is_refused) {
  auto refuse = [](auto fn, const char* what) {
    EXPECT_FX_ERROR(symbolic_trace(fn), TraceError, kConcreteValue, what);
  };
  refuse([](at::Tensor x) { return x.view({x.size(0), -1}); },
         "size(0) was asked of the traced tensor");
  refuse([](at::Tensor x) { return x.dim() == 2 ? x : -x; }, "dim()");
  refuse([](at::Tensor x) { return x * x.numel(); }, "numel()");
  refuse([](at::Tensor x) { return x.is_contiguous() ? x : -x; }, "is_contiguous()");
  refuse([](at::Tensor x) { return x.sum().item<float>() > 0 ? x : -x; }, "aten::item");
  EXPECT_EQ(Tracer::current(), nullptr) << "a failed trace leaves nothing behind";
}

TEST(SymbolicTrace, T_059_values_of_two_traces_do_not_mix) {
  std::optional<Proxy> stolen;
  symbolic_trace([&](Proxy x) {
    stolen = x;
    return x;
  });
  EXPECT_FX_ERROR(symbolic_trace([&](Proxy x) { return x + *stolen; }), TraceError, kMixedTracers,
                  "belongs to another trace");
  EXPECT_FX_ERROR(symbolic_trace([&](Proxy x) { return *stolen + x; }), TraceError, kNotTracing,
                  "the trace that the proxy belongs to is over");
}

}  // namespace
}  // namespace fx
