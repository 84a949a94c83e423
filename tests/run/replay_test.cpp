#include "fx/run/replay.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "fx/graph/module_kernel.h"
#include "fx/graph/module_types.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<GraphModule> module_of(std::shared_ptr<Graph> graph) {
  return std::make_shared<GraphModule>(std::move(graph));
}

// exp(sin(... x)), n operators.
std::shared_ptr<GraphModule> chain(int length) {
  auto graph = std::make_shared<Graph>();
  Node* last = &graph->placeholder("x");
  for (int i = 0; i < length; ++i)
    last = &graph->call_function(i % 2 ? "aten::sin" : "aten::neg", {*last});
  graph->output(*last);
  return module_of(graph);
}

void expect_same(const Value& found, const Value& wanted) {
  ASSERT_EQ(found.isTensor(), wanted.isTensor());
  if (!found.isTensor()) {
    const Values a = elements(found), b = elements(wanted);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i]);
    return;
  }
  const at::Tensor a = found.toTensor(), b = wanted.toTensor();
  EXPECT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_EQ(a.sizes(), b.sizes());
  EXPECT_EQ(a.strides(), b.strides());
  EXPECT_TRUE(at::equal(a, b)) << a << b;
}

// Calls it several times with inputs of these sizes, keeps all results, and compares them at the
// end with the Interpreter's.
void expect_replays(const std::shared_ptr<GraphModule>& module,
                    const std::vector<std::vector<std::int64_t>>& sizes, std::size_t static_steps) {
  torch::NoGradGuard no_grad;
  const Replay replay(module);
  std::vector<Values> inputs;
  Values results;
  for (int call = 0; call < 5; ++call) {
    Values values;
    for (const auto& size : sizes) values.emplace_back(torch::randn(size));
    inputs.push_back(values);
    results.push_back(replay.run(values));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect_same(results[i], Interpreter(*module).run(inputs[i]));
  const Replay::Statistics s = replay.statistics();
  EXPECT_EQ(s.recorded, 1u);
  EXPECT_EQ(s.left, 0u);
  EXPECT_EQ(s.frames_lost, 0u);
  EXPECT_EQ(s.replays, static_steps > 0 ? 4u : 0u);
  EXPECT_THAT(replay.str(), HasSubstr(std::to_string(static_steps) + " of "));
}

TEST(Replay, a_chain_writes_into_two_places_of_the_arena) {
  const auto module = chain(10);
  expect_replays(module, {{3, 5}}, 9);  // the last is the result
  torch::NoGradGuard no_grad;
  const Replay replay(module);
  replay.run({torch::ones({3, 5})});
  EXPECT_THAT(replay.str(), HasSubstr("arena 124 bytes for 540, at least 120"));
  EXPECT_THAT(replay.str(), HasSubstr("for x: f32[3, 5]\n  9 of 10 steps static"));
  EXPECT_THAT(replay.str(), HasSubstr("  neg: aten::neg.out -> f32[3, 5] at 0, until sin\n"));
}

TEST(Replay, results_of_earlier_calls_never_change) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  Node& kept = graph->call_function("aten::add.Tensor", {a, 1});
  Node& view = graph->call_function("aten::view", {kept, Argument::list({-1})});
  Node& part = graph->call_function("aten::select.int", {view, 0, 0});
  Node& sum = graph->call_function("aten::sum", {kept});
  Node& b = graph->call_function("aten::mul.Tensor", {kept, 3});
  Node& c = graph->call_function("aten::sub.Tensor", {b, a});
  graph->output(Argument::tuple({part, sum, c, Argument::list({view})}));
  const auto module = module_of(graph);
  const Replay replay(module);
  std::vector<Value> results;
  std::vector<std::string> wanted;
  for (int call = 0; call < 20; ++call) {
    const at::Tensor in = torch::full({2, 3}, 1.0 * call);
    results.push_back(replay.run({in}));
    wanted.push_back(to_string(Interpreter(*module).run({in})));
    for (std::size_t i = 0; i < results.size(); ++i) ASSERT_EQ(to_string(results[i]), wanted[i]);
  }
  EXPECT_EQ(replay.statistics().replays, 19u);
}

