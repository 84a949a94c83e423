// Tests of torch.fx's own suite (test_fx.py, TestFX) that trace, each under its number and with
// what it asserts there, in the form that C++ gives it.
#include <torch/torch.h>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
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

// torch.fx's checkGraphModule: traces with mutable operators refused, lints, compares.
template <typename Program, typename... Inputs>
std::shared_ptr<GraphModule> check(Program&& program, const Inputs&... inputs) {
  Tracer tracer;
  tracer.check_mutable_operations = true;
  auto module = symbolic_trace(tracer, program);
  module->graph().lint({.strict = true});
  at::Tensor expected;
  if constexpr (requires { program->forward(inputs...); })
    expected = program->forward(inputs...);
  else
    expected = program(inputs...);
  EXPECT_TRUE(torch::equal((*module)(inputs...).toTensor(), expected));
  EXPECT_TRUE(torch::equal(Interpreter(*module).run({inputs...}).toTensor(), expected));
  return module;
}

struct ArithmeticNet : torch::nn::Module {
  auto forward(auto a, auto b) {
    auto c = a.add(b, scaled(a));
    return -(floor_divided(c, a) + weight);
  }
  // torch.add(a, b, alpha=3) and a // b, which C++ writes in two ways.
  static auto scaled(const Proxy&) { return kw("alpha", 3); }
  static double scaled(const at::Tensor&) { return 3; }
  static Proxy floor_divided(const Proxy& x, const Proxy& y) { return floordiv(x, y); }
  static at::Tensor floor_divided(const at::Tensor& x, const at::Tensor& y) {
    return torch::floor_divide(x, y);
  }
  at::Tensor weight = register_parameter("weight", torch::rand({3, 4}));
};

TEST(TestFX, F_001_graph_module) {
  auto net = std::make_shared<ArithmeticNet>();
  auto module = symbolic_trace(net);
  const at::Tensor a = torch::rand({3, 4}) + 1, b = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal((*module)(a, b).toTensor(), net->forward(a, b)));
  EXPECT_EQ(targets(module->graph()),
            "x y add operator.floordiv weight operator.add operator.neg output");
  EXPECT_EQ(repr(module->graph().find_node("add")->kwargs()), "{'alpha': 3}");
  GraphModule again(*module, module->graph_ptr());
  EXPECT_TRUE(torch::equal(again(a, b).toTensor(), net->forward(a, b)));
  // torch.max gives two values.
  check(
      [](at::Tensor x) {
        auto [values, indices] = torch::max(x, 0);
        return values + indices;
      },
      torch::rand({3, 4}));
}

TEST(TestFX, F_007_fx_shifts_F_008_fx_and_or) {
  const at::Tensor x = torch::arange(10);
  auto shifts = symbolic_trace([](auto v) {
    auto left = v << 3;
    auto right = v >> 3;
    return std::make_tuple(left, right);
  });
  EXPECT_EQ(targets(shifts->graph()), "x operator.lshift operator.rshift output");
  Value out = (*shifts)(x);
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[0].toTensor(), x * 8));
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[1].toTensor(), torch::floor_divide(x, 8)));
  auto bits = symbolic_trace([](auto v) {
    auto both = v & v;
    auto either = v | v;
    return std::make_tuple(both, either);
  });
  EXPECT_EQ(targets(bits->graph()), "x operator.and_ operator.or_ output");
  out = (*bits)(x);
  for (const Value& item : out.toTupleRef().elements())
    EXPECT_TRUE(torch::equal(item.toTensor(), x));
}

TEST(TestFX, F_009_dict) {
  auto module = symbolic_trace([](Proxy d) {
    return std::make_tuple(d[TraceArg("a")],
                           std::map<std::string, Proxy>{{"b", d[TraceArg("a")] + 1}});
  });
  c10::impl::GenericDict input(c10::StringType::get(), c10::AnyType::get());
  input.insert("a", row({3, 4}));
  const Value out = (*module)(input);
  EXPECT_TRUE(torch::equal(out.toTupleRef().elements()[0].toTensor(), row({3, 4})));
  EXPECT_TRUE(
      torch::equal(out.toTupleRef().elements()[1].toGenericDict().at("b").toTensor(), row({4, 5})));
}

TEST(TestFX, F_010_matmul_tracing) {
  const at::Tensor constant = torch::randn({3});
  const at::Tensor x = torch::randn({3});
  check([&](auto v) { return matmul(v, constant); }, x);
  check([&](auto v) { return matmul(constant, v); }, x);
}

