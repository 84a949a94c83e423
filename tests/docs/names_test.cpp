// docs/guide/names.md: what its right-hand columns say compiles and does what the left-hand ones
// do.

#include <fx/fx.h>
#include <fx/graph/builders.h>
#include <fx/graph/dot.h>
#include <fx/graph/node_hooks.h>
#include <fx/graph/readable.h>
#include <fx/graph/traceback.h>
#include <fx/passes/constant_fold.h>
#include <fx/passes/cse.h>
#include <fx/passes/extract.h>
#include <fx/passes/fuse_conv_bn.h>
#include <fx/passes/named_arguments.h>
#include <fx/passes/remove_noops.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

TEST(NamesPage, capture) {
  auto gm = fx::symbolic_trace(
      [](fx::Proxy x, bool flag) {
        auto [a, b] = x.unpack<2>();
        auto c = a[fx::slice(1, 3)] + floordiv(b, 2) + matmul(a, b) + abs(a);
        return flag ? c * fx::len(x) : c + x.attr("shape");
      },
      {.concrete_args = {{"y", true}}});
  EXPECT_EQ(gm->graph().find_calls("operator.getitem").size(), 3u);
  EXPECT_EQ(gm->graph().find_calls("builtins.len").size(), 1u);
  EXPECT_EQ(gm->graph().find_calls("operator.floordiv").size(), 1u);
  EXPECT_EQ(gm->graph().find_calls("torch.matmul").size(), 1u);
  EXPECT_EQ(gm->graph().find_calls("operator.abs").size(), 1u);
  fx::Tracer tracer;
  EXPECT_EQ(fx::trace(tracer, [](auto x) { return sum(x, fx::kw("dim", 1)); })->size(), 3u);
  EXPECT_NE(fx::make_fx([](at::Tensor x) { return x + 1; }, {torch::ones({1})})
                ->meta()
                .get<fx::Assumptions>("assumptions"),
            nullptr);
}

TEST(NamesPage, structures_hooks_origins_and_readable_code) {
  fx::TreeSpec two;
  two.kind = fx::TreeSpec::Kind::kList;
  two.children.resize(2);
  auto listed = fx::symbolic_trace([](std::vector<fx::Proxy> x) { return x[0] + x[1]; },
                                   {.structures = {{"x", two}}});
  EXPECT_NE(listed->graph().find_node("x_2"), nullptr);
  EXPECT_EQ(fx::symbolic_trace(*listed)->graph().size(), listed->graph().size());
  struct Net : torch::nn::Module {
    fx::Proxy f(fx::Proxy x) { return -x; }
  } net;
  fx::Tracer tracer;
  EXPECT_EQ(fx::trace_method(tracer, net, &Net::f)->size(), 3u);

  auto graph = std::make_shared<fx::Graph>();
  int created = 0;
  {
    const fx::ScopedHook hook(fx::register_create_node_hook(*graph, [&](fx::Node&) { ++created; }));
    fx::Node& x = graph->placeholder("x");
    graph->output(fx::create_size_node(*graph, x, 0));
  }
  EXPECT_EQ(created, 3);
  fx::Meta note;
  note.set("stage", 1);
  {
    auto guard = fx::traceback::annotate(note);
    auto traced = fx::symbolic_trace([](fx::Proxy x) { return x + 1; });
    EXPECT_TRUE(traced->graph().find_node("add")->meta().contains("custom"));
  }
  auto read = std::make_shared<fx::Graph>();
  read->output(read->get_attr("a.b"));
  auto gm = fx::make_graph_module({{"a.b", torch::ones({1})}}, read);
  EXPECT_NE(fx::readable_code(*gm).find("self.a.b"), std::string::npos);
  EXPECT_NE(fx::to_string(*gm).find("self.a.b"), std::string::npos);
}

