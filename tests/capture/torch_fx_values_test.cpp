// More of torch.fx's own suite (test_fx.py, TestFX): values in traced programs, functions that are
// wrapped, whole networks; each test under its number.
#include <torch/torch.h>

#include "examples/resnet18.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "fx/ops/schemas.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;
using ::testing::HasSubstr;

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

TEST(TestFX, F_054_T_013_autowrap_functions) {
  // C++ patches nothing: a function is wrapped where it is named.
  auto fn1 = wrap("test_fx.autowrapped_1", [](at::Tensor x) { return (x * 2).sum(); });
  auto fn2 = wrap("test_fx.autowrapped_2", [](at::Tensor x) { return x - 1; });
  auto module = symbolic_trace([&](auto x) { return fn2(fn1(x)); });
  EXPECT_EQ(module->graph().find_calls("test_fx.autowrapped_1").size(), 1u);
  EXPECT_EQ(module->graph().find_calls("test_fx.autowrapped_2").size(), 1u);
  EXPECT_EQ((*module)(row({1, 2})).toTensor().item<float>(), 5);
}

TEST(TestFX, F_056_torch_fx_len) {
  auto module = symbolic_trace([](Proxy x) { return len(x); });
  EXPECT_EQ(module->graph().find_calls("builtins.len").size(), 1u);
  EXPECT_EQ((*module)(torch::rand({3, 4})).toInt(), 3);
  auto of_list = symbolic_trace([](Proxy x) {
    const std::vector<Proxy> both{x, x};
    return static_cast<std::int64_t>(both.size());
  });
  EXPECT_EQ((*of_list)(torch::rand({3})).toInt(), 2) << "the length of a real list is an int";
}

TEST(TestFX, F_058_sqrt) {
  auto module = symbolic_trace(
      [](Proxy x) { return record_call("math.sqrt", {x.attr("shape")[0]}) + std::sqrt(16.0); });
  EXPECT_EQ((*module)(torch::rand({9, 2})).toDouble(), 7.0);
  EXPECT_EQ(module->graph().find_calls("math.sqrt").size(), 1u) << "that of a constant ran at once";
}

// An object of the user's that the graph makes and hands around.
struct Ratio : torch::CustomClassHolder {
  Ratio(at::Tensor a, at::Tensor b) : over(std::move(a)), under(std::move(b)) {}
  at::Tensor over, under;
};

TEST(TestFX, F_064_F_066_T_043_custom_objects_made_and_used_in_a_graph) {
  auto make = wrap("test_fx.Ratio", [](at::Tensor a, at::Tensor b) -> Value {
    return Value::make_capsule(c10::make_intrusive<Ratio>(a, b));
  });
  auto value = wrap("test_fx.Ratio.value", [](Value ratio) -> at::Tensor {
    const auto capsule = ratio.toCapsule();
    const auto& held = dynamic_cast<const Ratio&>(*capsule);
    return held.over / held.under;
  });
  auto module = symbolic_trace([&](Proxy a, Proxy b) { return value(make(a, b)) + a; });
  EXPECT_EQ(names(module->graph()), (Names{"x", "y", "ratio", "value", "add", "output"}));
  EXPECT_EQ((*module)(row({6}), row({3})).toTensor().item<float>(), 8);
  EXPECT_EQ(Interpreter(*module).run({row({6}), row({3})}).toTensor().item<float>(), 8);
}

TEST(TestFX, F_076_symbolic_trace_assert) {
  auto module = symbolic_trace([](auto x) {
    record_call("torch._assert", {record_call("operator.gt", {x.sum(), 0}), TraceArg("too small")});
    return x.relu();
  });
  module->graph().lint({.strict = true});
  EXPECT_FALSE(module->graph().eliminate_dead_code());
  EXPECT_TRUE(torch::equal((*module)(row({3, -1})).toTensor(), row({3, 0})));
  EXPECT_FX_ERROR((*module)(row({-3})), RunError, kNodeFailed, "too small");
}

// An object that is two tensors in a graph.
struct ValuePair {
  Proxy x, y;
  Argument fx_create_arg(TracerBase& tracer) const {
    return Argument::tuple({tracer.create_arg(x), tracer.create_arg(y)});
  }
};

