// The pass manager: order, verification, undoing, honesty, statistics. of the
// inventory.

#include "fx/passes/pass_manager.h"

#include <sstream>
#include <type_traits>

#include "fx/graph/module_snapshot.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

std::shared_ptr<GraphModule> add_module() {
  return symbolic_trace([](auto x) {
    auto y = relu(x);  // which operand comes first is the compiler's choice
    return neg(x) + y;
  });
}

// Replaces calls of one function by another, torch.fx style: nothing is returned.
Pass replace_calls(const std::string& name, const std::string& from, const std::string& to) {
  return Pass(name, [from, to](GraphModule& module) {
    for (Node& node : module.graph().nodes())
      if (node.calls(from)) node.set_target(to);
  });
}

std::vector<std::string> names_of(const PassManager& manager) {
  std::vector<std::string> out;
  for (const Pass& pass : manager.passes()) out.push_back(pass.name());
  return out;
}

PassManager with_order(const std::vector<std::string>& names,
                       const std::vector<std::pair<std::string, std::string>>& order) {
  PassManager manager;
  for (const std::string& name : names) manager.add_pass(Pass(name, [](GraphModule&) {}));
  for (const auto& [first, second] : order) manager.add_constraint(this_before_that(first, second));
  return manager;
}

// --- order
// ------------------------------------------------------------------------------------------

TEST(PassManager, P_019_A_6_R084_TopologicalSort) {
  const std::vector<std::string> passes = {"0", "1", "2", "3", "4", "5"};
  PassManager free = with_order(passes, {});
  free.solve_constraints();
  EXPECT_EQ(names_of(free), passes);
  PassManager golden =
      with_order(passes, {{"5", "0"}, {"5", "2"}, {"4", "0"}, {"4", "1"}, {"2", "3"}, {"3", "1"}});
  golden.solve_constraints();
  EXPECT_EQ(names_of(golden), (std::vector<std::string>{"4", "5", "0", "2", "3", "1"}));
  golden.validate_constraints();
}

TEST(PassManager, P_019_R084_Cycle) {
  PassManager manager = with_order({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"c", "a"}});
  const std::string wanted =
      "Circular dependency detected within the following passes: ['a', 'b', 'c']";
  EXPECT_FX_ERROR(manager.solve_constraints(), PassError, kPassCycle, wanted);
  const auto module = add_module();
  EXPECT_FX_ERROR(manager.run(*module), PassError, kPassCycle, wanted);
}

TEST(PassManager, P_015_P_019_R084_ConstraintsAreChecked) {
  const PassManager manager = with_order({"a", "b", "c"}, {{"c", "a"}});
  EXPECT_FX_ERROR(
      manager.validate_constraints(), PassError, kPassOrder,
      "pass schedule constraint violated. Expected c before a but found a at index 0 and c "
      "at index 2 in pass list.");
  PassManager several = with_order({"a", "b", "c"}, {});
  several.add_constraint(these_before_those({"b", "c"}, {"a"}));
  EXPECT_FX_ERROR(several.validate_constraints(), PassError, kPassOrder, "Expected b before a");
  several.solve_constraints();
  EXPECT_EQ(names_of(several), (std::vector<std::string>{"b", "c", "a"}));
}

TEST(PassManager, RunsInTheOrderOfTheConstraints) {
  std::string order;
  PassManager manager;
  for (const char* name : {"late", "early"})
    manager.add_pass(
        Pass(name, [&order, name](GraphModule&) { order += std::string(name) + " "; }));
  manager.add_constraint(this_before_that("early", "late"));
  manager.run(*add_module());
  EXPECT_EQ(order, "early late ");
}

// --- running
// ----------------------------------------------------------------------------------------

