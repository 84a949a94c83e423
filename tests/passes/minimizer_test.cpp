#include "fx/passes/minimizer.h"

#include <set>

#include "fx/base/error.h"
#include "fx/interpret/interpreter.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// x -> n0 = x + 1 -> n1 = n0 + 1 -> ... with operator.add.
std::shared_ptr<GraphModule> chain_of(int count) {
  auto graph = std::make_shared<Graph>();
  Node* value = &graph->placeholder("x");
  for (int i = 0; i < count; ++i)
    value = &graph->create_node(Opcode::kCallFunction, Target::function("operator.add"),
                                {*value, 1}, {}, "n" + std::to_string(i));
  graph->output(*value);
  return std::make_shared<GraphModule>(graph);
}

std::vector<std::string> names_of(const std::vector<Node*>& nodes) {
  std::vector<std::string> out;
  for (const Node* node : nodes) out.emplace_back(node->name());
  return out;
}

using Names = std::vector<std::string>;

// A backend that computes operators of one kind wrongly.
RunPart wrong_for(std::string target) {
  return [target](GraphModule& part, const Values& inputs) {
    for (Node& node : part.graph().nodes())
      if (node.op() == Opcode::kCallFunction && node.target() == target)
        node.set_target("aten::neg");
    return Interpreter(part).run(inputs);
  };
}

// A backend that is wrong by one when a part holds all of these nodes together.
RunPart wrong_together(std::set<std::string> names) {
  return [names](GraphModule& part, const Values& inputs) -> Value {
    const at::Tensor result = Interpreter(part).run(inputs).toTensor();
    for (const std::string& name : names) {
      const Node* node = part.graph().find_node(name);
      if (!node || node->is_placeholder()) return result;
    }
    return names.empty() ? result : result + 1;
  };
}

std::shared_ptr<GraphModule> branches() {
  return parse_module(R"(
%x = placeholder[target=x]
%sin = call_function[target=aten::sin](args = (%x,))
%cos = call_function[target=aten::cos](args = (%x,))
%relu = call_function[target=aten::relu](args = (%sin,))
%add = call_function[target=aten::add.Tensor](args = (%relu, %cos))
%exp = call_function[target=aten::exp](args = (%add,))
%relu_1 = call_function[target=aten::relu](args = (%exp,))
return %relu_1
)");
}

TEST(Minimizer, P_007_P_008_each_way_finds_the_wrong_operator) {
  const Value x = torch::randn({3});
  for (const TraverseMethod method :
       {TraverseMethod::kSequential, TraverseMethod::kBinary, TraverseMethod::kAccumulate}) {
    auto gm = branches();
    Minimizer minimizer(*gm, {x}, run_part, wrong_for("aten::cos"), {.method = method});
    EXPECT_EQ(names_of(minimizer.minimize()), Names{"cos"});
    EXPECT_FALSE(minimizer.reports().empty());
    EXPECT_GT(minimizer.iterations(), 0);
  }
  // All operators that are wrong, in graph order.
  for (const TraverseMethod method : {TraverseMethod::kSequential, TraverseMethod::kBinary}) {
    auto gm = branches();
    Minimizer minimizer(*gm, {Value(torch::ones({3}))}, run_part, wrong_for("aten::exp"),
                        {.method = method, .find_all = true});
    EXPECT_EQ(names_of(minimizer.minimize()), Names{"exp"});
  }
  auto gm = branches();
  Minimizer all(*gm, {Value(torch::ones({3}))}, run_part, wrong_for("aten::relu"),
                {.find_all = true});
  EXPECT_EQ(names_of(all.minimize()), (Names{"relu", "relu_1"}));
  EXPECT_EQ(names_of(all.minimize("cos", "exp")), (Names{"relu"}));
  // Two ways that agree.
  Minimizer none(*gm, {x}, run_part, run_part, {.method = TraverseMethod::kBinary});
  EXPECT_TRUE(none.minimize().empty());
  EXPECT_EQ(none.iterations(), 1);
  EXPECT_EQ(none.results().at("relu_1"), "");
}

