#include <torch/torch.h>

#include "fx/interpret/compare.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "tests/graph/graphs.h"
#include "tests/random/choices.h"

/// eager = Interpreter = GraphModule.
namespace fx {
namespace {

struct Case {
  const char* op;  // "function NAME" or "method NAME"
  Args args;       // nodes stand for the inputs "a", "b", "c"
  Kwargs kwargs;
  std::function<Value(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c)> eager;
};

// Arguments are built before there is a graph: strings "$a" stand for the inputs.
Argument bind_inputs(const Argument& argument, Graph& graph) {
  return argument.map_leaves([&](const Argument& leaf) -> Argument {
    if (leaf.kind() == Argument::Kind::kString && leaf.to_string().starts_with('$'))
      return *graph.find_node(leaf.to_string().substr(1));
    return leaf;
  });
}

std::vector<Case> cases() {
  using at::Tensor;
  auto list = [](std::vector<Argument> items) { return Argument::list(std::move(items)); };
  auto tuple = [](std::vector<Argument> items) { return Argument::tuple(std::move(items)); };
#define EAGER(expression) \
  [](const Tensor& a, const Tensor& b, const Tensor& c) -> Value { return expression; }
  return {
      {"function aten::add.Tensor", {"$a", "$b"}, {{"alpha", 3}}, EAGER(at::add(a, b, 3))},
      {"function aten::add.Tensor", {"$a", 2.5}, {}, EAGER(a + 2.5)},
      {"function torch.add", {"$a", "$b"}, {}, EAGER(a + b)},
      {"function torch.add", {"$a", 1}, {{"alpha", 2}}, EAGER(a + 2)},
      {"function torch.add", {}, {{"input", "$a"}, {"other", "$b"}}, EAGER(a + b)},
      {"function operator.sub", {2, "$a"}, {}, EAGER(2 - a)},
      {"function operator.sub", {"$a", "$b"}, {}, EAGER(a - b)},
      {"function operator.truediv", {"$a", 2}, {}, EAGER(a / 2)},
      {"function operator.floordiv", {"$a", 2}, {}, EAGER(at::floor_divide(a, 2))},
      {"function operator.pow", {"$a", 2}, {}, EAGER(at::pow(a, 2))},
      {"function operator.matmul", {"$a", "$c"}, {}, EAGER(at::matmul(a, c))},
      {"function operator.neg", {"$a"}, {}, EAGER(-a)},
      {"function operator.lt", {"$a", "$b"}, {}, EAGER(a < b)},
      {"function operator.eq", {"$a", 0}, {}, EAGER(a == 0)},
      {"function operator.getitem", {"$a", 0}, {}, EAGER(a[0])},
      {"function operator.getitem",
       {"$a", tuple({Argument::ellipsis(), Argument::slice(1, 3)})},
       {},
       EAGER(a.slice(-1, 1, 3))},
      {"function operator.getitem",
       {"$a", tuple({nullptr, Argument::slice({}, {}, 2)})},
       {},
       EAGER(a.unsqueeze(0).slice(1, 0, INT64_MAX, 2))},
      {"function aten::cat", {list({"$a", "$b"}), 1}, {}, EAGER(at::cat({a, b}, 1))},
      {"function torch.cat", {tuple({"$a", "$b"})}, {{"dim", 0}}, EAGER(at::cat({a, b}, 0))},
      {"function torch.stack", {list({"$a", "$b"})}, {}, EAGER(at::stack({a, b}))},
      {"function aten::sum", {"$a"}, {}, EAGER(a.sum())},
      {"function torch.sum", {"$a", 1, true}, {}, EAGER(at::sum(a, {1}, true))},
      {"function torch.sum", {"$a"}, {{"dim", list({0, 1})}}, EAGER(at::sum(a, {0, 1}))},
      {"function torch.mean", {"$a"}, {{"dtype", c10::kDouble}}, EAGER(a.mean(at::kDouble))},
      {"function torch.max", {"$a"}, {}, EAGER(a.max())},
      {"function torch.clamp",
       {"$a"},
       {{"min", -0.5}, {"max", 0.5}},
       EAGER(at::clamp(a, -0.5, 0.5))},
      {"function torch.where", {"$a", "$a", "$b"}, {}, nullptr},  // replaced below
      {"function torch.softmax", {"$a", -1}, {}, EAGER(at::softmax(a, -1))},
      {"function torch.transpose", {"$a", 0, 1}, {}, EAGER(a.transpose(0, 1))},
      {"function torch.flatten", {"$a", 0}, {}, EAGER(a.flatten())},
      {"function torch.zeros_like",
       {"$a"},
       {{"dtype", c10::kLong}},
       EAGER(at::zeros_like(a, at::kLong))},
      {"function torch.full", {list({2, 2}), 1.5}, {}, EAGER(at::full({2, 2}, 1.5))},
      {"function torch.einsum", {"ij,jk->ik", "$a", "$c"}, {}, nullptr},
      {"function aten::linear", {"$a", "$b", nullptr}, {}, EAGER(at::linear(a, b))},
      {"function aten::index.Tensor", {"$a", list({nullptr, "$i"})}, {}, nullptr},
      {"method relu", {"$a"}, {}, EAGER(a.relu())},
      {"method add", {"$a", "$b"}, {}, EAGER(a + b)},
      {"method view", {"$a", 4, 3}, {}, EAGER(a.view({4, 3}))},
      {"method view", {"$a", list({-1})}, {}, EAGER(a.view({-1}))},
      {"method reshape", {"$a", tuple({2, 6})}, {}, EAGER(a.reshape({2, 6}))},
      {"method permute", {"$a", 1, 0}, {}, EAGER(a.permute({1, 0}))},
      {"method sum", {"$a", 1}, {}, EAGER(a.sum(1))},
      {"method mean",
       {"$a", list({0})},
       {{"keepdim", true}},
       EAGER(a.mean(at::IntArrayRef{0}, true))},
      {"method to", {"$a", c10::kHalf}, {}, EAGER(a.to(at::kHalf))},
      {"method to", {"$a", c10::Device("cpu")}, {}, EAGER(a)},
      {"method to", {"$a", "cpu", c10::kDouble}, {}, EAGER(a.to(at::kDouble))},
      {"method to", {"$a"}, {{"dtype", c10::kInt}}, EAGER(a.to(at::kInt))},
      {"method to", {"$a", "$i"}, {}, EAGER(a.to(at::kLong))},
      {"method float", {"$a"}, {}, EAGER(a)},
      {"method size", {"$a", 0}, {}, EAGER(a.size(0))},
      {"method dim", {"$a"}, {}, EAGER(a.dim())},
      {"method chunk", {"$a", 2, 1}, {}, EAGER(Value(a.chunk(2, 1)))},
      {"method repeat", {"$a", 2, 1}, {}, EAGER(a.repeat({2, 1}))},
      {"method type_as", {"$a", "$b"}, {}, EAGER(a.type_as(b))},
      {"method masked_fill", {"$a", "$m", 7.0}, {}, nullptr},
  };
#undef EAGER
}

Value eager_of(const Case& test, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
               const at::Tensor& i, const at::Tensor& m) {
  if (test.eager) return test.eager(a, b, c);
  const std::string op = test.op;
  if (op == "function torch.where") return at::where(m, a, b);
  if (op == "function torch.einsum") return at::einsum("ij,jk->ik", {a, c});
  if (op == "function aten::index.Tensor") return a.index_select(1, i);
  return a.masked_fill(m, 7.0);
}

TEST(Differential, single_operators) {
  torch::manual_seed(1);
  const at::Tensor a = torch::randn({3, 4}), b = torch::randn({3, 4}), c = torch::randn({4, 2});
  const at::Tensor i = torch::tensor({2, 0, 1}), m = a > 0;
  for (const Case& test : cases()) {
    const std::string op = test.op;
    auto graph = std::make_shared<Graph>();
    for (const char* name : {"a", "b", "c", "i", "m"}) graph->placeholder(name);
    Args args;
    for (const Argument& arg : test.args) args.push_back(bind_inputs(arg, *graph));
    Kwargs kwargs;
    for (const KwArg& arg : test.kwargs)
      kwargs.emplace_back(arg.key, bind_inputs(arg.value, *graph));
    if (op == "function torch.where") args[0] = *graph->find_node("m");
    if (op == "function torch.einsum") args = {args[0], Argument::list({args[1], args[2]})};
    const std::string name = op.substr(op.find(' ') + 1);
    graph->output(op.starts_with("function") ? graph->call_function(name, args, kwargs)
                                             : graph->call_method(name, args, kwargs));
    GraphModule gm(graph);
    const Value wanted = eager_of(test, a, b, c, i, m);
    const CompareOptions exact{0, 0};
    SCOPED_TRACE(graph->str());
    EXPECT_EQ(compare_values(wanted, Interpreter(gm).run({a, b, c, i, m}), exact), "");
    EXPECT_EQ(compare_values(wanted, gm(a, b, c, i, m), exact), "");
    EXPECT_EQ(compare_values(wanted, gm(a, b, c, i, m), exact), "");  // again, with a warm frame
  }
}

// The value of a run, or the message of its failure.
template <typename Run>
std::pair<Value, std::string> outcome(Run&& run) {
  try {
    return {run(), ""};
  } catch (const std::exception&) {
    return {Value(), "failed"};
  }
}

TEST(Differential, numbers_in_arithmetic_keep_dtypes_and_bits) {
  using Op = at::Tensor (*)(const at::Tensor&, const at::Scalar&);
  const std::vector<std::pair<const char*, Op>> ops{
      {"operator.add", [](const at::Tensor& x, const at::Scalar& n) { return x + n; }},
      {"operator.sub", [](const at::Tensor& x, const at::Scalar& n) { return x - n; }},
      {"operator.mul", [](const at::Tensor& x, const at::Scalar& n) { return x * n; }},
      {"operator.truediv", [](const at::Tensor& x, const at::Scalar& n) { return x / n; }},
      {"torch.floor_divide",
       [](const at::Tensor& x, const at::Scalar& n) { return at::floor_divide(x, n); }}};
  const std::vector<Argument> numbers{1,    2.5,      -3,       0.1,   1e-50,
                                      true, 16777217, INFINITY, 1e300, std::nan("")};
  const CompareOptions exact{0, 0};
  for (const auto& [name, op] : ops) {
    for (const Argument& number : numbers) {
      auto graph = std::make_shared<Graph>();
      Node& x = graph->placeholder("x");
      graph->output(graph->call_function(name, {x, number}));
      GraphModule gm(graph);
      SCOPED_TRACE(graph->str());
      at::Scalar scalar = number.kind() == Argument::Kind::kBool  ? at::Scalar(number.to_bool())
                          : number.kind() == Argument::Kind::kInt ? at::Scalar(number.to_int())
                                                                  : at::Scalar(number.to_double());
      for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt,
                                   at::kLong, at::kByte, at::kBool}) {
        for (const at::Tensor& wide :
             {torch::tensor({{1.7, 3.3}, {-2.1, 0.3}}), torch::scalar_tensor(2.6)}) {
          const at::Tensor input = wide.abs().to(dtype);
          const auto eager = outcome([&] { return Value(op(input, scalar)); });
          const auto interpreted = outcome([&] { return Interpreter(gm).run({input}); });
          const auto compiled = outcome([&] { return gm(input); });
          EXPECT_EQ(eager.second, interpreted.second);
          EXPECT_EQ(eager.second, compiled.second);
          EXPECT_EQ(compare_values(eager.first, interpreted.first, exact), "");
          EXPECT_EQ(compare_values(eager.first, compiled.first, exact), "");
        }
      }
    }
  }
}