// passes that return nothing, run over and over until nothing changes.
TEST(PassManager, P_017_P_018_R084_Steps) {
  auto make = [] { return symbolic_trace([](auto x) { return x + 1; }); };
  // Each round goes one step further: add, mul, sub.
  auto passes = [] {
    return std::vector<Pass>{replace_calls("b", "operator.mul", "operator.sub"),
                             replace_calls("a", "operator.add", "operator.mul")};
  };
  const auto once = make();
  EXPECT_TRUE(PassManager(passes()).run(*once).changed);
  EXPECT_EQ(count_calls(once->graph(), "operator.mul"), 1u);
  const auto often = make();
  const PipelineResult result = PassManager(passes(), {.steps = 5}).run(*often);
  EXPECT_EQ(count_calls(often->graph(), "operator.sub"), 1u);
  EXPECT_EQ(result.passes.size(), 6u);  // the third round changes nothing
  EXPECT_EQ(result.passes.back().step, 2);
  const auto stable = make();
  PassManager(passes(), {.until_stable = true}).run(*stable);
  EXPECT_EQ(count_calls(stable->graph(), "operator.sub"), 1u);
}

TEST(PassManager, PassesThatNeverSettle) {
  const auto module = symbolic_trace([](auto x) { return x + 1; });
  PassManager manager(
      {replace_calls("a", "operator.add", "operator.mul"),
       replace_calls("b", "operator.mul", "operator.add"),
       Pass("flip", [](GraphModule& gm) { gm.graph().nodes().front().rename("y"); })},
      {.until_stable = true});
  const std::string before = to_text(module->graph());
  EXPECT_FX_ERROR(manager.run(*module), PassError, kPassNotStable,
                  "the passes ['a', 'b', 'flip'] still change the graph after 100 rounds");
  EXPECT_EQ(to_text(module->graph()), before);
}

TEST(PassManager, RecompilesOnce) {
  const auto module = symbolic_trace([](auto x) { return neg(x); });
  run_passes(*module, "dce");
  EXPECT_FALSE(module->needs_recompile());
  PassManager manager({replace_calls("a", "torch.neg", "torch.relu")});
  manager.run(*module);
  EXPECT_FALSE(module->needs_recompile());
  EXPECT_VALUES_EQ((*module)(torch::tensor({-1.0, 2.0})), torch::tensor({0.0, 2.0}));
  PassManager lazy({replace_calls("b", "torch.relu", "torch.neg")}, {.recompile = false});
  lazy.run(*module);
  EXPECT_TRUE(module->needs_recompile());
}

TEST(PassManager, StatisticsAndHooks) {
  const auto module = add_module();
  {
    auto at = module->graph().inserting_before(module->graph().output_node());
    module->graph().call_function("torch.exp", {module->graph().nodes().front()});
  }
  std::vector<std::string> seen;
  PassManager manager("dce,cse,dce");
  int index = 0;
  manager.add_before_hook([&](const Pass& pass, GraphModule&) {
    seen.push_back("before " + pass.name());
    return ++index != 2;  // leave out the second one
  });
  manager.add_after_hook([&](const PassStatistics& statistics, GraphModule&) {
    seen.push_back("after " + statistics.name);
  });
  std::ostringstream printed;
  manager.print_after(printed);
  const PipelineResult result = manager.run(*module);
  ASSERT_EQ(result.passes.size(), 3u);
  EXPECT_TRUE(result.passes[0].changed);
  EXPECT_EQ(result.passes[0].rewrites, 1);
  EXPECT_EQ(result.passes[0].nodes_before, 6u);
  EXPECT_EQ(result.passes[0].nodes_after, 5u);
  EXPECT_GE(result.passes[0].seconds, 0.0);
  EXPECT_TRUE(result.passes[1].skipped);
  EXPECT_FALSE(result.passes[2].changed);
  EXPECT_EQ(seen, (std::vector<std::string>{"before dce", "after dce", "before cse", "after cse",
                                            "before dce", "after dce"}));
  EXPECT_EQ(printed.str(), "# after dce\n" + module->graph().str() + "\n");
  EXPECT_THAT(result.to_string(),
              testing::MatchesRegex("pass  changed  rewrites  nodes before  after       ms\n"
                                    "dce   yes             1             6      5 .*\n"
                                    "cse   skipped         0             5      5 .*\n"
                                    "dce   no              0             5      5 .*\n"));
}

// --- verification
// -----------------------------------------------------------------------------------

