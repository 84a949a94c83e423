#include "fx/interpret/interpreter.h"
#include "tests/interpret/models.h"

namespace fx {
namespace {

TEST(Interpreter, S0_05_fetch_resolves_nodes) {
  auto gm = affine_module();
  Node& add = node_of(*gm, "add");
  Interpreter interpreter(*gm);
  interpreter.env().set(node_of(*gm, "x"), 7);
  auto [args, kwargs] = interpreter.fetch_args_kwargs_from_env(add);
  ASSERT_EQ(args.size(), 2u);
  EXPECT_EQ(args[0].toInt(), 7);
  EXPECT_EQ(args[1].toInt(), 1);
  EXPECT_TRUE(kwargs.empty());
}

TEST(Interpreter, I_013_S0_05_fetch_resolves_nested_nodes) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& nested = graph->call_function(
      "wrapped_function",
      {Argument::list({x, Argument::tuple({y, 3}), Argument::list({x, y})}),
       Argument::dict({{"a", x}, {"b", Argument::list({y})}}), Argument::slice(x, {}, y)},
      {{"key", Argument::tuple({x, Argument::dict({{"inner", y}})})}});
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  interpreter.env().set(x, 10);
  interpreter.env().set(y, 20);
  const auto [args, kwargs] = interpreter.fetch_args_kwargs_from_env(nested);
  EXPECT_EQ(to_string(args[0]), "[10, (20, 3), [10, 20]]");
  EXPECT_EQ(args[1].toGenericDict().at("a").toInt(), 10);
  EXPECT_EQ(to_string(args[1].toGenericDict().at("b")), "[20]");
  const Slice* slice = as_slice(args[2]);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->start.toInt(), 10);
  EXPECT_TRUE(slice->stop.isNone());
  EXPECT_EQ(slice->step.toInt(), 20);
  ASSERT_EQ(kwargs.size(), 1u);
  EXPECT_EQ(kwargs[0].key, "key");
  EXPECT_EQ(to_string(kwargs[0].value), "(10, {'inner': 20})");
}

TEST(Interpreter, S0_07_constants_come_back_as_they_are) {
  auto graph = std::make_shared<Graph>();
  const double nan_bits = -std::numeric_limits<double>::quiet_NaN();
  Node& node = graph->call_function(
      "wrapped_function",
      {42, 1.5, true, "text", nullptr, Argument::list({1, 2}), Argument::dict({{"k", 1}}),
       c10::kHalf, c10::Device("cpu"), -0.0, nan_bits, std::complex<double>(1, 2),
       c10::MemoryFormat::ChannelsLast, Argument::ellipsis(), Argument::tuple({1.0, "a"}),
       Argument::list({}), Argument::list({1.5, 2.5}), Argument::list({true})});
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  const Values v = interpreter.fetch_args_kwargs_from_env(node).args;
  EXPECT_EQ(v[0].toInt(), 42);
  EXPECT_EQ(v[1].toDouble(), 1.5);
  EXPECT_EQ(v[2].toBool(), true);
  EXPECT_EQ(v[3].toStringRef(), "text");
  EXPECT_TRUE(v[4].isNone());
  EXPECT_EQ(v[5].toIntVector(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(v[6].toGenericDict().at("k").toInt(), 1);
  EXPECT_EQ(v[7].toScalarType(), at::kHalf);
  EXPECT_EQ(v[8].toDevice(), c10::Device("cpu"));
  EXPECT_TRUE(v[9].toDouble() == 0 && std::signbit(v[9].toDouble()));
  const double found = v[10].toDouble();
  EXPECT_EQ(std::memcmp(&found, &nan_bits, sizeof found), 0);
  EXPECT_EQ(v[11].toComplexDouble(), (c10::complex<double>(1, 2)));
  EXPECT_EQ(v[12].toInt(), static_cast<std::int64_t>(c10::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(is_ellipsis(v[13]));
  EXPECT_EQ(to_string(v[14]), "(1.0, 'a')");
  EXPECT_EQ(elements(v[15]).size(), 0u);
  EXPECT_TRUE(v[16].isDoubleList());
  EXPECT_TRUE(v[17].isBoolList());
}

TEST(Interpreter, S0_07_second_argument_of_add_passes_through) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1.0});
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  interpreter.env().set(x, torch::ones({2}));
  EXPECT_TRUE(interpreter.fetch_args_kwargs_from_env(add).args[1].isDouble());
  EXPECT_EQ(interpreter.fetch_args_kwargs_from_env(add).args[1].toDouble(), 1.0);
}

struct FetchedArgs : Interpreter {
  using Interpreter::Interpreter;
  ArgsKwargs fetch_args_kwargs_from_env(Node& node) override {
    ArgsKwargs fetched = Interpreter::fetch_args_kwargs_from_env(node);
    seen[std::string(node.name())] = fetched.args;
    return fetched;
  }
  std::map<std::string, Values> seen;
};

TEST(Interpreter, S0_44_fetched_tensors_share_their_storage) {
  ParamModel model;
  auto gm = param_module(model);
  const at::Tensor x = torch::randn({10, 20}), y = torch::randn({10, 1});
  FetchedArgs interpreter(*gm, false);
  interpreter.run({x, y});
  auto data = [](const Value& value) { return value.toTensor().data_ptr(); };
  EXPECT_EQ(data(interpreter.seen["add"][0]), x.data_ptr());
  EXPECT_EQ(data(interpreter.seen["add"][1]), model->param.data_ptr());
  EXPECT_EQ(data(interpreter.seen["mul"][0]), y.data_ptr());
  EXPECT_EQ(data(interpreter.seen["mul"][1]), data(interpreter.env().at("add")));
}

TEST(Interpreter, S0_25_fetch_copies_no_tensor) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  const at::Tensor x = torch::ones({3});
  interpreter.env().set(node_of(*gm, "x"), x);
  const auto before = x.use_count();
  {
    ArgsKwargs fetched = interpreter.fetch_args_kwargs_from_env(node_of(*gm, "add"));
    EXPECT_EQ(fetched.args[0].toTensor().data_ptr(), x.data_ptr());
    EXPECT_EQ(x.use_count(), before + 1);
  }
  EXPECT_EQ(x.use_count(), before);
}

TEST(Interpreter, S0_75_fetch_on_the_edited_node) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1.0});
  graph->output(add);
  GraphModule gm(graph);
  add.update_arg(1, 100.0);
  Interpreter interpreter(gm);
  interpreter.env().set(x, 5.0);
  const Values args = interpreter.fetch_args_kwargs_from_env(add).args;
  EXPECT_EQ(args[0].toDouble(), 5.0);
  EXPECT_EQ(args[1].toDouble(), 100.0);
}

TEST(Interpreter, S0_55_fetched_values_are_copies_to_do_with_as_one_likes) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sum = graph->call_function("torch.sum", {x, Argument::list({0, 1})});
  graph->output(sum);
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  interpreter.env().set(x, torch::ones({2, 2}));
  ArgsKwargs fetched = interpreter.fetch_args_kwargs_from_env(sum);
  fetched.args[1].toIntList().push_back(5);
  fetched.args[0] = 1;
  EXPECT_EQ(repr(sum.args()), "(x, [0, 1])");
  const Values again = interpreter.fetch_args_kwargs_from_env(sum).args;
  EXPECT_TRUE(again[0].isTensor());
  EXPECT_EQ(to_string(again[1]), "[0, 1]");
}

}  // namespace
}  // namespace fx
