// Inputs of traced programs: structures, fixed values, metadata, GraphModules.
#include <torch/torch.h>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using Kind = TreeSpec::Kind;

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

TreeSpec list_of(std::size_t count) {
  TreeSpec spec;
  spec.kind = Kind::kList;
  spec.children.resize(count);
  return spec;
}

TreeSpec dict_of(std::vector<std::string> keys) {
  TreeSpec spec;
  spec.kind = Kind::kDict;
  spec.children.resize(keys.size());
  spec.keys = std::move(keys);
  return spec;
}

Value tuple(Values items) { return c10::ivalue::Tuple::create(std::move(items)); }

Value list(const std::vector<at::Tensor>& items) { return c10::List<at::Tensor>(items); }

Value dict(std::vector<std::pair<std::string, Value>> items) {
  c10::impl::GenericDict made(c10::StringType::get(), c10::AnyType::get());
  for (auto& [key, value] : items) made.insert(key, value);
  return made;
}

// Both ways of running give the same tensor.
at::Tensor run(GraphModule& module, const Values& inputs) {
  const at::Tensor compiled = module.forward(inputs).toTensor();
  EXPECT_TRUE(torch::equal(Interpreter(module).run(inputs).toTensor(), compiled));
  return compiled;
}

TEST(StructuredInputs, F_186_T_036_G_092_leaves_are_placeholders_and_calls_take_the_structure) {
  const at::Tensor a = row({1, 2}), b = row({3, 4}), c = row({5, 6});
  struct Case {
    std::shared_ptr<GraphModule> module;
    Values inputs;
    at::Tensor expected;
    Names placeholders;
  };
  const std::vector<Case> cases = {
      {symbolic_trace([](std::vector<Proxy> x) { return x[0] + x[1]; },
                      {.structures = {{"x", list_of(2)}}}),
       {list({a, b})},
       a + b,
       {"x_1", "x_2"}},
      {symbolic_trace([](std::tuple<Proxy, Proxy> x) { return std::get<0>(x) - std::get<1>(x); }),
       {tuple({a, b})},
       a - b,
       {"x_1", "x_2"}},
      {symbolic_trace([](std::map<std::string, at::Tensor> x) { return x.at("k") * x.at("l"); },
                      {.structures = {{"x", dict_of({"k", "l"})}}}),
       {dict({{"l", b}, {"k", a}})},
       a * b,
       {"x_1", "x_2"}},
      {symbolic_trace([](std::pair<Proxy, std::tuple<Proxy, Proxy>> x, Proxy y) {
         return x.first + std::get<0>(x.second) * std::get<1>(x.second) - y;
       }),
       {tuple({a, tuple({b, c})}), c},
       a + b * c - c,
       {"x_1", "x_2", "x_3", "y"}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& each = cases[i];
    each.module->graph().lint({.strict = true});
    EXPECT_EQ(names(each.module->graph().placeholders()), each.placeholders) << i;
    EXPECT_TRUE(torch::equal(run(*each.module, each.inputs), each.expected)) << i;
    // Flat values, as the graph itself takes them.
    ASSERT_TRUE(each.module->in_spec().has_value());
    EXPECT_EQ(each.module->in_spec()->num_leaves(), each.placeholders.size());
    // A re-trace and a transformation keep the structure.
    auto again = symbolic_trace(*each.module);
    EXPECT_EQ(again->graph().str(), each.module->graph().str()) << i;
    EXPECT_TRUE(torch::equal(run(*again, each.inputs), each.expected)) << i;
    auto transformed = Transformer(*each.module).transform();
    EXPECT_TRUE(torch::equal(run(*transformed, each.inputs), each.expected)) << i;
  }
}

TEST(StructuredInputs, G_112_inputs_of_another_structure_are_refused) {
  auto module = symbolic_trace([](std::vector<Proxy> x) { return x[0] + x[1]; },
                               {.structures = {{"x", list_of(2)}}});
  const at::Tensor a = row({1});
  EXPECT_FX_ERROR(module->forward({list({a})}), RunError, kWrongType, "wanted a list of 2");
  EXPECT_FX_ERROR(module->forward({list({a, a, a})}), RunError, kWrongType, "wanted a list of 2");
  EXPECT_FX_ERROR(module->forward({a, a}), RunError, kWrongType, "wanted a tuple of 1");
  EXPECT_FX_ERROR(symbolic_trace([](std::vector<Proxy> x) { return x[0]; }), TraceError,
                  kConcreteArgs, "is a std::vector, of which nothing says how many items it has");
  EXPECT_FX_ERROR(symbolic_trace([](std::vector<Proxy> x) { return x[0]; },
                                 {.structures = {{"x", dict_of({"k"})}}}),
                  TraceError, kConcreteArgs, "does not fit its C++ type");
  TreeSpec nested = list_of(1);
  nested.children[0] = list_of(2);
  EXPECT_FX_ERROR(
      symbolic_trace([](std::vector<Proxy> x) { return x[0]; }, {.structures = {{"x", nested}}}),
      TraceError, kConcreteArgs, "does not fit its C++ type");
}

TEST(StructuredInputs, F_005_T_038_a_variadic_input_of_known_length) {
  auto module = symbolic_trace(
      [](std::vector<at::Tensor> args) {
        at::Tensor sum = args[0];
        for (std::size_t i = 1; i < args.size(); ++i) sum = sum + args[i];
        return sum;
      },
      {.input_names = {"args"}, .structures = {{"args", list_of(3)}}});
  EXPECT_EQ(names(module->graph().placeholders()), (Names{"args_1", "args_2", "args_3"}));
  EXPECT_TRUE(torch::equal(run(*module, {list({row({1}), row({2}), row({4})})}), row({7})));
}

TEST(StructuredInputs, F_187_fixed_leaves_are_checked) {
  auto module = symbolic_trace(
      [](std::tuple<at::Tensor, bool> x) {
        return std::get<1>(x) ? std::get<0>(x) + 1 : std::get<0>(x);
      },
      {.concrete_args = {{"x_2", true}}});
  EXPECT_EQ(module->graph().placeholders().size(), 2u);
  EXPECT_TRUE(torch::equal(run(*module, {tuple({row({1}), true})}), row({2})));
  EXPECT_FX_ERROR(module->forward({tuple({row({1}), false})}), RunError, kNodeFailed,
                  "x_2 has been specialized to have value True but got another value");
}

// torch.fx's test_custom_codegen: all inputs in one list.
TEST(StructuredInputs, F_189_F_190_another_calling_convention_for_a_module_that_is_there) {
  auto module = symbolic_trace([](auto a, auto b) { return a + b; });
  const at::Tensor a = torch::rand({3, 4}), b = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal(run(*module, {a, b}), a + b));
  TreeSpec args, both;
  args.kind = both.kind = Kind::kTuple;
  args.children = {list_of(2)};
  both.children = {args, dict_of({})};
  module->set_specs(both, list_of(1));
  module->recompile();
  auto result = [&](const Value& value) { return elements(value).at(0).toTensor(); };
  EXPECT_TRUE(torch::equal(result(module->forward({list({a, b})})), a + b));
  EXPECT_TRUE(torch::equal(result(Interpreter(*module).run({list({a, b})})), a + b));
  EXPECT_FX_ERROR(module->forward({a, b}), RunError, kWrongType, "structured input");
  auto transformed = Transformer(*module).transform();
  EXPECT_TRUE(torch::equal(result(transformed->forward({list({a, b})})), a + b));
  // The bare graph takes flat values.
  EXPECT_TRUE(torch::equal(Interpreter(torch::nn::Module(), module->graph()).run({a, b}).toTensor(),
                           a + b));
}