TEST(TestFX, F_077_fx_create_arg) {
  auto add = wrap("test_fx.sum_of_pair", [](std::tuple<at::Tensor, at::Tensor> pair) {
    return std::get<0>(pair) + std::get<1>(pair);
  });
  auto module = symbolic_trace(
      [&](Proxy x, Proxy y) { return record_call(add.name(), {TraceArg(ValuePair{x, y})}); });
  EXPECT_EQ(repr(module->graph().find_calls("test_fx.sum_of_pair")[0]->args()), "((x, y),)");
  EXPECT_TRUE(torch::equal((*module)(row({1}), row({2})).toTensor(), row({3})));
}

struct ConvBlockImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return conv_mod(x); }
  nn::Conv2d conv_mod = register_module("conv_mod", nn::Conv2d(nn::Conv2dOptions(3, 8, 3)));
};
FX_MODULE(ConvBlock);

TEST(TestFX, F_087_G_123_nn_module_stack) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return sub_mod(x); }
    ConvBlock sub_mod = register_module("sub_mod", ConvBlock());
  };
  auto module = symbolic_trace(std::make_shared<Net>());
  const auto* stack =
      module->graph().find_node("sub_mod_conv_mod")->meta().get<ModuleStack>("nn_module_stack");
  ASSERT_NE(stack, nullptr);
  ASSERT_EQ(stack->size(), 2u);
  EXPECT_EQ((*stack)[0].first, "sub_mod");
  EXPECT_THAT((*stack)[0].second, HasSubstr("ConvBlock"));
  EXPECT_EQ((*stack)[1],
            (std::pair<std::string, std::string>{"sub_mod.conv_mod", "torch.nn.Conv2d"}));
}

TEST(TestFX, F_096_F_097_F_209_resnet18_interpreted_and_transformed) {
  resnet::ResNet18 net(10);
  net->eval();
  torch::NoGradGuard no_grad;
  auto module = symbolic_trace(net);
  auto transformed = Transformer(*module).transform();
  const at::Tensor x = torch::randn({1, 3, 64, 64});
  const at::Tensor expected = net->forward(x);
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), expected));
  EXPECT_TRUE(torch::equal((*transformed)(x).toTensor(), expected));
  EXPECT_EQ(transformed->graph().str(), module->graph().str());
  Interpreter interpreter(*module);
  EXPECT_TRUE(torch::equal(interpreter.run({x}).toTensor(), expected));
  EXPECT_EQ(interpreter.env().names(), Names{"output"}) << "everything else was let go";
}

TEST(TestFX, F_117_replace_uses) {
  struct Lowering : Tracer {
    bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
      return !dynamic_cast<const torch::nn::ReLUImpl*>(&module) &&
             Tracer::is_leaf_module(module, path);
    }
  } tracer;
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return second(relu(first(relu(x)))); }
    nn::Linear first = register_module("first", nn::Linear(4, 4));
    nn::ReLU relu = register_module("relu", nn::ReLU());
    nn::Linear second = register_module("second", nn::Linear(4, 4));
  };
  auto net = std::make_shared<Net>();
  auto module = symbolic_trace(tracer, net);
  Graph& graph = module->graph();
  std::vector<Node*> erase;
  for (Node& node : graph.nodes()) {
    if (!node.calls("aten::relu")) continue;
    auto at = graph.inserting_before(node);
    Node& neg = graph.call_function("aten::neg", {node.args().begin(), node.args().end()});
    node.replace_all_uses_with(neg);
    erase.push_back(&node);
  }
  EXPECT_EQ(erase.size(), 2u);
  for (Node* node : erase) graph.erase_node(*node);
  graph.lint({.strict = true});
  module->recompile();
  const at::Tensor x = torch::randn({2, 4});
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->second(-net->first(-x))));
}