TEST(Replay, views_of_static_results_are_made_once) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});
  Node& t = graph->call_function("aten::t", {a});
  Node& row = graph->call_method("select", {t, 0, 1});
  Node& parts = graph->call_function("torch.chunk", {a, 2});
  Node& first = graph->call_function("operator.getitem", {parts, 0});
  Node& flat = graph->call_method("reshape", {t, -1});  // a copy: not a view
  Node& max = graph->call_function("aten::max.dim", {a, 1});
  Node& values = graph->call_function("operator.getitem", {max, 0});
  Node& indices = graph->call_function("operator.getitem", {max, 1});
  Node& y1 = graph->call_function("aten::add.Tensor", {row, values});
  Node& y2 = graph->call_function("aten::mul.Tensor", {first, indices});
  Node& y3 = graph->call_function("aten::neg", {flat});
  graph->output(Argument::tuple({y1, y2, y3}));
  // exp, t, select, chunk, getitem, max and its two parts.
  expect_replays(module_of(graph), {{4, 4}}, 8);
}

TEST(Replay, lists_of_tensors_and_several_inputs) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& a = graph->call_function("aten::exp", {x});
  Node& cat = graph->call_function("aten::cat", {Argument::list({a, y}), 0});
  Node& mm = graph->call_function("aten::mm", {cat, graph->call_function("aten::t", {y})});
  Node& soft = graph->call_function("aten::_softmax", {mm, -1, false});
  Node& relu = graph->call_function("torch.relu", {soft});
  graph->output(graph->call_function("aten::sum.dim_IntList", {relu, Argument::list({1})}));
  expect_replays(module_of(graph), {{2, 6}, {3, 6}}, 5);
}

TEST(Replay, operators_that_call_others_and_weights_that_change) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& weight = graph->get_attr("linear.weight");
  Node& bias = graph->get_attr("linear.bias");
  Node& linear = graph->call_function("torch.nn.functional.linear", {x, weight, bias});
  Node& relu = graph->call_method("relu", {linear});
  Node& soft = graph->call_function("torch.softmax", {relu, -1});
  Node& product = graph->call_function("operator.matmul", {soft, weight});
  Node& log = graph->call_function("torch.log_softmax", {product, 0});
  graph->output(graph->call_function("torch.neg", {log}));
  const auto module = std::make_shared<GraphModule>();
  torch::nn::Linear first(4, 3);
  module->set_submodule("linear", first.ptr());
  module->set_graph(graph);
  expect_replays(module, {{2, 4}}, 5);
  const Replay replay(module);
  const at::Tensor in = torch::randn({2, 4});
  const auto check = [&] { expect_same(replay.run({in}), Interpreter(*module).run({in})); };
  for (int call = 0; call < 3; ++call) check();
  first->weight.mul_(2);  // in place
  check();
  first->weight.set_data(torch::randn({3, 4}));  // other memory in the same tensor
  check();
  first->weight.set_data(torch::randn({4, 3}).t());  // in another order
  for (int call = 0; call < 2; ++call) check();
  torch::nn::Linear second(4, 3);
  module->set_submodule("linear", second.ptr());
  for (int call = 0; call < 2; ++call) check();
  EXPECT_EQ(replay.statistics().left, 2u);  // with the other order
  EXPECT_EQ(replay.statistics().frames_lost, 0u);
}