TEST(Differential, numbers_in_arithmetic_and_autograd) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& mul = graph->call_function("operator.mul", {x, 3});
  Node& div = graph->call_function("operator.truediv", {mul, 1.5});
  graph->output(graph->call_function("operator.sub", {div, 0.5}));
  std::shared_ptr<GraphModule> gm;
  {
    // What planning makes must be good for training also when it happens in inference mode.
    c10::InferenceMode inference;
    gm = std::make_shared<GraphModule>(graph);
  }
  at::Tensor in = torch::tensor({1.0f, 2.0f}).requires_grad_();
  (*gm)(in).toTensor().sum().backward();
  EXPECT_TRUE(at::equal(in.grad(), torch::tensor({2.0f, 2.0f})));
}

// The same on every machine: a random program over tensors of one shape, numbers and lists, with
// shared and unused values.
std::shared_ptr<Graph> random_program(fuzz::Choices& choose) {
  auto graph = std::make_shared<Graph>();
  std::vector<Node*> tensors{&graph->placeholder("x"), &graph->placeholder("y")};
  std::vector<Node*> ints{&graph->placeholder("n")};
  auto pick = [&](const std::vector<Node*>& from) -> Node& { return *choose.pick(from); };
  auto tensor_or_number = [&]() -> Argument {
    switch (choose.below(4)) {
      case 0:
        return choose.between(-2, 2);
      case 1:
        return 0.5;
      case 2:
        return pick(ints);
      default:
        return pick(tensors);
    }
  };
  constexpr std::array kUnary{"torch.relu", "aten::neg", "operator.neg", "torch.tanh", "aten::abs"};
  constexpr std::array kBinary{"operator.add", "operator.mul", "torch.sub", "torch.maximum",
                               "aten::add.Tensor"};
  const std::size_t length = 5 + choose.below(40);
  for (std::size_t i = 0; i < length; ++i) {
    switch (choose.below(7)) {
      case 0:
      case 1: {
        const std::string op = kUnary[choose.below(kUnary.size())];
        tensors.push_back(&graph->call_function(op, {pick(tensors)}));
        break;
      }
      case 2:
      case 3: {
        const std::string op = kBinary[choose.below(kBinary.size())];
        const Argument other = op == "torch.maximum" ? Argument(pick(tensors)) : tensor_or_number();
        tensors.push_back(&graph->call_function(op, {pick(tensors), other}));
        break;
      }
      case 4:
        ints.push_back(&graph->call_function("operator.add", {pick(ints), pick(ints)}));
        break;
      case 5: {
        Node& cat =
            graph->call_function("torch.stack", {Argument::list({pick(tensors), pick(tensors)})});
        tensors.push_back(&graph->call_function("operator.getitem", {cat, choose.between(0, 1)}));
        break;
      }
      default:
        tensors.push_back(
            &graph->call_method("clamp", {pick(tensors)}, {{"min", -3}, {"max", 3.0}}));
        break;
    }
  }
  graph->output(Argument::tuple({pick(tensors), Argument::list({pick(tensors), pick(ints)}),
                                 Argument::dict({{"k", pick(tensors)}})}));
  return graph;
}