TEST(TestFX, F_012_disallow_override) {
  struct NoInPlace : Tracer {
    Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                      std::string_view type) override {
      const std::string_view called =
          target.is_function() ? target.function()->base_name() : std::string_view(target.str());
      if (op != Opcode::kPlaceholder && called.ends_with('_'))
        throw TraceError(ErrorCode::kMutableOp, "In-place operations are not supported");
      return Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, type);
    }
  } tracer;
  const at::Tensor real = torch::rand({3, 4});
  auto refused = [&](auto program) {
    EXPECT_FX_ERROR(trace(tracer, program), TraceError, kMutableOp, "In-place operations");
  };
  refused([](Proxy x) { return x.relu_(); });
  refused([](at::Tensor x) { return at::relu_(x); });
  refused([&](at::Tensor x) {
    at::Tensor written = real;
    return written.add_(x);
  });
  EXPECT_EQ(trace(tracer, [](Proxy x) { return x.relu(); })->size(), 3u);
}

TEST(TestFX, F_013_leaf_module) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return relu(x); }
    nn::ReLU relu = register_module("relu", nn::ReLU());
  };
  struct NoLeaves : Tracer {
    bool is_leaf_module(const torch::nn::Module&, std::string_view) const override { return false; }
  } tracer;
  auto net = std::make_shared<Net>();
  auto graph = trace(tracer, net);
  graph->lint({.strict = true});
  EXPECT_TRUE(graph->find_nodes(Opcode::kCallModule).empty());
  EXPECT_EQ(symbolic_trace(net)->graph().find_nodes(Opcode::kCallModule).size(), 1u);
}