TEST(Replay, what_is_written_or_kept_is_allocated_anew) {
  static std::vector<at::Tensor> kept;
  kept.clear();
  register_wrapped_function("replay_test_keep", [](Values args, KwValues) -> Value {
    kept.push_back(args[0].toTensor());
    return args[0].toTensor() * 2;
  });
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::exp", {x});  // static
  Node& b = graph->call_function("aten::add.Tensor", {a, 1});
  Node& view = graph->call_method("view", {b, -1});
  Node& doubled = graph->call_function("replay_test_keep", {view});
  Node& c = graph->call_function("aten::add.Tensor", {a, 2});
  graph->call_function("aten::mul_.Tensor", {c, 3});
  graph->output(Argument::tuple({doubled, graph->call_function("aten::neg", {c})}));
  const auto module = module_of(graph);
  torch::NoGradGuard no_grad;
  const Replay replay(module);
  for (int call = 0; call < 4; ++call) {
    const at::Tensor in = torch::full({3}, 1.0 * call);
    const Value found = replay.run({in});
    const Values parts = elements(found);
    EXPECT_TRUE(at::equal(parts[0].toTensor(), (in.exp() + 1) * 2));
    EXPECT_TRUE(at::equal(parts[1].toTensor(), -((in.exp() + 2) * 3)));
  }
  for (int call = 0; call < 4; ++call)
    EXPECT_TRUE(
        at::equal(kept[static_cast<std::size_t>(call)], torch::full({3}, 1.0 * call).exp() + 1));
  EXPECT_THAT(replay.str(), HasSubstr("1 of 7 steps static"));
}

TEST(Replay, other_sizes_dtypes_and_strides_have_layouts_of_their_own) {
  torch::NoGradGuard no_grad;
  const auto module = chain(4);
  const Replay replay(module);
  const std::vector<at::Tensor> inputs = {torch::randn({2, 3}),
                                          torch::randn({3, 2}).t(),
                                          torch::randn({2, 3}).to(at::kDouble),
                                          torch::randn({0, 3}),
                                          torch::randn({}),
                                          torch::randn({1, 7}).expand({5, 7}),
                                          torch::randn({4, 2, 3}).transpose(0, 2)};
  for (int round = 0; round < 3; ++round)
    for (const at::Tensor& in : inputs)
      expect_same(replay.run({in}), Interpreter(*module).run({in}));
  EXPECT_EQ(replay.statistics().layouts, inputs.size());
  EXPECT_EQ(replay.statistics().replays, 2 * inputs.size());
  // No more layouts than a few: the rest runs the plan.
  for (std::int64_t n = 10; n < 20; ++n) {
    const at::Tensor in = torch::randn({n});
    for (int round = 0; round < 2; ++round)
      expect_same(replay.run({in}), Interpreter(*module).run({in}));
  }
  EXPECT_EQ(replay.statistics().layouts, 8u);
}

TEST(Replay, a_step_that_gives_another_size_goes_back_to_the_plan) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});  // static, alive until the end
  Node& found = graph->call_function("aten::nonzero", {x});
  Node& n = graph->call_function("aten::neg", {found});
  Node& sum = graph->call_function("aten::sum", {n});
  graph->output(graph->call_function("aten::add.Tensor", {a, sum}));
  const auto module = module_of(graph);
  const Replay replay(module);
  for (const at::Tensor& in :
       {torch::tensor({1, 0, 2, 3}), torch::tensor({5, 6, 7, 0}), torch::tensor({0, 0, 0, 1}),
        torch::tensor({0, 0, 0, 0}), torch::tensor({1, 1, 0, 1})})
    expect_same(replay.run({in}), Interpreter(*module).run({in}));
  EXPECT_EQ(replay.statistics().replays, 4u);
  EXPECT_EQ(replay.statistics().left, 2u);
  // An attribute of another size does the same.
  auto other = std::make_shared<Graph>();
  Node& y = other->placeholder("y");
  Node& weight = other->get_attr("weight");
  Node& product = other->call_function("aten::mul.Tensor", {y, weight});
  other->output(other->call_function("aten::sum", {product}));
  const auto with_weight = std::make_shared<GraphModule>();
  with_weight->set_buffer("weight", torch::ones({2, 1}));
  with_weight->set_graph(other);
  const Replay second(with_weight);
  for (const at::Tensor& value : {torch::ones({2, 1}), torch::full({2, 1}, 3.0),
                                  torch::full({5, 1}, 2.0), torch::full({1}, 7.0)}) {
    with_weight->set_buffer("weight", value);
    expect_same(second.run({torch::arange(4.0)}), (torch::arange(4.0) * value).sum());
  }
  EXPECT_EQ(second.statistics().left, 2u);
}

