// Node::is_impure and eliminate_dead_code: what may be removed. Effects come from the schemas.
#include "fx/ops/effects.h"

#include "fx/graph/graph.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct One {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");

  bool impure(std::string_view function, Args args, Kwargs kwargs = {}) {
    return graph.call_function(function, std::move(args), std::move(kwargs)).is_impure();
  }
  bool method_impure(std::string_view method, Args args, Kwargs kwargs = {}) {
    return graph.call_method(method, std::move(args), std::move(kwargs)).is_impure();
  }
};

TEST(Impure, G_060_inputs_and_outputs) {
  One g;
  EXPECT_TRUE(g.x.is_impure());
  EXPECT_TRUE(g.graph.output(g.x).is_impure());
  EXPECT_FALSE(g.graph.get_attr("w").is_impure());
}

TEST(Impure, plain_operators_are_pure) {
  One g;
  for (const char* name :
       {"aten::add.Tensor", "aten::relu", "torch.add", "torch.relu", "aten::mm", "torch.cat",
        "torch.nn.functional.relu", "operator.add", "operator.getitem", "builtins.getattr",
        "aten::view", "aten::detach", "torch.empty", "aten::empty.memory_format", "math.sqrt"})
    EXPECT_FALSE(g.impure(name, {g.x, g.y})) << name;
}

TEST(Impure, R_053_G_063_G_069_in_place_operators) {
  One g;
  for (const char* name : {"aten::add_.Tensor", "aten::add_", "aten::relu_", "torch.relu_",
                           "aten::copy_", "aten::_foreach_add_.Scalar", "aten::set_.source_Tensor",
                           "aten::index_put_", "torch.dropout_"})
    EXPECT_TRUE(g.impure(name, {g.x, g.y})) << name;
}

TEST(Impure, Q_006_G_070_F7_in_place_methods_and_python_operators) {
  One g;
  for (const char* name : {"add_", "mul_", "relu_", "copy_", "index_put_", "__iadd__",
                           "__setitem__", "__ior__", "zero_", "requires_grad_"})
    EXPECT_TRUE(g.method_impure(name, {g.x, g.y})) << name;
  for (const char* name : {"operator.iadd", "operator.imul", "operator.isub", "operator.itruediv",
                           "operator.ior", "operator.setitem"})
    EXPECT_TRUE(g.impure(name, {g.x, g.y})) << name;
  for (const char* name :
       {"add", "mul", "relu", "size", "dim", "type", "view", "clone", "__add__", "contiguous"})
    EXPECT_FALSE(g.method_impure(name, {g.x, g.y})) << name;
}

TEST(Impure, G_062_R_055_an_out_argument_is_written) {
  One g;
  EXPECT_TRUE(g.impure("aten::add.out", {g.x, g.y}, {{"out", g.x}}));
  EXPECT_TRUE(g.impure("torch.add", {g.x, g.y}, {{"out", g.x}}));
  EXPECT_TRUE(g.impure("aten::add", {g.x, g.y}, {{"out", g.x}}));
  EXPECT_FALSE(g.impure("torch.add", {g.x, g.y}, {{"alpha", 2}}));
}

TEST(Impure, N_044_G_059_R_054_G_067_G_068_random_operators) {
  One g;
  for (const char* name :
       {"aten::bernoulli", "aten::rand", "torch.rand", "torch.randn_like", "torch.multinomial",
        "aten::randperm", "torch.normal", "torch.poisson", "torch.randint"}) {
    Node& node = g.graph.call_function(name, {g.x});
    EXPECT_TRUE(node.is_impure()) << name;
    EXPECT_FALSE(node.is_impure(/*impure_random=*/false)) << name;
  }
  EXPECT_TRUE(g.impure("aten::bernoulli_.float", {g.x})) << "writes, whatever it draws";
  Node& fill = g.graph.call_function("aten::uniform_", {g.x});
  EXPECT_TRUE(fill.is_impure(false));
}

TEST(Impure, F8_batch_norm_by_its_training_flag) {
  One g;
  auto batch_norm = [&](Argument training) {
    return g.impure("aten::batch_norm",
                    {g.x, {}, {}, g.y, g.y, std::move(training), 0.1, 1e-5, true});
  };
  EXPECT_FALSE(batch_norm(false));
  EXPECT_TRUE(batch_norm(true));
  EXPECT_TRUE(batch_norm(g.x)) << "a value only known when it runs";
  EXPECT_TRUE(g.impure("torch.batch_norm", {g.x, {}, {}, g.y, g.y, true, 0.1, 1e-5, true}));
  EXPECT_FALSE(g.impure("torch.batch_norm", {g.x, {}, {}, g.y, g.y, false, 0.1, 1e-5, true}));
  EXPECT_TRUE(g.impure("aten::native_batch_norm", {g.x, {}, {}, g.y, g.y, true, 0.1, 1e-5}));
  EXPECT_FALSE(g.impure("aten::native_batch_norm", {g.x, {}, {}, g.y, g.y, false, 0.1, 1e-5}));
  EXPECT_TRUE(g.impure("aten::_native_batch_norm_legit", {g.x, {}, {}, g.y, g.y, true, 0.1, 1e-5}));
  EXPECT_FALSE(
      g.impure("aten::_native_batch_norm_legit_no_training", {g.x, {}, {}, g.y, g.y, 0.1, 1e-5}));
  EXPECT_FALSE(g.impure("aten::batch_norm", {g.x},
                        {{"training", false}, {"running_mean", g.y}, {"running_var", g.y}}));
}