TEST(TestFX, F_131_multi_insert_point) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& relu = graph->call_function("torch.relu", {x});
  graph->output(relu);
  {
    auto at = graph->inserting_before(relu);
    Proxy y(x);
    y = record_call("torch.neg", {y});
    y = record_call("torch.tanh", {y});
    relu.replace_input_with(x, y.node());
  }
  EXPECT_EQ(names(*graph), (Names{"x", "neg", "tanh", "relu", "output"}));
  const at::Tensor input = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(GraphModule(graph)(input).toTensor(), torch::relu(torch::tanh(-input))));
}

at::Tensor free_function(at::Tensor x) { return torch::relu(x); }

TEST(TestFX, F_133_T_039_trace_function) {
  auto module = symbolic_trace(free_function);
  module->graph().lint({.strict = true});
  const at::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), torch::relu(x)));
  EXPECT_EQ(module->class_name(), "GraphModule");
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor v) { return torch::relu(v); }
  };
  EXPECT_THAT(symbolic_trace(std::make_shared<Net>())->class_name(), HasSubstr("Net"));
}

struct TakesDictImpl : torch::nn::Module {
  at::Tensor forward(Value items) { return items.toGenericDict().at(42).toTensor() + 1; }
};

TEST(TestFX, F_137_trace_dict_int_keys) {
  register_module_type<TakesDictImpl>("TakesDict", "items");
  auto takes = std::make_shared<TakesDictImpl>();
  struct Net : torch::nn::Module {
    Proxy forward(Proxy x) {
      Tracer& tracer = *Tracer::current();
      return tracer.call_module(*inner, {}, {TraceArg::dict({{Argument(42), TraceArg(x)}})}, {})
          .proxy();
    }
    std::shared_ptr<TakesDictImpl> inner;
  };
  auto net = std::make_shared<Net>();
  net->inner = net->register_module("inner", takes);
  auto module = symbolic_trace(net);
  EXPECT_EQ(repr(module->graph().find_node("inner")->args()), "({42: x},)");
  EXPECT_TRUE(torch::equal((*module)(row({1, 2})).toTensor(), row({2, 3})));
}

struct WithParamImpl : torch::nn::Module {
  auto forward(auto x) { return b + x; }
  at::Tensor b = register_parameter("b", torch::rand({4}));
};
struct NestedParams : torch::nn::Module {
  auto forward(auto x) { return x + mod->b + inner->mod->b; }
  struct InnerImpl : torch::nn::Module {
    std::shared_ptr<WithParamImpl> mod = register_module("mod", std::make_shared<WithParamImpl>());
  };
  std::shared_ptr<WithParamImpl> mod = register_module("mod", std::make_shared<WithParamImpl>());
  std::shared_ptr<InnerImpl> inner = register_module("inner", std::make_shared<InnerImpl>());
};

TEST(TestFX, F_140_T_015_direct_param_use) {
  auto net = std::make_shared<NestedParams>();
  auto module = symbolic_trace(net);
  for (const Node* node : module->graph().find_nodes(Opcode::kGetAttr))
    EXPECT_THAT(node->target().str(), ::testing::Not(HasSubstr("constant")));
  const at::Tensor x = torch::rand({4});
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->forward(x)));
}

TEST(TestFX, F_166_throw_out_variant) {
  Tracer tracer;
  tracer.check_mutable_operations = true;
  EXPECT_FX_ERROR(trace(tracer,
                        [](at::Tensor x) {
                          at::Tensor y = torch::rand_like(x);
                          at::sigmoid_out(y, x);
                          return y;
                        }),
                  TraceError, kMutableOp, "mutable operation aten::sigmoid.out");
}

// Every operator has schemas to ask for; each names its arguments.
TEST(TestFX, F_128_G_103_schemas_of_every_operator) {
  std::size_t asked = 0;
  for (const std::string& name : registered_operators()) {
    const auto schemas = schemas_of(*Function::get(name));
    ASSERT_EQ(schemas.size(), 1u) << name;
    for (const c10::Argument& argument : schemas[0]->arguments())
      ASSERT_FALSE(argument.name().empty()) << name;
    ++asked;
  }
  EXPECT_GT(asked, 2000u);
  EXPECT_TRUE(schemas_of(*Function::get("torch.no_such_function")).empty());
}

}  // namespace
}  // namespace fx