// All that a module is made of, to compare byte by byte.
std::string everything(const GraphModule& module) {
  std::string out = to_text(module.graph(), {.meta = true}) + module.class_name();
  for (const Node& node : module.graph().nodes()) {
    out += std::to_string(reinterpret_cast<std::uintptr_t>(&node)) + ":";
    for (const Node* user : node.users()) out += std::string(user->name()) + ",";
  }
  for (const auto& item : module.named_parameters())
    out += item.key() +
           std::to_string(reinterpret_cast<std::uintptr_t>(item.value().unsafeGetTensorImpl()));
  for (const auto& item : module.named_buffers())
    out += item.key() +
           std::to_string(reinterpret_cast<std::uintptr_t>(item.value().unsafeGetTensorImpl()));
  for (const auto& item : module.named_modules())
    if (item.key() != "")
      out += item.key() + std::to_string(reinterpret_cast<std::uintptr_t>(item.value().get()));
  return out;
}

// Edits everything there is to edit.
void edit_everything(GraphModule& module) {
  Graph& graph = module.graph();
  Node& x = graph.nodes().front();
  for (Node& node : graph.nodes()) node.meta().set("note", "edited");
  Node& output = graph.output_node();
  {
    const auto guard = graph.inserting_before(output);
    Node& made = graph.call_function("torch.exp", {output.arg(0)});
    output.set_args({made});
  }
  for (Node& node : graph.nodes())
    if (node.calls("torch.neg")) {
      node.replace_all_uses_with(x);
      graph.erase_node(node);
    }
  x.rename("renamed");
  module.set_parameter("new.deep.parameter", torch::ones(2));
  module.set_buffer("state", torch::ones(3));
  module.set_constant("constant", torch::ones(4));
  module.set_submodule("child", std::make_shared<torch::nn::ReLUImpl>());
  module.set_class_name("Other");
  module.meta().set("note", "edited");
}

std::shared_ptr<GraphModule> rich_module() {
  auto module = add_module();
  module->set_buffer("state", torch::zeros(3));
  module->set_submodule("child", std::make_shared<torch::nn::TanhImpl>());
  module->graph().nodes().front().meta().set("note", "original");
  module->recompile();
  return module;
}

TEST(PassManager, P_021_AThrowingPassLeavesNoTrace) {
  const auto module = rich_module();
  const std::string before = everything(*module);
  const std::vector<Node*> nodes = module->graph().nodes().to_vector();
  PassManager manager({Pass("first", [](GraphModule& gm) { edit_everything(gm); }),
                       Pass("bad", [](GraphModule& gm) {
                         gm.graph().output_node().set_args({});
                         throw std::runtime_error("out of ideas");
                       })});
  try {
    manager.run(*module);
    FAIL();
  } catch (const PassError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPassFailed);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("An error occurred when running the 'bad' pass after "
                                   "the following passes: ['first']\nout of ideas"));
    EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
  }
  EXPECT_EQ(everything(*module), before);
  EXPECT_EQ(module->graph().nodes().to_vector(), nodes);
  EXPECT_FALSE(module->needs_recompile());
  EXPECT_EQ(module->attr_kind("constant"), GraphOwner::AttrKind::kMissing);
  EXPECT_EQ(module->attr_kind("new"), GraphOwner::AttrKind::kMissing);
  EXPECT_TRUE(module->meta().empty());
  module->graph().lint({.strict = true});
  // It can be edited and run as before.
  EXPECT_VALUES_EQ((*module)(torch::tensor({-1.0, 2.0})), torch::tensor({1.0, 0.0}));
  EXPECT_TRUE(run_passes(*module, "dce").passes[0].nodes_before == nodes.size());
  replace_calls("c", "torch.neg", "torch.relu")(*module);
  module->recompile();
  EXPECT_VALUES_EQ((*module)(torch::tensor({-1.0, 2.0})), torch::tensor({0.0, 4.0}));
}

