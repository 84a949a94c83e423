#include "fx/passes/pass_wrappers.h"

#include "fx/passes/pass_manager.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using Names = std::vector<std::string>;

std::shared_ptr<GraphModule> sums(int count) {
  return symbolic_trace([count](auto x) {
    for (int i = 0; i < count; ++i) x = x + 1;
    return x;
  });
}

// Makes one product of a sum; whether there was a sum left.
PassResult one_step(GraphModule& module) {
  for (Node& node : module.graph().nodes())
    if (node.calls("operator.add")) {
      node.set_target("operator.mul");
      return {.changed = true, .rewrites = 1};
    }
  return {};
}

Names names_of(const std::vector<Pass>& passes) {
  Names out;
  for (const Pass& pass : passes) out.push_back(pass.name());
  return out;
}

Pass nothing(const std::string& name) {
  return Pass(name, [](GraphModule&) { return PassResult(); });
}

TEST(PassWrappers, P_015_loop_pass_by_number) {
  const auto module = sums(5);
  const Pass loop = loop_pass(Pass("step", one_step), 3);
  EXPECT_EQ(loop.name(), "step");
  const PipelineResult result = PassManager({loop}, {.check_claims = true}).run(*module);
  EXPECT_EQ(result.passes[0].rewrites, 3);
  EXPECT_EQ(count_calls(module->graph(), "operator.mul"), 3u);
  EXPECT_FX_ERROR(loop_pass(Pass("step", one_step), 0), PassError, kBadPassOption,
                  "loop_pass must be given positive int n_iter, found 0");
}

TEST(PassWrappers, P_015_loop_pass_by_predicate) {
  const auto module = sums(5);
  const Pass loop = loop_pass(Pass("step", one_step), [](const GraphModule& gm) {
    return count_calls(gm.graph(), "operator.add") > 1;
  });
  EXPECT_TRUE(PassManager({loop}, {.check_claims = true}).run(*module).changed);
  EXPECT_EQ(count_calls(module->graph(), "operator.add"), 1u);
  EXPECT_FALSE(PassManager({loop}, {.check_claims = true}).run(*module).changed);
}

TEST(PassWrappers, P_015_log_hook_and_inplace_wrapper) {
  Names lines;
  auto log = [&](const std::string& line) { lines.push_back(line); };
  const auto module = sums(2);
  PassManager manager({log_hook(Pass("step", one_step), log),
                       log_hook(Pass(find_pass("constant_fold")), log),
                       log_hook(inplace_wrapper("edit",
                                                [](GraphModule& gm) {
                                                  one_step(gm);
                                                  return 17;  // of no meaning
                                                }),
                                log)});
  EXPECT_TRUE(manager.run(*module).changed);
  EXPECT_EQ(lines, (Names{"Ran pass step: changed, 1 rewrites",
                          "Ran pass constant_fold: unchanged, 0 rewrites", "Ran pass edit"}));
  EXPECT_EQ(count_calls(module->graph(), "operator.mul"), 2u);
}

// Constraints see through the wrappers.
TEST(PassWrappers, P_015_constraints_on_wrapped_passes) {
  PassManager manager({loop_pass(nothing("b"), 3), loop_pass(nothing("a"), 5)});
  manager.add_constraint(these_before_those({"a"}, {"b"}));
  EXPECT_FX_ERROR(manager.validate_constraints(), PassError, kPassOrder, "Expected a before b");
}

TEST(PassWrappers, P_014_P_047_a_manager_is_built_and_edited) {
  PassManager manager({nothing("a"), nothing("b"), nothing("c")});
  manager.add_pass(nothing("d"));
  manager.add_constraint(this_before_that("a", "d"));
  manager.validate_constraints();
  EXPECT_EQ(names_of(manager.passes()), (Names{"a", "b", "c", "d"}));
  const std::vector<Pass> fewer = remove_pass(manager.passes(), {"a", "c", "missing"});
  EXPECT_EQ(names_of(fewer), (Names{"b", "d"}));
  const std::vector<Pass> other = replace_pass(manager.passes(), "b", nothing("new"));
  EXPECT_EQ(names_of(other), (Names{"a", "new", "c", "d"}));
  EXPECT_EQ(names_of(manager.passes()), (Names{"a", "b", "c", "d"}));  // managers share nothing
  PassManager wrong({nothing("d"), nothing("a")});
  wrong.add_constraint(this_before_that("a", "d"));
  EXPECT_FX_ERROR(wrong.validate_constraints(), PassError, kPassOrder, "Expected a before d");
}

class CountedPass : public PassBase {
 public:
  Names calls;
  bool breaks_promise = false;

 protected:
  PassResult call(GraphModule& module) override {
    calls.emplace_back("call");
    return one_step(module);
  }
  void require(const GraphModule& module) const override {
    const_cast<CountedPass*>(this)->calls.emplace_back("requires");
    if (count_calls(module.graph(), "operator.add") == 0)
      throw std::invalid_argument("there is no sum");
  }
  void ensures(const GraphModule&) const override {
    const_cast<CountedPass*>(this)->calls.emplace_back("ensures");
    if (breaks_promise) throw std::logic_error("not done");
  }
};

TEST(PassBase, P_016_requirecall_ensures) {
  const auto module = sums(1);
  auto pass = std::make_shared<CountedPass>();
  const PassResult result = (*pass)(*module);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.rewrites, 1);
  EXPECT_EQ(pass->calls, (Names{"requires", "call", "ensures"}));
  pass->calls.clear();
  EXPECT_THROW((*pass)(*module), std::invalid_argument);
  EXPECT_EQ(pass->calls, Names{"requires"});
  // In a manager, which undoes what a broken promise left.
  const auto other = sums(1);
  pass->breaks_promise = true;
  PassManager manager({as_pass("counted", pass)});
  EXPECT_FX_ERROR(manager.run(*other), PassError, kPassFailed, "not done");
  EXPECT_EQ(count_calls(other->graph(), "operator.add"), 1u);
  pass->breaks_promise = false;
  EXPECT_TRUE(manager.run(*other).changed);
}

}  // namespace
}  // namespace fx