TEST(Minimizer, P_008_binary_search_takes_few_runs) {
  auto gm = chain_of(64);
  Minimizer minimizer(*gm, {Value(torch::zeros({2}))}, run_part, wrong_together({"n37"}),
                      {.method = TraverseMethod::kBinary});
  EXPECT_EQ(names_of(minimizer.minimize()), Names{"n37"});
  EXPECT_LE(minimizer.iterations(), 13);  // 1 + two for each halving
}

TEST(Minimizer, P_008_skip_and_defined) {
  auto gm = chain_of(6);
  const Values inputs{Value(torch::zeros({2}))};
  Minimizer skip(*gm, inputs, run_part, wrong_together({"n4"}),
                 {.method = TraverseMethod::kSkip, .skip = {"n2"}});
  EXPECT_EQ(names_of(skip.minimize()), (Names{"n3", "n4", "n5"}));
  EXPECT_EQ(skip.iterations(), 2);  // in front of n2 and behind it
  Minimizer skipped(*gm, inputs, run_part, wrong_together({"n4"}),
                    {.method = TraverseMethod::kSkip, .skip = {"n4"}});
  EXPECT_TRUE(skipped.minimize().empty());
  Minimizer defined(*gm, inputs, run_part, wrong_together({"n1", "n2"}),
                    {.method = TraverseMethod::kDefined});
  EXPECT_EQ(names_of(defined.minimize("n1", "n3")), (Names{"n1", "n2", "n3"}));
  EXPECT_TRUE(defined.minimize("n2", "n3").empty());
}

TEST(Minimizer, R_081_block_search) {
  auto gm = chain_of(10);
  auto names = [](int first, int last) {
    Names out;
    for (int i = first; i <= last; ++i) out.push_back("n" + std::to_string(i));
    return out;
  };
  auto found = [&](const Names& culprits, std::optional<bool> find_last_node = {}) {
    Minimizer minimizer(*gm, {Value(torch::zeros({2}))}, run_part,
                        wrong_together({culprits.begin(), culprits.end()}),
                        {.method = TraverseMethod::kBlock, .find_last_node = find_last_node});
    const Names result = names_of(minimizer.minimize());
    EXPECT_LE(minimizer.iterations(), 10);
    return result;
  };
  EXPECT_EQ(found({}), Names{});                              // no discrepancy
  EXPECT_EQ(found(names(0, 9)), names(0, 9));                 // all
  EXPECT_EQ(found({"n0"}), Names{"n0"});                      // first
  EXPECT_EQ(found({"n9"}), Names{"n9"});                      // last
  EXPECT_EQ(found({"n5"}), Names{"n5"});                      // middle
  EXPECT_EQ(found({"n4", "n6"}), (Names{"n4", "n5", "n6"}));  // a block
  EXPECT_EQ(found(names(6, 9)), names(6, 9));                 // contiguous end
  EXPECT_EQ(found(names(0, 3)), names(0, 3));                 // contiguous beginning
  EXPECT_EQ(found({"n4", "n6"}, true), names(0, 6));          // one end alone
  EXPECT_EQ(found({"n4", "n6"}, false), names(4, 9));
}

