// The snippets of docs/guide/capture.md and docs/guide/proxies.md.

#include <fx/fx.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

// [block]
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int size) { linear = register_module("linear", nn::Linear(size, size)); }
  auto forward(auto x) { return x + relu(linear(x)); }
  nn::Linear linear{nullptr};
};
FX_MODULE(Block);  // defines the holder Block, as TORCH_MODULE does

struct Stack : torch::nn::Module {
  Block first = register_module("first", Block(4));
  Block second = register_module("second", Block(4));
  auto forward(auto x) { return second(first(x)); }
};
// [end]

TEST(Capture, modules_of_ones_own_are_traced_through) {
  Page page("guide/capture.md");
  Capture captured;
  // [through]
  auto gm = fx::symbolic_trace(std::make_shared<Stack>());
  for (fx::Node& node : gm->graph().nodes())
    std::cout << fx::opcode_name(node.op()) << " " << node.target().str() << "\n";
  // [end]
  page.expect_output("through", captured.text());
}

TEST(Capture, S3_28_any_submodule_can_be_traced_alone) {
  Page page("guide/capture.md");
  auto net = std::make_shared<Stack>();
  Capture captured;
  // [part]
  auto part = fx::symbolic_trace(net->second);
  std::cout << part->graph() << "\n";
  // [end]
  page.expect_output("part", captured.text());
  at::Tensor x = torch::randn({2, 4});
  EXPECT_TRUE(torch::equal((*part)(x).toTensor(), net->second(x)));
  EXPECT_TRUE(page.says("Trace a part alone"));
}

TEST(Capture, inputs_have_names_and_fixed_ones_are_checked) {
  Page page("guide/capture.md");
  Capture captured;
  // [inputs]
  auto scale = [](fx::Proxy image, bool twice) { return twice ? image * 2 : image; };
  auto gm = fx::symbolic_trace(
      scale, {.input_names = {"image", "twice"}, .concrete_args = {{"twice", true}}});
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("inputs", captured.text());
  EXPECT_THROW((*gm)(torch::ones({1}), false), fx::RunError);
}

// [wrapped]
auto clip = fx::wrap("docs.clip", [](at::Tensor x, double limit) {
  return x.abs().max().item<double>() > limit ? x.clamp(-limit, limit) : x;
});
// [end]

TEST(Capture, a_wrapped_function_is_one_node) {
  Page page("guide/capture.md");
  Capture captured;
  // [wrap]
  auto gm = fx::symbolic_trace([](auto x) { return clip(x + 1, 1.5); });
  std::cout << gm->graph() << "\n"
            << fx::to_string((*gm)(torch::tensor({0.0, 3.0}))) << "\n"
            << fx::to_string((*gm)(torch::tensor({0.0, 0.1}))) << "\n";
  // [end]
  page.expect_output("wrap", captured.text());
}

TEST(Capture, make_fx_lists_what_it_took_for_granted) {
  Page page("guide/capture.md");
  Capture captured;
  // [assumptions]
  auto program = [](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x : -x; };
  auto gm = fx::make_fx(program, {torch::tensor({1.0f, 2.0f})});
  std::cout << gm->graph() << "\n";
  for (const fx::Assumption& assumption : *gm->meta().get<fx::Assumptions>("assumptions"))
    std::cout << fx::assumption_kind_name(assumption.kind) << ": " << assumption.text << "\n";
  // [end]
  page.expect_output("assumptions", captured.text());
}

TEST(Capture, a_file_is_loaded_with_its_structure) {
  Page page("guide/capture.md");
  const std::string models = FXCPP_SOURCE_DIR "/models";
  Capture captured;
  // [pt2]
  fx::io::ArchiveSummary summary = fx::io::inspect(models + "/digits.pt2");  // reads no weights
  std::cout << "torch " << summary.programs.at(0).torch_version << ", "
            << summary.programs.at(0).num_nodes << " nodes\n";
  auto gm = fx::load(models + "/digits.pt2");
  std::cout << gm->graph().nodes().front() << "\n"
            << gm->state_dict().size() << " tensors, the first is "
            << gm->state_dict().front().first << "\n";
  // [end]
  page.expect_output("pt2", captured.text());
}

TEST(Proxies, S3_01_S3_07_a_proxy_writes_down_what_is_done) {
  Page page("guide/proxies.md");
  EXPECT_TRUE(page.says("recipe"));
  Capture captured;
  // [recorded]
  auto gm = fx::symbolic_trace([](auto x) {
    auto first = relu(x[0]);                       // an index, a function
    auto sum = x.sum(1, fx::kw("keepdim", true));  // a method with a keyword
    auto y = first + sum;                          // an operator
    std::cout << "while tracing, y is " << y << "\n";
    return y.view({-1});
  });
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("recorded", captured.text());
}