TEST(Impure, dropout_by_its_train_flag) {
  One g;
  EXPECT_TRUE(g.impure("aten::dropout", {g.x, 0.5, true}));
  EXPECT_FALSE(g.impure("aten::dropout", {g.x, 0.5, false}));
  EXPECT_TRUE(g.impure("torch.dropout", {g.x, 0.5, true}));
  EXPECT_FALSE(g.impure("torch.dropout", {g.x, 0.5, false}));
  EXPECT_TRUE(g.impure("aten::native_dropout", {g.x, 0.5, true}));
  EXPECT_FALSE(g.impure("aten::native_dropout", {g.x, 0.5, false}));
  EXPECT_TRUE(g.impure("aten::native_dropout", {g.x, 0.5, Argument()})) << "None means training";
  EXPECT_TRUE(g.impure("torch.nn.functional.dropout", {g.x})) << "training is True by default";
  EXPECT_FALSE(g.impure("torch.nn.functional.dropout", {g.x, 0.5, false}));
  Node& node = g.graph.call_function("aten::dropout", {g.x, 0.5, true});
  EXPECT_FALSE(node.is_impure(/*impure_random=*/false));
}

TEST(Impure, N_053_G_065_G_064_assertions_and_registered_functions) {
  One g;
  for (const char* name :
       {"aten::_assert_async", "aten::_assert_async.msg", "torch._assert", "aten::_assert_scalar",
        "aten::_assert_tensor_metadata", "aten::sym_constrain_range_for_size"})
    EXPECT_TRUE(g.impure(name, {g.x})) << name;
  EXPECT_FALSE(g.impure("test.pure_function", {g.x}));
  EXPECT_FALSE(g.impure("test.logs", {g.x}));
  has_side_effect(*Function::get("test.logs"));
  EXPECT_TRUE(g.impure("test.logs", {g.x}));
  EXPECT_FALSE(g.impure("test.pure_function", {g.x}));
}

TEST(Impure, an_unknown_operator_may_do_anything) {
  One g;
  EXPECT_TRUE(g.impure("nobody::knows.this", {g.x}));
}

TEST(Impure, G_061_F9_modules_as_their_owner_says) {
  struct Owner : GraphOwner {
    AttrKind attr_kind(std::string_view) const override { return AttrKind::kModule; }
    bool module_is_impure(std::string_view path, bool random) const override {
      return path == "bn" || (path == "drop" && random);
    }
    Graph* nested_graph(std::string_view) const override { return nullptr; }
  } owner;
  One g;
  Node& call = g.graph.call_module("linear", {g.x});
  EXPECT_TRUE(call.is_impure()) << "nothing is known without an owner";
  g.graph.set_owner(&owner);
  EXPECT_FALSE(call.is_impure());
  EXPECT_TRUE(g.graph.call_module("bn", {g.x}).is_impure());
  Node& drop = g.graph.call_module("drop", {g.x});
  EXPECT_TRUE(drop.is_impure());
  EXPECT_FALSE(drop.is_impure(false));
  g.graph.set_owner(nullptr);
}

TEST(DeadCode, G_057_chains_go_in_one_sweep) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& unused = graph.placeholder("unused");
  Node& a = graph.call_function("torch.relu", {x});
  Node& b = graph.call_function("torch.neg", {a});
  graph.call_function("torch.add", {b, a});
  Node& keep = graph.call_function("torch.sigmoid", {x});
  graph.output(keep);
  EXPECT_TRUE(graph.eliminate_dead_code());
  EXPECT_EQ(names(graph), (Names{"x", "unused", "sigmoid", "output"}));
  EXPECT_FALSE(unused.is_erased());
  EXPECT_FALSE(graph.eliminate_dead_code()) << "F53: an honest answer";
  graph.lint({.strict = true});
}

TEST(DeadCode, F7_effects_stay) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  graph.call_method("mul_", {x, y});
  graph.call_function("operator.iadd", {x, y});
  graph.call_function("aten::add.out", {x, y}, {{"out", x}});
  graph.call_function("torch.rand", {2});
  Node& index = graph.call_function("torch.relu", {y});
  graph.call_function("operator.setitem", {x, index, 1});
  graph.call_function("torch.neg", {x});
  graph.output(x);
  EXPECT_TRUE(graph.eliminate_dead_code());
  EXPECT_EQ(names(graph),
            (Names{"x", "y", "mul_", "iadd", "add_out", "rand", "relu", "setitem", "output"}));
}

TEST(DeadCode, a_predicate_of_the_caller) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_function("torch.relu", {x});
  graph.call_function("torch.neg", {x});
  graph.call_method("mul_", {x, 2});
  graph.output(x);
  auto keeps_relu = [](const Node& node) { return node.calls("torch.relu"); };
  EXPECT_TRUE(graph.eliminate_dead_code(keeps_relu));
  EXPECT_EQ(names(graph), (Names{"x", "relu", "output"})) << "inputs and outputs stay in any case";
}

TEST(DeadCode, lints_first_and_leaves_a_broken_graph_alone) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {x});
  graph.call_function("torch.neg", {relu});
  graph.output(x);
  x.prepend(relu);
  EXPECT_FX_ERROR(graph.eliminate_dead_code(), LintError, kLintOrder, "'x' of Node 'relu'");
  EXPECT_EQ(graph.size(), 4u);
}

TEST(DeadCode, F36_long_chains_are_linear) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  Node& x = *last;
  for (int i = 0; i < 100000; ++i) last = &graph.call_function("operator.add", {*last, x});
  graph.output(x);
  EXPECT_TRUE(graph.eliminate_dead_code());
  EXPECT_EQ(graph.size(), 2u);
}

}  // namespace
}  // namespace fx