TEST(PassManager, APassThatBreaksTheGraph) {
  const auto module = rich_module();
  const std::string before = everything(*module);
  auto run = [&](auto function) { PassManager({Pass("breaker", function)}).run(*module); };
  EXPECT_FX_ERROR(
      run([](GraphModule& gm) {
        gm.graph().nodes().front().prepend(*gm.graph().nodes().front().next());
      }),
      PassError, kPassBrokeGraph,
      "'breaker' pass after the following passes: []\nArgument 'x' of Node 'relu' was used "
      "before it has been defined!");
  EXPECT_EQ(everything(*module), before);
  EXPECT_FX_ERROR(run([](GraphModule& gm) {
                    gm.graph().nodes().back().prev()->append(gm.graph().placeholder("late"));
                  }),
                  PassError, kPassBrokeGraph, "placeholder");
  EXPECT_EQ(everything(*module), before);
  EXPECT_FX_ERROR(run([](GraphModule& gm) {
                    gm.delete_tensor("state");
                    gm.graph().get_attr("state");
                  }),
                  PassError, kPassFailed, "get_attr of 'state'");
  EXPECT_EQ(everything(*module), before);
}

TEST(PassManager, ABrokenGraphIsRefusedAtOnce) {
  const auto module = add_module();
  module->graph().nodes().front().prepend(*module->graph().nodes().front().next());
  EXPECT_FX_ERROR(run_passes(*module, "dce"), LintError, kLintOrder,
                  "was used before it has been defined");
  // A graph that was loose to begin with may stay so.
  auto graph = std::make_shared<Graph>();
  graph->call_function("aten::neg", {graph->placeholder("x")});
  GraphModule open(graph);
  EXPECT_TRUE(run_passes(open, "dce").changed);
}

// F53: `changed` says what is true.
TEST(PassManager, F53_HonestChanged) {
  auto run = [](auto function, bool check) {
    const auto module = rich_module();
    PassManager manager({Pass("liar", function)}, {.check_claims = check});
    return manager.run(*module);
  };
  auto silent = [](GraphModule& gm) {
    edit_everything(gm);
    return false;
  };
  auto boaster = [](GraphModule&) { return true; };
  EXPECT_FX_ERROR(run(silent, true), PassError, kDishonestPass,
                  "it reported no change but changed the module");
  EXPECT_FX_ERROR(run(boaster, true), PassError, kDishonestPass,
                  "it reported a change but changed nothing");
  // Without the check the manager tells the truth all the same.
  EXPECT_TRUE(run(silent, false).changed);
  EXPECT_TRUE(run(silent, false).passes[0].changed);
  EXPECT_FALSE(run(boaster, false).changed);
  // Edits that come to nothing are no change; neither is metadata.
  EXPECT_FALSE(run(
                   [](GraphModule& gm) {
                     Node& node = *gm.graph().nodes().front().next();
                     node.set_args(Args(node.args().begin(), node.args().end()));
                     node.meta().set("note", "x");
                   },
                   true)
                   .changed);
  // Attributes alone are one.
  EXPECT_TRUE(run(
                  [](GraphModule& gm) {
                    gm.set_buffer("state", torch::ones(3));
                    return true;
                  },
                  true)
                  .changed);
  EXPECT_TRUE(run(
                  [](GraphModule& gm) {
                    gm.set_constant("c", torch::ones(3));
                    return true;
                  },
                  true)
                  .changed);
  EXPECT_TRUE(run(
                  [](GraphModule& gm) {
                    gm.graph().nodes().front().rename("y");
                    return true;
                  },
                  true)
                  .changed);
}

// checks of the user; they take the module and nothing else.
static_assert(!std::is_constructible_v<PassManager::Check, void (*)(const GraphModule&, int)>);
static_assert(!std::is_constructible_v<PassManager::Check, void (*)()>);

TEST(PassManager, P_020_P_021_R084_Checks) {
  const auto module = add_module();
  PassManager manager({replace_calls("a", "torch.neg", "torch.exp")});
  int checked = 0;
  manager.add_check([&](const GraphModule& gm) {
    ++checked;
    if (count_calls(gm.graph(), "torch.exp") > 0) throw std::invalid_argument("no exp, please");
  });
  EXPECT_FX_ERROR(manager.run(*module), PassError, kPassFailed,
                  "'a' pass after the following passes: []\nno exp, please");
  EXPECT_EQ(checked, 2);
  EXPECT_EQ(count_calls(module->graph(), "torch.exp"), 0u);
}

