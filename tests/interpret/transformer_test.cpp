#include "fx/interpret/transformer.h"

#include "tests/interpret/models.h"

namespace fx {
namespace {

// sigmoid <-> neg, as functions and as methods.
struct NegSigmoidSwap : Transformer {
  using Transformer::Transformer;
  Value call_function(const Target& target, Values args, KwValues kwargs) override {
    const bool swap = target == "torch.sigmoid";
    return Transformer::call_function(swap ? Target::function("torch.neg") : target,
                                      std::move(args), std::move(kwargs));
  }
  Value call_method(std::string_view target, Values args, KwValues kwargs) override {
    return Transformer::call_method(target == "neg" ? "sigmoid" : target, std::move(args),
                                    std::move(kwargs));
  }
};

TEST(Transformer, I_020_F_101_swaps_functions_and_methods) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sigmoid = graph->call_function("torch.sigmoid", {x});
  graph->output(graph->call_method("neg", {sigmoid}));
  GraphModule gm(graph);
  const at::Tensor input = torch::randn({3, 4});
  auto transformed = NegSigmoidSwap(gm).transform();
  EXPECT_TRUE(same((*transformed)(input), torch::neg(input).sigmoid()));
  // The old module is untouched.
  EXPECT_TRUE(same(gm(input), torch::sigmoid(input).neg()));
  transformed->graph().lint({.strict = true});
  // Renamed targets name their nodes.
  EXPECT_EQ(names(transformed->graph()), (Names{"x", "neg", "sigmoid", "output"}));
}

TEST(Transformer, I_017_Q_010_F_100_I_018_I_021_identity_keeps_names_types_meta_and_defaults) {
  MyModel model;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  Node& scale = graph->placeholder_with_default("scale", 2.0, "float");
  Node& a = graph->call_module("sub_module_a.linear", {x});
  a.rename("first_layer");
  Node& weight = graph->get_attr("another_linear.weight");
  Node& half = graph->call_method("to", {a, c10::kDouble}, {{"copy", true}});
  Node& mul = graph->call_function("operator.mul", {half, scale});
  mul.meta().set("note", "keep me");
  mul.set_stack_trace("here");
  x.meta().set("origin", "input");
  Node& output = graph->output(Argument::dict({{"y", Argument::list({mul, weight})},
                                               {"format", c10::MemoryFormat::ChannelsLast},
                                               {"slice", Argument::slice({}, 3)}}),
                               "Dict");
  output.meta().set("out", "note");
  GraphModule gm(*model, graph, "MyNet");
  auto copy = Transformer(gm).transform();
  EXPECT_EQ(copy->graph().str(), gm.graph().str());
  EXPECT_TRUE(copy->graph().same_structure(gm.graph()));
  EXPECT_EQ(copy->class_name(), "MyNet");
  EXPECT_EQ(*node_of(*copy, "mul").meta().get<std::string>("note"), "keep me");
  EXPECT_EQ(*node_of(*copy, "x").meta().get<std::string>("origin"), "input");
  EXPECT_EQ(*node_of(*copy, "output").meta().get<std::string>("out"), "note");
  EXPECT_EQ(node_of(*copy, "output").type(), "Dict");
  // Attributes are shared, and only those that are referred to.
  EXPECT_TRUE(copy->find_tensor("another_linear.weight").is_same(model->another_linear->weight));
  EXPECT_EQ(copy->find_submodule("sub_module_b"), nullptr);
}

TEST(Transformer, F57_without_preserve_it_loses_what_torch_fx_loses) {
  auto gm = affine_module();
  Node& add = node_of(*gm, "add");
  add.rename("my_add");
  add.set_type("Tensor");
  add.set_stack_trace("line 1");
  add.meta().set("note", "gone");
  auto plain = Transformer(*gm, {.preserve = false}).transform();
  EXPECT_EQ(names(plain->graph()), (Names{"x", "add", "mul", "output"}));
  const Node& made = node_of(*plain, "add");
  EXPECT_EQ(made.type(), "");
  EXPECT_EQ(made.stack_trace(), "line 1");
  EXPECT_FALSE(made.meta().contains("note"));
  EXPECT_EQ((*plain)(3).toInt(), 8);
}

TEST(Transformer, a_handler_may_emit_several_nodes_or_none) {
  struct Expand : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      if (target == "operator.mul") {  // x * 2 -> x + x
        return Transformer::call_function(Target::function("operator.add"), {args[0], args[0]}, {});
      }
      if (target == "operator.add") return args[0];  // leave out
      return Transformer::call_function(target, std::move(args), std::move(kwargs));
    }
  };
  auto gm = affine_module();
  auto made = Expand(*gm).transform();
  EXPECT_EQ(made->graph().size(), 3u);
  EXPECT_EQ((*made)(5).toInt(), 10);
  EXPECT_EQ((*gm)(5).toInt(), 12);
}

TEST(Transformer, constants_fold_through_handlers_that_compute) {
  struct Folding : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      for (const Value& arg : args)
        if (proxy_node(arg))
          return Transformer::call_function(target, std::move(args), std::move(kwargs));
      return Interpreter::call_function(target, std::move(args), std::move(kwargs));
    }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& three = graph->call_function("operator.add", {1, 2});
  graph->output(graph->call_function("operator.mul", {x, three}));
  GraphModule gm(graph);
  auto folded = Folding(gm).transform();
  EXPECT_EQ(folded->graph().size(), 3u);
  EXPECT_EQ(repr(node_of(*folded, "mul").args()), "(x, 3)");
}

TEST(Transformer, F_102_I_022_outputs_keep_their_structure) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(Argument::tuple({x, Argument::list({x, 1}), nullptr}));
  GraphModule gm(graph);
  EXPECT_EQ(repr(Transformer(gm).transform()->graph().output_node().args()),
            "((x, [x, 1], None),)");
  auto none = std::make_shared<Graph>();
  none->output(nullptr);
  GraphModule none_module(none);
  EXPECT_EQ(Transformer(none_module).transform()->graph().size(), 1u);
}

TEST(Transformer, tensors_and_missing_modules_are_refused_with_the_node) {
  struct Tensors : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target&, Values, KwValues) override { return torch::ones({2}); }
  };
  auto gm = affine_module();
  EXPECT_FX_ERROR(Tensors(*gm).transform(), RunError, kWrongType, "a graph cannot hold a Tensor");
  ParamModel model;
  auto with_module = param_module(model);
  with_module->delete_submodule("linear");
  EXPECT_FX_ERROR(Transformer(*with_module).transform(), RunError, kMissingAttr,
                  "While executing %linear");
}

TEST(Transformer, may_run_again) {
  auto gm = affine_module();
  Transformer transformer(*gm);
  auto first = transformer.transform();
  auto second = transformer.transform();
  EXPECT_NE(&first->graph(), &second->graph());
  EXPECT_EQ(first->graph().str(), second->graph().str());
  EXPECT_EQ((*first)(1).toInt(), 4);
}

}  // namespace
}  // namespace fx