TEST(Replay, gradients_run_the_plan) {
  const auto module = chain(3);
  const Replay replay(module);
  at::Tensor in = torch::tensor({0.5f, 1.0f}).requires_grad_();
  for (int call = 0; call < 3; ++call) {
    in.mutable_grad() = at::Tensor();
    replay.run({in}).toTensor().sum().backward();
    at::Tensor again = in.detach().clone().requires_grad_();
    Interpreter(*module).run({again}).toTensor().sum().backward();
    EXPECT_TRUE(at::equal(in.grad(), again.grad()));
  }
  EXPECT_EQ(replay.statistics().ordinary, 3u);
  // Without tensors that require gradients nothing is recorded for them anyway.
  for (int call = 0; call < 3; ++call) replay.run({torch::ones({2})});
  EXPECT_EQ(replay.statistics().replays, 2u);
  // A parameter counts as well as an input.
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  graph->output(graph->call_function("aten::mul.Tensor", {a, graph->get_attr("w")}));
  const auto with_weight = std::make_shared<GraphModule>();
  with_weight->set_parameter("w", torch::ones({2}, torch::requires_grad()));
  with_weight->set_graph(graph);
  const Replay second(with_weight);
  std::vector<at::Tensor> results;
  for (int call = 0; call < 3; ++call)
    results.push_back(second.run({torch::full({2}, 1.0 * call)}).toTensor());
  EXPECT_EQ(second.statistics().ordinary, 3u);
  results[1].sum().backward();
  EXPECT_TRUE(at::equal(with_weight->find_tensor("w").grad(), torch::full({2}, 2.0f)));
  torch::NoGradGuard no_grad;
  for (int call = 0; call < 3; ++call) second.run({torch::ones({2})});
  EXPECT_EQ(second.statistics().replays, 2u);
}

TEST(Replay, inference_mode_and_ordinary_mode_take_turns) {
  const auto module = chain(5);
  const Replay replay(module);
  const at::Tensor in = torch::randn({3});
  const Value wanted = Interpreter(*module).run({in});
  for (int round = 0; round < 4; ++round) {
    {
      const c10::InferenceMode inference;
      const at::Tensor result = replay.run({in}).toTensor();
      EXPECT_TRUE(result.is_inference());
      expect_same(result, wanted);
    }
    const at::NoGradGuard no_grad;
    const at::Tensor result = replay.run({in}).toTensor();
    EXPECT_FALSE(result.is_inference());
    expect_same(result, wanted);
  }
  EXPECT_EQ(replay.statistics().replays, 7u);
}

TEST(Replay, another_default_dtype_is_another_layout) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& half = graph->call_function("aten::true_divide.Tensor", {x, x});
  Node& root = graph->call_function("aten::div.Tensor", {x, 2});
  Node& sum = graph->call_function("aten::add.Tensor", {half, root});
  graph->output(graph->call_function("aten::neg", {sum}));
  const auto module = module_of(graph);
  const Replay replay(module);
  const at::Tensor in = torch::tensor({1, 2, 3});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(replay.run({in}).toTensor().scalar_type(), at::kFloat);
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    const at::Tensor wide = replay.run({in}).toTensor();
    torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
    EXPECT_EQ(wide.scalar_type(), at::kDouble);
  }
}