TEST(Minimizer, P_009_errors_and_failing_backends) {
  auto gm = branches();
  const Value x = torch::randn({3});
  try {
    Minimizer(*gm, {x, x}, run_part, run_part);
    FAIL();
  } catch (const PassError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("Placeholder count (1) does not match sample_input count (2)"));
  }
  try {
    traverse_method("zigzag");
    FAIL();
  } catch (const PassError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Unknown traverse method zigzag!"));
  }
  EXPECT_EQ(traverse_method("block"), TraverseMethod::kBlock);
  auto throws = [](GraphModule& part, const Values& inputs) -> Value {
    if (!part.graph().find_calls("aten::exp").empty()) throw std::runtime_error("no exp here");
    return run_part(part, inputs);
  };
  Minimizer minimizer(*gm, {x}, run_part, throws, {.method = TraverseMethod::kBinary});
  EXPECT_EQ(names_of(minimizer.minimize()), Names{"exp"});
  const PartComparison fails = minimizer.run_nodes("exp", "exp");
  EXPECT_EQ(fails.outcome, PartComparison::Outcome::kFails);
  EXPECT_EQ(fails.reason, "Exception raised when running run_b: no exp here");
  EXPECT_THROW(minimizer.minimize("nothing"), PassError);
  EXPECT_THROW(minimizer.minimize("x"), PassError);  // an input is no call
  Minimizer skip(*gm, {x}, run_part, run_part,
                 {.method = TraverseMethod::kSkip, .skip = {"nothing"}});
  EXPECT_THROW(skip.minimize(), PassError);
  // A path leaves the part and comes back.
  Graph& graph = gm->graph();
  EXPECT_THROW(minimizer.run_and_compare({graph.find_node("sin"), graph.find_node("add")}),
               PassError);
}

TEST(Minimizer, P_008_what_is_compared) {
  auto gm = branches();
  const Value x = torch::randn({3});
  Minimizer minimizer(*gm, {x}, run_part, wrong_for("aten::cos"));
  // Without return_intermediate what the part returns, with it all of its nodes.
  EXPECT_EQ(minimizer.run_nodes("sin", "relu").outputs, (Names{"relu", "cos"}));
  Minimizer all(*gm, {x}, run_part, run_part, {.return_intermediate = true});
  EXPECT_EQ(all.run_nodes("sin", "relu").outputs, (Names{"sin", "cos", "relu"}));
  // Of sin, cos and relu only the last is looked at, unless all outputs are.
  Minimizer last(*gm, {x}, run_part, wrong_for("aten::cos"),
                 {.method = TraverseMethod::kDefined, .all_outputs = false});
  EXPECT_TRUE(last.minimize("sin", "relu").empty());
  Minimizer outputs(*gm, {x}, run_part, wrong_for("aten::cos"),
                    {.method = TraverseMethod::kDefined});
  EXPECT_EQ(names_of(outputs.minimize("sin", "relu")), (Names{"sin", "cos", "relu"}));
  // An own comparison, excluded nodes, and the parts that differ.
  Names exported;
  Minimizer own(*gm, {x}, run_part, wrong_for("aten::cos"),
                {.find_all = true,
                 .exclude = [](const Node& node) { return node.name() == "exp"; },
                 .compare = [](const Value&, const Value&) { return std::string("unlike"); },
                 .export_part =
                     [&](const std::string& name, const GraphModule& part, const Values& inputs) {
                       exported.push_back(name);
                       EXPECT_EQ(part.graph().placeholders().size(), inputs.size());
                     }});
  EXPECT_EQ(names_of(own.minimize()), (Names{"sin", "cos", "relu", "add", "relu_1"}));
  EXPECT_EQ(exported, (Names{"sin", "cos", "relu", "add", "relu_1"}));
  EXPECT_EQ(own.results().at("cos"), "unlike");
}

// Errors that no part shows by itself, since each is within the tolerance.
TEST(Minimizer, P_008_errors_add_up) {
  auto gm = chain_of(8);
  auto a_bit_off = [](GraphModule& part, const Values& inputs) -> Value {
    return run_part(part, inputs).toTensor() + 0.01;
  };
  const CompareOptions tolerance{.rtol = 0, .atol = 0.035};
  Minimizer alone(*gm, {Value(torch::zeros({2}))}, run_part, a_bit_off, {.tolerance = tolerance});
  EXPECT_TRUE(alone.minimize().empty());
  Minimizer adding(*gm, {Value(torch::zeros({2}))}, run_part, a_bit_off,
                   {.accumulate_error = true, .tolerance = tolerance});
  EXPECT_EQ(names_of(adding.minimize()), Names{"n3"});  // 0.04 off
}