TEST(FixedInputs, F_024_T_034_a_tensor_that_is_none) {
  auto fn = [](at::Tensor x, std::optional<at::Tensor> val) { return val ? x + *val : x * 2; };
  auto module =
      symbolic_trace(fn, {.input_names = {"x", "val"}, .concrete_args = {{"val", Argument()}}});
  const at::Tensor x = row({1, 2});
  EXPECT_TRUE(torch::equal(run(*module, {x}), x * 2)) << "left out";
  EXPECT_TRUE(torch::equal(run(*module, {x, Value()}), x * 2));
  EXPECT_FX_ERROR(module->forward({x, x}), RunError, kNodeFailed,
                  "val has been specialized to have value None");
  EXPECT_FALSE(module->graph().eliminate_dead_code()) << "the check stays";
  auto undefined = symbolic_trace([](at::Tensor a, at::Tensor b) { return b.defined() ? b : a; },
                                  {.concrete_args = {{"y", Argument()}}});
  EXPECT_TRUE(torch::equal(run(*undefined, {x}), x));
  EXPECT_FX_ERROR(symbolic_trace(fn, {.concrete_args = {{"y", 3}}}), TraceError, kConcreteArgs,
                  "is a tensor, which only None can stand for while tracing, found 3");
}

TEST(FixedInputs, F_196_enumerations_are_values_of_the_program) {
  enum class Mode { kAdd, kMul };
  auto apply = [](const auto& x, Mode mode) { return mode == Mode::kAdd ? x + x : x * x; };
  for (const Mode mode : {Mode::kAdd, Mode::kMul}) {
    auto module = symbolic_trace([&](auto x) { return apply(x, mode); });
    EXPECT_TRUE(torch::equal(run(*module, {row({3})}), apply(row({3}), mode)));
  }
}