TEST(Replay, autocast_runs_the_plan) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mm", {x, x});
  graph->output(graph->call_function("aten::neg", {a}));
  const auto module = module_of(graph);
  const Replay replay(module);
  const at::Tensor in = torch::randn({4, 4});
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(replay.run({in}).toTensor().scalar_type(), at::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor cast = replay.run({in}).toTensor();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(cast.scalar_type(), at::kBFloat16);
  EXPECT_EQ(replay.run({in}).toTensor().scalar_type(), at::kFloat);
}

TEST(Replay, forward_mode_differentiation_runs_the_plan) {
  const auto module = chain(4);
  const Replay replay(module);
  const at::Tensor in = torch::tensor({0.5f, 1.0f});
  for (int call = 0; call < 2; ++call) replay.run({in});
  const std::uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const at::Tensor dual = at::_make_dual(in, torch::ones({2}), static_cast<std::int64_t>(level));
    const auto tangent = [&](const Value& value) {
      return std::get<1>(at::_unpack_dual(value.toTensor(), static_cast<std::int64_t>(level)));
    };
    const at::Tensor found = tangent(replay.run({dual}));
    const at::Tensor wanted = tangent(Interpreter(*module).run({dual}));
    ASSERT_TRUE(wanted.defined());
    ASSERT_TRUE(found.defined());
    EXPECT_TRUE(at::equal(found, wanted));
  }
  torch::autograd::ForwardADLevel::release_idx(level);
  EXPECT_EQ(replay.statistics().replays, 1u);
  EXPECT_EQ(replay.statistics().ordinary, 1u);
}

TEST(Replay, errors_leave_nothing_behind) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& index = graph->placeholder("index");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  Node& b = graph->call_function("aten::gather", {a, 0, index});
  graph->output(graph->call_function("aten::neg", {b}));
  const auto module = module_of(graph);
  const Replay replay(module);
  const at::Tensor in = torch::arange(4.0);
  const at::Tensor good = torch::tensor({3, 1}), bad = torch::tensor({1, 9});
  for (int call = 0; call < 4; ++call) {
    EXPECT_TRUE(at::equal(replay.run({in, good}).toTensor(), torch::tensor({-6.0, -2.0})));
    EXPECT_FX_ERROR(replay.run({in, bad}), RunError, kNodeFailed, "While executing %gather");
    EXPECT_EQ(bad.use_count(), 1);
  }
  EXPECT_FX_ERROR(replay.run({in}), RunError, kMissingInput, "index");
  EXPECT_EQ(in.use_count(), 1);
}

TEST(Replay, keywords_and_replaced_submodules) {
  torch::NoGradGuard no_grad;
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::mul.Tensor", {x, 2});
  Node& relu = graph->call_module("act", {a});
  graph->output(graph->call_function("aten::add.Tensor", {relu, a}));
  const auto module = std::make_shared<GraphModule>();
  module->set_submodule("act", torch::nn::ReLU().ptr());
  module->set_graph(graph);
  const Replay replay(module);
  const at::Tensor in = torch::tensor({-1.0f, 3.0f});
  for (int call = 0; call < 2; ++call)
    EXPECT_TRUE(at::equal(replay.run({in}).toTensor(), torch::tensor({-2.0f, 12.0f})));
  EXPECT_TRUE(
      at::equal(replay.run({}, {{Symbol("x"), in}}).toTensor(), torch::tensor({-2.0f, 12.0f})));
  // A module that returns its input, which the analysis has not seen.
  module->set_submodule("act", torch::nn::Identity().ptr());
  std::vector<at::Tensor> results;
  for (int call = 0; call < 3; ++call) results.push_back(replay.run({in * call}).toTensor());
  for (int call = 0; call < 3; ++call)
    EXPECT_TRUE(at::equal(results[static_cast<std::size_t>(call)], in * call * 4));
}