TEST(Differential, random_programs) {
  fuzz::Choices choose(20240601);
  const CompareOptions exact{0, 0};
  for (int round = 0; round < 200; ++round) {
    auto graph = random_program(choose);
    GraphModule gm(graph);
    torch::manual_seed(round);
    const Values inputs{torch::randn({2, 3}), torch::randn({2, 3}), 2};
    const Value collected = Interpreter(gm).run(inputs);
    const Value kept = Interpreter(gm, false).run(inputs);
    ASSERT_EQ(compare_values(kept, collected, exact), "") << graph->str();
    for (int again = 0; again < 2; ++again)
      ASSERT_EQ(compare_values(kept, gm.forward(inputs), exact), "") << graph->str();
    auto copy = gm.deep_copy();
    ASSERT_EQ(compare_values(kept, copy->forward(inputs), exact), "") << graph->str();
  }
}

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    bn = register_module("bn", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(8 * 4 * 4, 10));
    drop = register_module("drop", torch::nn::Dropout(0.5));
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::max_pool2d(torch::relu(bn->forward(conv->forward(x))), 2);
    return torch::log_softmax(fc->forward(drop->forward(x.flatten(1))), 1);
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::nn::Dropout drop{nullptr};
};
TORCH_MODULE(SmallNet);

TEST(Differential, modules_in_training_and_evaluation) {
  torch::manual_seed(3);
  SmallNet net;
  auto graph = std::make_shared<Graph>();
  Node* x = &graph->placeholder("x");
  x = &graph->call_module("conv", {*x});
  x = &graph->call_module("bn", {*x});
  x = &graph->call_function("torch.relu", {*x});
  x = &graph->call_function("torch.max_pool2d", {*x, 2});
  x = &graph->call_method("flatten", {*x, 1});
  x = &graph->call_module("drop", {*x});
  x = &graph->call_module("fc", {*x});
  graph->output(graph->call_function("torch.log_softmax", {*x, 1}));
  GraphModule gm(*net, graph, "SmallNet");
  const at::Tensor batch = torch::randn({2, 3, 8, 8});
  const CompareOptions exact{0, 0};
  for (bool training : {true, false}) {
    net->train(training);
    gm.train(training);
    for (const bool with_grad : {true, false}) {
      torch::AutoGradMode mode(with_grad);
      auto seeded = [&](auto&& run) {
        torch::manual_seed(11);
        net->bn->reset_running_stats();
        return Value(run());
      };
      const Value eager = seeded([&] { return net->forward(batch); });
      const at::Tensor mean = net->bn->running_mean.clone();
      EXPECT_EQ(compare_values(eager, seeded([&] { return Interpreter(gm).run({batch}); }), exact),
                "");
      EXPECT_EQ(compare_values(mean, net->bn->running_mean, exact), "");
      EXPECT_EQ(compare_values(eager, seeded([&] { return gm(batch); }), exact), "");
      EXPECT_EQ(compare_values(mean, net->bn->running_mean, exact), "");
    }
  }
}

}  // namespace
}  // namespace fx