TEST(TestFX, F_014_F_015_F_016_wrap) {
  int calls = 0;
  auto a_lifted_leaf =
      wrap("test_fx.a_lifted_leaf", [&](std::tuple<at::Tensor, at::Tensor> pair, at::Tensor c) {
        ++calls;
        return std::get<0>(pair) + std::get<1>(pair) + c;
      });
  const at::Tensor four = torch::tensor(4.f), five = torch::tensor(5.f);
  auto module = symbolic_trace([&](Proxy y) {
    // A call on values runs at once, one with a proxy anywhere inside is recorded.
    const at::Tensor now = a_lifted_leaf(std::make_tuple(four, five), five);
    EXPECT_EQ(now.item<float>(), 14);
    return a_lifted_leaf(std::make_tuple(y, Proxy(four)), y) + now;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(module->graph().find_calls("test_fx.a_lifted_leaf").size(), 1u);
  EXPECT_THAT(module->python_code(), HasSubstr("test_fx_a_lifted_leaf((x, "));
  EXPECT_EQ((*module)(torch::tensor(4.5f)).toTensor().item<float>(), 27);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(a_lifted_leaf(std::make_tuple(four, four), four).item<float>(), 12)
      << "outside of a trace it is the function itself";
}

TEST(TestFX, F_017_wrapped_via_decorator_and_transformed_F_019_wrapped_retrace) {
  auto decorated = wrap("test_fx.wrapped_via_decorator", [](at::Tensor a) { return a + 1; });
  auto module = symbolic_trace([&](auto y) { return decorated(y); });
  auto transformed = Transformer(*module).transform();
  auto retraced = symbolic_trace(*module);
  EXPECT_EQ((*module)(torch::tensor(0.f)).toTensor().item<float>(), 1);
  for (const auto& made : {transformed, retraced}) {
    EXPECT_EQ(targets(made->graph()), "x test_fx.wrapped_via_decorator output");
    EXPECT_EQ((*made)(torch::tensor(0.f)).toTensor().item<float>(), 1);
  }
}

TEST(TestFX, F_018_T_017_wrap_with_submodule) {
  auto wrapped = wrap("test_fx.wrapped_with_submodule",
                      [](at::Tensor x, std::shared_ptr<torch::nn::Module> norm) {
                        return call_module(*norm, {x}).toTensor();
                      });
  struct Net : torch::nn::Module {
    explicit Net(decltype(wrapped)& function) : function(function) {}
    at::Tensor forward(at::Tensor x) { return function(x, norm.ptr()); }
    decltype(wrapped)& function;
    nn::BatchNorm1d norm =
        register_module("norm", nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(2).affine(false)));
  };
  auto net = std::make_shared<Net>(wrapped);
  net->eval();
  auto module = symbolic_trace(net);
  EXPECT_EQ(targets(module->graph()), "x norm test_fx.wrapped_with_submodule output");
  EXPECT_EQ(module->graph().find_node("norm")->op(), Opcode::kGetAttr);
  const at::Tensor input = torch::rand({3, 2});
  EXPECT_TRUE(torch::equal((*module)(input).toTensor(), net->norm->forward(input)));
  EXPECT_FX_ERROR(
      symbolic_trace([&](Proxy x) { return wrapped(x, std::make_shared<torch::nn::ReLUImpl>()); }),
      TraceError, kUnknownModule, "not installed as a submodule");
}

TEST(TestFX, F_021_graph_edit_with_proxy_F_026_graph_unique_names) {
  auto traced = symbolic_trace([](auto a, auto b) { return a + b; });
  auto graph = std::make_shared<Graph>();
  ValueMap map;
  const Argument result = graph->graph_copy(traced->graph(), map);
  const Proxy proxy(result.node());
  graph->output((proxy + proxy).node());
  GraphModule module(graph);
  EXPECT_EQ(module(3, 4).toInt(), 14);
  std::set<std::string> seen;
  for (const Node& node : graph->nodes()) EXPECT_TRUE(seen.emplace(node.name()).second);
  graph->lint({.strict = true});
}

TEST(TestFX, F_025_T_030_trace_multiple_funcs) {
  struct Foo : torch::nn::Module {
    Proxy forward(Proxy x, Proxy y) { return x * y; }
    Proxy minus_forward(Proxy x, Proxy y) { return x - y; }
    Proxy multiply_forward(Proxy x, Proxy y) { return x * y; }
  } foo;
  Tracer tracer;
  const at::Tensor x = torch::randn({5}), y = torch::randn({5});
  auto run = [&](std::shared_ptr<Graph> graph) { return GraphModule(graph)(x, y).toTensor(); };
  EXPECT_TRUE(torch::equal(run(trace(tracer, foo)), x * y));
  EXPECT_TRUE(torch::equal(run(trace_method(tracer, foo, &Foo::minus_forward)), x - y));
  EXPECT_TRUE(torch::equal(run(trace_method(tracer, foo, &Foo::multiply_forward)), x * y));
  auto around = trace_method(tracer, foo, [&](Proxy a) { return foo.minus_forward(a, a * 2); });
  EXPECT_TRUE(torch::equal(GraphModule(around)(x).toTensor(), -x));
}

[[gnu::noinline]] Proxy first_line(Proxy x) { return x + 1; }
[[gnu::noinline]] Proxy second_line(Proxy x) { return x * 2; }

TEST(TestFX, F_027_stack_traces_F_028_with_transformer) {
  Tracer tracer;
  tracer.record_stack_traces = true;
  auto module = symbolic_trace(tracer, [](Proxy x) { return second_line(first_line(x)); });
  const std::string add = module->graph().find_node("add")->stack_trace();
  const std::string mul = module->graph().find_node("mul")->stack_trace();
  EXPECT_THAT(add, HasSubstr("frame #0"));
  EXPECT_NE(add, mul) << "each from its own line";
  for (const bool preserve : {true, false}) {
    auto made = Transformer(*module, {.preserve = preserve}).transform();
    EXPECT_EQ(made->graph().find_node("add")->stack_trace(), add);
    EXPECT_EQ(made->graph().find_node("mul")->stack_trace(), mul);
  }
}

TEST(TestFX, F_032_T_050_unpack) {
  auto module = symbolic_trace([](Proxy a, Proxy b) {
    auto [c, d] = a.unpack<2>();
    return c + d + b;
  });
  EXPECT_EQ(module->graph().find_calls("operator.getitem").size(), 2u);
  const at::Tensor a = torch::rand({1}), b = torch::rand({1});
  EXPECT_TRUE(torch::equal((*module)(c10::ivalue::Tuple::create({a, a}), b).toTensor(), a + a + b));
}

// A graph becomes instructions of another machine, which then stands in a graph as one call.
TEST(TestFX, F_033_native_callable) {
  struct Instruction {
    std::string function;
    std::vector<std::string> inputs;
    std::string output;
  };
  auto machine = [](const GraphModule& module) {
    std::vector<Instruction> program;
    std::string result;
    for (const Node& node : module.graph().nodes()) {
      if (node.op() == Opcode::kCallFunction)
        program.push_back({std::string(node.target().function()->base_name()),
                           names(node.all_input_nodes()), std::string(node.name())});
      if (node.is_output()) result = node.arg(0).node().name();
    }
    return [program, result,
            inputs = names(module.graph().placeholders())](const std::vector<at::Tensor>& values) {
      std::map<std::string, at::Tensor> registers;
      for (std::size_t i = 0; i < inputs.size(); ++i) registers[inputs[i]] = values[i];
      for (const Instruction& each : program) {
        const at::Tensor a = registers.at(each.inputs.at(0)), b = registers.at(each.inputs.at(1));
        registers[each.output] = each.function == "add" ? a + b : a * b;
      }
      return registers.at(result);
    };
  };
  auto original = symbolic_trace([](auto x, auto y) { return (x + y) * y; });
  register_wrapped_function("test_fx.native_callable",
                            [run = machine(*original)](Values args, KwValues) -> Value {
                              return run({args.at(0).toTensor(), args.at(1).toTensor()});
                            });
  auto graph = std::make_shared<Graph>();
  Args inputs;
  for (const Node* input : original->graph().placeholders())
    inputs.emplace_back(graph->placeholder(input->target().str()));
  graph->output(graph->call_function("test_fx.native_callable", inputs));
  graph->lint({.strict = true});
  const at::Tensor x = torch::rand({3, 4}), y = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal(GraphModule(graph)(x, y).toTensor(), (*original)(x, y).toTensor()));
}