TEST(InputMeta, F_188_T_037_metadata_goes_to_placeholders_and_replaces_nothing) {
  struct Tagging : Tracer {
    Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                      std::string_view type) override {
      Node& node = Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, type);
      if (op == Opcode::kPlaceholder) node.meta().set("tag", "tracer");
      return node;
    }
  } tracer;
  Meta meta;
  meta.set("tag", "mine");
  meta.set("key", "a");
  auto module = symbolic_trace(tracer, [](std::pair<Proxy, Proxy> a) { return a.first + a.second; },
                               {.input_names = {"a"}, .input_meta = {{"a_1", meta}}});
  const Node& first = *module->graph().find_node("a_1");
  EXPECT_EQ(*first.meta().get<std::string>("key"), "a");
  EXPECT_EQ(*first.meta().get<std::string>("tag"), "tracer");
  EXPECT_FALSE(module->graph().find_node("a_2")->meta().contains("key"));
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x; }, {.input_meta = {{"z", meta}}}),
                  TraceError, kConcreteArgs, "there is no input 'z'");
}

TEST(InputNames, T_027_names_are_checked_against_the_signature) {
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x; }, {.input_names = {"a", "b"}}),
                  TraceError, kConcreteArgs, "found 2 input names for a function of 1 inputs");
  auto module = symbolic_trace([](Proxy x, Proxy y) { return x + y; }, {.input_names = {"left"}});
  EXPECT_EQ(names(module->graph().placeholders()), (Names{"left", "y"}));
}

// --- GraphModules as programs ------------------------------------------------------------------

struct DoubleImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return (*part)(x).toTensor() + 1; }
  std::shared_ptr<GraphModule> part;
};

std::shared_ptr<DoubleImpl> around(std::shared_ptr<GraphModule> part) {
  auto net = std::make_shared<DoubleImpl>();
  net->part = net->register_module("part", std::move(part));
  return net;
}

TEST(Retrace, nodes_defaults_and_types_come_back) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  Node& scale = graph->placeholder_with_default("scale", 2);
  Node& shape = graph->call_function("builtins.getattr", {x, "shape"});
  Node& first = graph->call_function("operator.getitem", {shape, 0});
  Node& zeros =
      graph->call_function("torch.zeros", {Argument::list({first})}, {{"dtype", c10::kFloat}});
  Node& item = graph->call_function("operator.getitem", {x, Argument::slice(0, first)});
  Node& sum = graph->call_function("operator.add", {item, zeros});
  graph->output(Argument::dict({{"y", graph->call_function("operator.mul", {sum, scale})}}));
  GraphModule module(graph, "Net");
  auto again = symbolic_trace(module);
  EXPECT_EQ(again->graph().str(), graph->str());
  EXPECT_EQ(again->class_name(), "Net");
  EXPECT_FX_ERROR(symbolic_trace(module, {.concrete_args = {{"scale", 2}}}), TraceError,
                  kConcreteArgs, "a GraphModule keeps the inputs of its graph");
  EXPECT_TRUE(torch::equal((*again)(row({1, 2})).toGenericDict().at("y").toTensor(), row({2, 4})));
}

