// The demonstration: a classifier that Python trained and exported is loaded, read, run, rewritten
// and checked here without Python; then a network written in C++ is captured in both ways.
//
//   example_demo [folder of models]

#include <fx/fx.h>

#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "examples/resnet18.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Best of several runs, in milliseconds.
template <typename Fn>
double best_of(int runs, Fn&& fn) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    fn();
    best = std::min(best, milliseconds_since(start));
  }
  return best;
}

void heading(const char* text) { std::printf("\n=== %s\n\n", text); }

std::map<std::string, int> count_operators(const fx::Graph& graph) {
  std::map<std::string, int> counts;
  for (const fx::Node& node : graph.nodes())
    if (node.op() == fx::Opcode::kCallFunction || node.op() == fx::Opcode::kCallModule)
      ++counts[node.op() == fx::Opcode::kCallModule ? "call_module" : node.target().str()];
  return counts;
}

void print_counts(const fx::Graph& before, const fx::Graph& after) {
  auto a = count_operators(before);
  auto b = count_operators(after);
  for (const auto& [name, count] : b) a.try_emplace(name, 0);
  std::printf("  %-28s %7s %7s\n", "operator", "before", "after");
  for (const auto& [name, count] : a)
    std::printf("  %-28s %7d %7d%s\n", name.c_str(), count, b[name],
                b[name] == count ? "" : (b[name] < count ? "   gone or fewer" : "   more"));
}

/// Largest difference relative to the largest reference value.
double relative_difference(const at::Tensor& a, const at::Tensor& reference) {
  return ((a - reference).abs().max() / reference.abs().max()).item<double>();
}

bool classify_digits(const std::string& models) {
  heading("1. A classifier trained and exported by Python, loaded without Python");
  auto start = Clock::now();
  auto gm = fx::load(models + "/digits.pt2");
  std::printf("loaded %s/digits.pt2 in %.1f ms: %zu nodes, %zu tensors of state\n\n",
              models.c_str(), milliseconds_since(start), gm->graph().size(),
              gm->state_dict().size());
  gm->graph().print_tabular();

  const at::Tensor images = fx::io::read_npy(models + "/digits_test_x.npy");
  const at::Tensor labels = fx::io::read_npy(models + "/digits_test_y.npy");
  std::ifstream expected_file(models + "/digits_expected.json");
  const auto expected = nlohmann::json::parse(expected_file);

  torch::NoGradGuard no_grad;
  start = Clock::now();
  const at::Tensor logits = (*gm)(images).toTensor();
  const double run_ms = milliseconds_since(start);
  const auto correct = (logits.argmax(1) == labels).sum().item<std::int64_t>();
  std::printf(
      "\nheld-out images: %lld of %lld right (%.2f %%), in %.1f ms; Python on the same images: "
      "%lld\n",
      static_cast<long long>(correct), static_cast<long long>(labels.numel()),
      100.0 * static_cast<double>(correct) / static_cast<double>(labels.numel()), run_ms,
      expected["correct"].get<long long>());
  const bool same_accuracy = correct == expected["correct"].get<std::int64_t>();
  if (!same_accuracy) std::printf("FAIL: the accuracy differs from Python's\n");

  heading("2. A pass over the graph: batch norms folded into the convolutions before them");
  auto fused = gm->deep_copy();
  fused->eval();
  const fx::PipelineResult result = fx::PassManager("fuse_conv_bn,dce").run(*fused);
  std::cout << result.to_string() << "\n";
  print_counts(gm->graph(), fused->graph());
  const double difference = relative_difference((*fused)(images).toTensor(), logits);
  const bool agree = result.changed && difference < 1e-4;
  std::printf("\noutputs before and after agree to %.1e (relative): %s\n", difference,
              agree ? "OK" : "FAIL");
  return same_accuracy && agree;
}

bool capture_resnet() {
  heading("3. A ResNet-18 written in C++, captured by proxies and through the dispatcher");
  torch::manual_seed(0);
  torch::NoGradGuard no_grad;
  resnet::ResNet18 net;
  net->eval();
  const at::Tensor image = torch::randn({1, 3, 224, 224});
  const at::Tensor expected = net->forward(image);

  auto by_proxies = fx::symbolic_trace(net);
  const double trace_ms = best_of(5, [&] { fx::symbolic_trace(net); });
  auto by_dispatcher = fx::make_fx(net, {image});
  const double eager_ms = best_of(3, [&] { net->forward(image); });
  const double make_fx_ms = best_of(3, [&] { fx::make_fx(net, {image}); });

  bool same = true;
  std::printf("  %-34s %6s %11s %9s %s\n", "", "nodes", "capture ms", "run ms", "equals eager");
  std::printf("  %-34s %6s %11s %9.1f\n", "eager C++", "", "", eager_ms);
  auto row = [&](const char* name, fx::GraphModule& gm, double capture_ms) {
    const bool equal = torch::equal(gm(image).toTensor(), expected) &&
                       torch::equal(fx::Interpreter(gm).run({image}).toTensor(), expected);
    same &= equal;
    std::printf("  %-34s %6zu %11.2f %9.1f %s\n", name, gm.graph().size(), capture_ms,
                best_of(3, [&] { gm(image); }), equal ? "yes" : "NO");
  };
  row("symbolic_trace (modules)", *by_proxies, trace_ms);
  row("make_fx (operators, runs the net)", *by_dispatcher, make_fx_ms);

  std::printf("\noperators that make_fx saw:\n");
  for (const auto& [name, count] : count_operators(by_dispatcher->graph()))
    std::printf("  %-28s %4d\n", name.c_str(), count);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string models = argc > 1 ? argv[1] : FXCPP_MODELS_DIR;
    const bool digits = classify_digits(models);
    const bool resnet = capture_resnet();
    std::printf("\n%s\n", digits && resnet ? "All checks passed." : "Some check FAILED.");
    return digits && resnet ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "demo: %s\n", error.what());
    return 2;
  }
}