TEST(Proxies, S1_40_S4_20_what_cannot_be_traced_says_so) {
  Page page("guide/proxies.md");
  Capture captured;
  // [refused]
  auto branch = [](auto x) { return x.sum() > 0 ? x : -x; };
  auto shape = [](const at::Tensor& x) { return x.view({x.size(0), -1}); };
  auto loop = [](fx::Proxy x) {
    fx::Proxy sum = x[0];
    for (fx::Proxy row : x) sum = sum + row;
    return sum;
  };
  auto report = [](auto program) {
    try {
      fx::symbolic_trace(program);
    } catch (const fx::TraceError& error) {
      std::cout << "- " << error.what() << "\n";
    }
  };
  report(branch);
  report(shape);
  report(loop);
  // [end]
  page.expect_output("refused", captured.text());
  for (const char* construct : {"`if (x > 0)`", "`for (auto row : x)`", "`x.item<float>()`",
                                "`x.size(0)`", "loops with known bounds", "`try`"})
    EXPECT_TRUE(page.says(construct)) << construct;
}

TEST(Proxies, S1_39_a_branch_on_data_becomes_where) {
  Page page("guide/proxies.md");
  Capture captured;
  // [where]
  auto branch = [](at::Tensor x) { return x.sum().item<float>() > 0 ? x * 2 : x - 1; };
  auto masked = [](auto x) { return where(x.sum() > 0, x * 2, x - 1); };
  auto gm = fx::symbolic_trace(masked);
  for (const at::Tensor& x : {torch::tensor({1.0f, 2.0f}), torch::tensor({-1.0f, -2.0f})})
    std::cout << fx::to_string(branch(x)) << " and " << fx::to_string((*gm)(x)) << "\n";
  // [end]
  page.expect_output("where", captured.text());
}

TEST(Proxies, S4_36_shapes_and_loops_become_operators) {
  Page page("guide/proxies.md");
  Capture captured;
  // [refactored]
  auto flat = [](auto x) { return x.flatten(1); };  // instead of x.view({x.size(0), -1})
  auto sum = [](auto x) { return x.sum(0); };       // instead of a loop over rows
  auto two = [](fx::Proxy x) {                      // a loop of known length
    auto [first, second] = x.unpack<2>();
    return first - second;
  };
  at::Tensor x = torch::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2});
  std::cout << fx::to_string((*fx::symbolic_trace(flat))(x.view({2, 2, 1}))) << "\n"
            << fx::to_string((*fx::symbolic_trace(sum))(x)) << "\n"
            << fx::to_string((*fx::symbolic_trace(two))(x)) << "\n";
  // [end]
  page.expect_output("refactored", captured.text());
}

TEST(Proxies, S3_13_constants_are_read_from_the_graph) {
  Page page("guide/proxies.md");
  Capture captured;
  // [constants]
  auto gm = fx::symbolic_trace([](auto x) { return clamp(x * 0.5, fx::kw("max", 6)); });
  double factor = gm->graph().find_node("mul")->arg(1).to_double();
  std::int64_t limit = gm->graph().find_node("clamp")->kwarg("max").to_int();
  std::cout << "factor " << factor << ", limit " << limit << "\n";
  // [end]
  page.expect_output("constants", captured.text());
}

TEST(Proxies, any_function_and_method_can_be_recorded) {
  Page page("guide/proxies.md");
  Capture captured;
  // [any]
  auto gm = fx::symbolic_trace([](fx::Proxy x) {
    fx::Proxy y = fx::record_call("torch.cosh", {x});         // a torch function
    fx::Proxy z = y.call_method("cumprod", {1});              // a method
    return fx::Proxy(torch::rand_like(z)) + torch::ones({});  // an operator, a constant
  });
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("any", captured.text());
  EXPECT_EQ((*gm)(torch::ones({2, 3})).toTensor().sizes(), (std::vector<std::int64_t>{2, 3}));
}

TEST(Proxies, reading_a_shape_while_tracing_records_nodes) {
  Page page("guide/proxies.md");
  Capture captured;
  // [shape]
  auto gm = fx::symbolic_trace([](auto x) { return x / x.size(0); });
  std::cout << gm->graph() << "\n";
  // [end]
  page.expect_output("shape", captured.text());
}

}  // namespace
}  // namespace fx::docs_test