TEST(Retrace, F_177_graph_modules_are_leaves_when_the_tracer_says_so) {
  auto part = symbolic_trace([](auto x) { return relu(x) * 3; });
  auto net = around(part);
  auto through = symbolic_trace(net);
  EXPECT_EQ(names(through->graph()), (Names{"x", "relu", "mul", "add_scalar", "output"}));
  EXPECT_EQ(through->graph().find_node("relu")->target(), "torch.relu");
  EXPECT_EQ(through->graph().find_node("mul")->meta().get<ModuleStack>("nn_module_stack")->back(),
            (std::pair<std::string, std::string>{"part", module_type_name(*part)}));
  struct Leaves : Tracer {
    bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
      return path == "part" || Tracer::is_leaf_module(module, path);
    }
  } tracer;
  auto leaf = symbolic_trace(tracer, net);
  EXPECT_EQ(names(leaf->graph()), (Names{"x", "part", "add_scalar", "output"}));
  const at::Tensor x = row({-1, 2});
  for (const auto& module : {through, leaf}) {
    EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->forward(x)));
    module->recompile();
    module->recompile();
    EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->forward(x))) << "harmless";
  }
}

// Probed on torch 2.15: a constant of a nested GraphModule is read under its path, and new ones are
// numbered from 0.
TEST(Retrace, constants_of_nested_graph_modules_keep_their_names) {
  const at::Tensor inside = row({5, 6}), outside = row({7, 8});
  auto part = symbolic_trace([&](auto x) { return x + inside; });
  ASSERT_TRUE(part->find_tensor("_tensor_constant0").defined());
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return (*part)(x).toTensor() * constant; }
    std::shared_ptr<GraphModule> part;
    at::Tensor constant;
  };
  auto net = std::make_shared<Net>();
  net->part = net->register_module("part", part);
  net->constant = outside;
  auto module = symbolic_trace(net);
  EXPECT_EQ(names(module->graph()), (Names{"x", "part__tensor_constant0", "add",
                                           "_tensor_constant0", "mul_tensor", "output"}));
  EXPECT_TRUE(module->find_tensor("part._tensor_constant0").is_same(inside));
  EXPECT_TRUE(module->find_tensor("_tensor_constant0").is_same(outside));
  EXPECT_TRUE(torch::equal((*module)(row({1, 1})).toTensor(), row({42, 56})));
  auto again = symbolic_trace(*module);
  EXPECT_EQ(again->graph().str(), module->graph().str());
  EXPECT_TRUE(torch::equal((*again)(row({1, 1})).toTensor(), row({42, 56})));
}

TEST(Retrace, structures_modules_and_errors_of_nested_graphs) {
  auto part = symbolic_trace([](std::pair<Proxy, Proxy> x) { return x.first - x.second; });
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) {
      return (*part)(c10::ivalue::Tuple::create(Values{x, x * 2})).toTensor();
    }
    std::shared_ptr<GraphModule> part;
  };
  auto net = std::make_shared<Net>();
  net->part = net->register_module("part", part);
  auto module = symbolic_trace(net);
  EXPECT_EQ(names(module->graph()), (Names{"x", "mul_scalar", "sub", "output"}));
  EXPECT_TRUE(torch::equal((*module)(row({1, 2})).toTensor(), row({-1, -2})));
  // A GraphModule from elsewhere has no path: its operators are recorded.
  auto foreign = symbolic_trace([](auto x) { return x * 3; });
  auto inlined = symbolic_trace([&](at::Tensor x) { return (*foreign)(x).toTensor(); });
  EXPECT_EQ(inlined->graph().find_nodes(Opcode::kCallFunction).size(), 1u);
  // Leaves inside stay leaves, under their paths.
  auto with_module = std::make_shared<GraphModule>(std::make_shared<Graph>());
  with_module->set_submodule("lin", std::make_shared<torch::nn::LinearImpl>(2, 2));
  with_module->graph().output(
      with_module->graph().call_module("lin", {with_module->graph().placeholder("x")}));
  with_module->recompile();
  auto outer = around(with_module);
  auto traced = symbolic_trace(outer);
  EXPECT_EQ(traced->graph().find_nodes(Opcode::kCallModule)[0]->target(), "part.lin");
  const at::Tensor x = row({1, 2});
  EXPECT_TRUE(torch::equal((*traced)(x).toTensor(), outer->forward(x)));
}

}  // namespace
}  // namespace fx