TEST(Replay, frames_are_kept_and_go_with_the_object) {
  torch::NoGradGuard no_grad;
  const auto module = chain(6);
  std::weak_ptr<GraphModule> alive = module;
  {
    const Replay replay(module);
    for (int call = 0; call < 100; ++call) replay.run({torch::ones({64})});
    EXPECT_EQ(replay.statistics().frames, 1u);
    EXPECT_EQ(replay.statistics().frame_bytes, 512u);
  }
}

// 2 * x by a kernel, which may keep what it sees although it must not.
struct Doubling : KernelModule {
  bool call_into(std::span<const Value> inputs, std::span<const at::Tensor> results) override {
    if (!works || results[0].sizes() != inputs[0].toTensor().sizes()) return false;
    if (keeps) kept.push_back(inputs[0].toTensor());
    at::Tensor result = results[0];
    at::mul_out(result, inputs[0].toTensor(), torch::tensor(2.0f));
    ++calls;
    return true;
  }
  static std::shared_ptr<Doubling> make() {
    ModuleType type;
    type.name = "test.Doubling";
    type.call = [](torch::nn::Module&, Values args, KwValues) -> Value {
      return args[0].toTensor() * 2;
    };
    type.is_impure = [](const torch::nn::Module&, bool) { return false; };
    register_module_type(typeid(Doubling), std::move(type));
    return std::make_shared<Doubling>();
  }

  bool works = true;
  bool keeps = false;
  int calls = 0;
  std::vector<at::Tensor> kept;
};

std::shared_ptr<GraphModule> doubling_chain(const std::shared_ptr<Doubling>& kernel) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_function("aten::neg", {x});
  Node& b = graph->call_module("kernel", {a});
  Node& c = graph->call_function("aten::sin", {b});
  graph->output(graph->call_module("kernel", {c}));
  const auto module = std::make_shared<GraphModule>();
  module->set_submodule("kernel", kernel);
  module->set_graph(graph);
  return module;
}

TEST(Replay, kernels_write_into_the_arena) {
  torch::NoGradGuard no_grad;
  const auto kernel = Doubling::make();
  const auto module = doubling_chain(kernel);
  const Replay replay(module);
  std::vector<at::Tensor> results;
  for (int call = 0; call < 5; ++call) {
    kernel->works = call != 3;
    results.push_back(replay.run({torch::full({3}, 1.0 * call)}).toTensor());
  }
  for (int call = 0; call < 5; ++call)
    EXPECT_TRUE(at::equal(results[static_cast<std::size_t>(call)],
                          (torch::full({3}, -1.0 * call) * 2).sin() * 2));
  EXPECT_EQ(kernel->calls, 4);  // once while it was recorded
  EXPECT_EQ(replay.statistics().left, 1u);
  EXPECT_THAT(replay.str(), HasSubstr("  kernel: kernel -> f32[3] at 64, until sin\n"));
}

TEST(Replay, what_escapes_all_the_same_stays_as_it_is) {
  torch::NoGradGuard no_grad;
  const auto kernel = Doubling::make();
  const auto module = doubling_chain(kernel);
  const Replay replay(module);
  replay.run({torch::ones({3})});
  kernel->keeps = true;
  for (int call = 0; call < 3; ++call) replay.run({torch::full({3}, 1.0 * call)});
  kernel->keeps = false;
  EXPECT_EQ(replay.statistics().frames_lost, 3u);
  ASSERT_EQ(kernel->kept.size(), 3u);
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : kernel->kept) copies.push_back(tensor.clone());
  for (int call = 0; call < 3; ++call) replay.run({torch::full({3}, 100.0 + call)});
  for (std::size_t i = 0; i < copies.size(); ++i)
    EXPECT_TRUE(at::equal(kernel->kept[i], copies[i]));
  EXPECT_EQ(replay.statistics().frames_lost, 3u);
}

}  // namespace
}  // namespace fx