TEST(TestFX, F_034_reserved_getattr) {
  auto module = symbolic_trace([](Proxy a) { return a.attr("foo").attr("bar").attr("baz"); },
                               {.input_names = {"a"}});
  module->graph().lint({.strict = true});
  EXPECT_EQ(names(module->graph()), (Names{"a", "getattr_1", "getattr_2", "getattr_3", "output"}));
}

TEST(TestFX, F_035_trace_buffer_slice_F_154_getitem) {
  struct Slicing : torch::nn::Module {
    Proxy forward(Proxy x) { return Proxy(buffer)[fx::slice(Argument(), x.attr("shape")[0])] + x; }
    at::Tensor buffer = register_buffer("buffer", torch::rand({5, 3}));
  };
  struct Indexing : torch::nn::Module {
    Proxy forward(Proxy x) { return Proxy(buffer)[x]; }
    at::Tensor buffer = register_buffer("buffer", torch::rand({5, 3}));
  };
  auto slicing = std::make_shared<Slicing>();
  const at::Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(
      torch::equal((*symbolic_trace(slicing))(x).toTensor(), slicing->buffer.slice(0, 0, 2) + x));
  auto indexing = std::make_shared<Indexing>();
  const at::Tensor index = torch::tensor({4, 0});
  EXPECT_TRUE(torch::equal((*symbolic_trace(indexing))(index).toTensor(),
                           indexing->buffer.index_select(0, index)));
}

TEST(TestFX, F_036_node_tagging) {
  struct Tagging : Tracer {
    Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                      std::string_view type) override {
      Node& node = Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, type);
      node.meta().set("tag", "foo");
      return node;
    }
  } tracer;
  auto graph = trace(tracer, [](auto a, auto b) { return a + b; });
  EXPECT_EQ(graph->size(), 4u);
  for (const Node& node : graph->nodes()) EXPECT_EQ(*node.meta().get<std::string>("tag"), "foo");
}

struct PlainTensorImpl : torch::nn::Module {
  auto forward(auto x) { return x + plain; }
  at::Tensor plain = torch::rand({3, 4});  // not registered
};
struct PlainTensors : torch::nn::Module {
  auto forward(auto x) { return inner->forward(x) + plain + plain; }
  std::shared_ptr<PlainTensorImpl> inner =
      register_module("inner", std::make_shared<PlainTensorImpl>());
  at::Tensor plain = torch::rand({3, 4});
};

TEST(TestFX, F_037_tensor_attribute_F_038_coalesced_F_040_tensor_constant_F_078_closure) {
  auto net = std::make_shared<PlainTensors>();
  const at::Tensor x = torch::rand({3, 4});
  auto module = check(net, x);
  EXPECT_EQ(module->graph().find_nodes(Opcode::kGetAttr).size(), 2u) << "one for each tensor";
  EXPECT_EQ(module->constants().size(), 2u);

  const at::Tensor one = torch::zeros({3}), same = torch::zeros({3});
  auto both = symbolic_trace([&](auto v) { return v + one + same; });
  EXPECT_EQ(both->graph().find_nodes(Opcode::kGetAttr).size(), 2u) << "equal, but two objects";
  check([](auto v) { return torch::zeros({3, 4}) + v; }, x);
  const at::Tensor captured = torch::rand({3, 4});
  auto closure = check([captured](auto v) { return captured + v; }, x);
  EXPECT_TRUE(closure->find_tensor("_tensor_constant0").is_same(captured));
}

struct SimpleImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return torch::neg(x) + 1; }
};
FX_MODULE(Simple);

TEST(TestFX, F_039_T_045_symbolic_trace_sequential_F_107_sequential) {
  torch::nn::Sequential net(SimpleImpl{}, SimpleImpl{}, torch::nn::ReLU());
  auto module = symbolic_trace(net);
  EXPECT_EQ(targets(module->graph()),
            "input aten::neg aten::add.Scalar aten::neg aten::add.Scalar 2 output");
  const at::Tensor x = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->forward(x)));
  auto copied = module->deep_copy();
  copied->graph().lint({.strict = true});
  EXPECT_TRUE(torch::equal((*copied)(x).toTensor(), net->forward(x)));
}

}  // namespace
}  // namespace fx