TEST(NamesPage, graph_and_node) {
  auto graph = std::make_shared<fx::Graph>();
  fx::Graph& g = *graph;
  fx::Node& x = g.placeholder("x");
  fx::Node& y = g.placeholder_with_default("y", 2);
  fx::Node& n = g.call_function("torch.add", {x, y});
  g.output(n);
  {
    auto at = g.inserting_before(n);
    fx::Node& relu = g.call_function("torch.relu", {x});
    n.update_arg(0, relu);
    EXPECT_TRUE(relu.comes_before(n));
  }
  {
    auto at = g.inserting_at_start();
  }
  {
    auto at = g.inserting_at_end();
  }
  g.lint({.strict = true});
  EXPECT_EQ(g.find_nodes(fx::Opcode::kCallFunction).size(), 2u);
  EXPECT_EQ(g.find_calls("torch.add").front(), g.find_node("add"));
  EXPECT_TRUE(g.clone()->same_structure(g));
  EXPECT_EQ(g.clone()->structural_hash(), g.structural_hash());
  EXPECT_TRUE(fx::parse_text(fx::to_text(g))->same_structure(g));
  EXPECT_NE(fx::to_dot(g).find("digraph"), std::string::npos);
  EXPECT_FALSE(g.eliminate_dead_code());
  fx::Graph other;
  fx::ValueMap map;
  other.output(other.graph_copy(g, map));
  EXPECT_TRUE(other.same_structure(g));

  n.set_args({x, y});
  n.set_kwargs({{"alpha", 2}});
  n.update_kwarg("alpha", 3);
  n.update_arg("alpha", 4);
  EXPECT_EQ(n.kwarg("alpha").to_int(), 4);
  EXPECT_EQ(n.arg(0).map_nodes([&](fx::Node&) { return fx::Argument(y); }), fx::Argument(y));
  EXPECT_EQ(fx::Argument::list({1, 2}).map_leaves([](const fx::Argument&) { return 3; }),
            fx::Argument::list({3, 3}));
  EXPECT_EQ(n.rename("sum"), "sum_1") << "sum is a word of Python";
  EXPECT_FALSE(fx::normalized_arguments(n).has_value()) << "torch.add has two overloads for it";
  EXPECT_EQ(fx::repr(*fx::normalized_arguments(*g.find_node("relu"))), "{'self': x}");
  EXPECT_FALSE(n.is_impure());
  EXPECT_EQ(g.output_node().next(), nullptr);
}

TEST(NamesPage, graph_module_interpreter_passes) {
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  gm->set_parameter("layer.weight", torch::ones({1}));
  EXPECT_TRUE(gm->find_tensor("layer.weight").defined());
  EXPECT_NE(gm->find_submodule("layer"), nullptr);
  EXPECT_TRUE(gm->deep_copy()->graph().same_structure(gm->graph()));
  EXPECT_FALSE(gm->python_code().empty());
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fxcpp-names-" + std::to_string(::getpid()));
  fx::to_folder(*gm, folder.string(), "Net");
  fx::save(*gm, (folder / "net.fxa").string());
  EXPECT_TRUE(fx::load((folder / "net.fxa").string())->graph().same_structure(gm->graph()));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(gm->code().empty());
  fx::Interpreter interpreter(*gm, false);
  fx::Node& x = *gm->graph().find_node("x");
  fx::Value value = interpreter.run({torch::ones({1})}, {.strict = false});
  EXPECT_TRUE(interpreter.env().at(x).isTensor());
  EXPECT_NE(interpreter.env().find(x), nullptr);
  fx::Values boxed{torch::ones({1})};
  EXPECT_TRUE(interpreter.boxed_run(boxed).isTensor());
  EXPECT_TRUE(fx::Transformer(*gm).transform()->graph().same_structure(gm->graph()));
  EXPECT_FALSE(fx::cse(*gm).changed);
  EXPECT_FALSE(fx::constant_fold(*gm).changed);
  EXPECT_FALSE(fx::fuse_conv_bn(*gm).changed);
  EXPECT_FALSE(fx::remove_dropout(*gm).changed);
  EXPECT_EQ(fx::extract_subgraph(*gm, {"relu"}, {"add"})->graph().size(), 3u);
}

}  // namespace
}  // namespace fx::docs_test