// S1-81: results before and after are compared on inputs.
TEST(PassManager, S1_81_VerifiedResults) {
  const auto module = add_module();
  const Values inputs = {torch::tensor({-1.0, 2.0})};
  PassManager wrong({replace_calls("wrong", "torch.neg", "torch.exp")},
                    {.example_inputs = inputs, .verify_results = true});
  EXPECT_FX_ERROR(wrong.run(*module), PassError, kPassChangedResult, "'wrong' pass");
  PassManager broken({replace_calls("broken", "torch.neg", "torch.no_such_function")},
                     {.example_inputs = inputs, .verify_results = true});
  EXPECT_FX_ERROR(broken.run(*module), PassError, kPassChangedResult, "no_such_function");
  EXPECT_EQ(count_calls(module->graph(), "torch.neg"), 1u);
  PassManager right({replace_calls("right", "torch.neg", "torch.negative")},
                    {.example_inputs = inputs, .verify_results = true});
  EXPECT_TRUE(right.run(*module).changed);
  PassManager no_inputs(std::vector<Pass>{}, {.verify_results = true});
  EXPECT_FX_ERROR(no_inputs.run(*module), PassError, kBadPassOption,
                  "verify_results needs example_inputs");
}

// S1-10: a pass that edits nothing but arguments.
TEST(PassManager, S1_10_APassOverArguments) {
  const auto module = symbolic_trace([](auto x) { return x * 2 * 3; });
  PassManager manager(
      {Pass("fold_mul",
            [](GraphModule& gm) {
              std::int64_t folded = 0;
              for (Node& node : gm.graph().nodes()) {
                Node* inner = node.calls("operator.mul") ? node.arg(0).node_or_null() : nullptr;
                if (!inner || !inner->calls("operator.mul") || inner->num_users() != 1) continue;
                node.update_arg(1, node.arg(1).to_int() * inner->arg(1).to_int());
                node.update_arg(0, inner->arg(0));
                ++folded;
              }
              return PassResult{.changed = folded > 0, .rewrites = folded};
            }),
       Pass(find_pass("dce"))},
      {.example_inputs = Values{torch::randn(3)}, .verify_results = true});
  EXPECT_TRUE(manager.run(*module).changed);
  EXPECT_EQ(count_calls(module->graph(), "operator.mul"), 1u);
}

// managers do not share state.
TEST(PassManager, P_047_R095_TwoManagers) {
  PassManager first("dce");
  PassManager second("cse");
  first.add_pass(Pass(find_pass("cse")));
  first.add_constraint(this_before_that("cse", "dce"));
  const auto module = add_module();
  first.run(*module);
  second.run(*module);
  EXPECT_EQ(names_of(first), (std::vector<std::string>{"cse", "dce"}));
  EXPECT_EQ(names_of(second), std::vector<std::string>{"cse"});
}

// Nested GraphModules belong to the module: their edits are undone too.
TEST(PassManager, UndoesNestedGraphs) {
  auto inner = symbolic_trace([](auto x) {
    auto unused = exp(x);
    return relu(x);
  });
  auto module = parse_module(
      "%x = placeholder[target=x]\n%m = call_module[target=inner](args = (%x,))\nreturn %m\n");
  module->set_submodule("inner", inner);
  module->recompile();
  const std::string before = to_text(inner->graph());
  PassManager manager("dce");
  manager.add_pass(Pass("bad", [](GraphModule&) { throw std::runtime_error("no"); }));
  EXPECT_THROW(manager.run(*module), PassError);
  EXPECT_EQ(to_text(inner->graph()), before);
  const PipelineResult result = run_passes(*module, "dce");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.passes[0].rewrites, 1);
  EXPECT_EQ(count_calls(inner->graph(), "torch.exp"), 0u);
  EXPECT_FALSE(inner->needs_recompile());
}

}  // namespace
}  // namespace fx