// Parts find memory as it is in the model, and leave no trace: both ways see the same.
TEST(Minimizer, effects_and_state) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%copy = call_function[target=aten::clone](args = (%x,))
%view = call_function[target=aten::select.int](args = (%copy, 0, 0))
%fill = call_function[target=aten::fill_.Scalar](args = (%view, 7.0))
%sin = call_function[target=aten::sin](args = (%copy,))
%noise = call_function[target=aten::rand_like](args = (%sin,))
%add = call_function[target=aten::add_.Tensor](args = (%x, 1))
%sum_1 = call_function[target=aten::add.Tensor](args = (%noise, %x))
%out = call_function[target=aten::mul.Tensor](args = (%sum_1, %sin))
return %out
)");
  const at::Tensor x = torch::randn({3, 3});
  const at::Tensor before = x.clone();
  for (const TraverseMethod method :
       {TraverseMethod::kSequential, TraverseMethod::kBinary, TraverseMethod::kAccumulate,
        TraverseMethod::kBlock, TraverseMethod::kDefined}) {
    Minimizer agree(*gm, {Value(x)}, run_part, run_part, {.method = method});
    EXPECT_TRUE(agree.minimize().empty()) << agree.reports().back();
    Minimizer wrong(*gm, {Value(x)}, run_part, wrong_for("aten::sin"), {.method = method});
    const Names names = names_of(wrong.minimize());
    if (method != TraverseMethod::kDefined) {
      EXPECT_EQ(names, Names{"sin"});
    }
  }
  EXPECT_TRUE(torch::equal(x, before));
  // sin reads what fill_ wrote: it cannot be taken with clone and without fill_.
  Graph& graph = gm->graph();
  Minimizer minimizer(*gm, {Value(x)}, run_part, run_part);
  EXPECT_THROW(minimizer.run_and_compare({graph.find_node("copy"), graph.find_node("sin")}),
               PassError);
}

TEST(Minimizer, buffers_stay) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4),
                              torch::nn::ReLU());
  auto gm = symbolic_trace(*model);  // in training: the statistics are written
  const auto state = gm->state_dict();
  std::vector<at::Tensor> before;
  for (const auto& [name, tensor] : state) before.push_back(tensor.detach().clone());
  Minimizer minimizer(*gm, {Value(torch::randn({5, 4}))}, run_part,
                      [](GraphModule& part, const Values& inputs) -> Value {
                        const at::Tensor result = run_part(part, inputs).toTensor();
                        for (const Node& node : part.graph().nodes())
                          if (node.op() == Opcode::kCallModule && node.target() == "1")
                            return result * 2;
                        return result;
                      });
  const std::vector<Node*> culprits = minimizer.minimize();
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0]->target().str(), "1");
  for (std::size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(torch::equal(state[i].second, before[i])) << state[i].first;
}

// Nodes that pass a number are run together.
TEST(Minimizer, P_007_fused_nodes) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%sin = call_function[target=aten::sin](args = (%x,))
%size = call_method[target=size](args = (%sin, 0))
%twice = call_function[target=operator.mul](args = (%size, 2))
%add = call_function[target=aten::add.Tensor](args = (%sin, %twice))
return %add
)");
  Minimizer minimizer(*gm, {Value(torch::randn({3}))}, run_part, run_part);
  const PartComparison result = minimizer.run_nodes("twice", "twice");
  EXPECT_EQ(result.outputs, Names{"add"});
  std::vector<bool> accepted(gm->graph().id_bound(), true);
  EXPECT_EQ(names_of(*find_fusions(gm->graph(), accepted).find(*gm->graph().find_node("size"))),
            (Names{"size", "twice", "add"}));
}

}  // namespace
}  // namespace fx
