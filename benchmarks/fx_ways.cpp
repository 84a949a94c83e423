// One program run in several ways: as C++, by the Interpreter, as a GraphModule, compiled. Prints
// one line of JSON a row, times in microseconds a call; benchmarks/ways.py makes a table of them
// and holds it against bars.
//
//   fxcpp_bench_ways [MILLISECONDS]    time for each row; at least kLeastRounds rounds are run

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fx/capture/symbolic_trace.h"
#include "fx/compile/compile.h"
#include "fx/interpret/interpreter.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kLeastRounds = 5;

struct Way {
  std::string name;
  std::function<at::Tensor()> run;
};

double microseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double max_error(const at::Tensor& found, const at::Tensor& wanted) {
  if (found.sizes() != wanted.sizes()) return std::numeric_limits<double>::infinity();
  return (found.to(torch::kDouble) - wanted.to(torch::kDouble)).abs().max().item<double>();
}

// What of a compiled program does not depend on the clock.
Json facts_of(const fx::Compiled& compiled) {
  Json facts;
  facts["compilations"] = compiled.num_compilations();
  facts["codes"] = compiled.num_kernel_codes();
  std::size_t kernels = 0, calls = 0;
  for (const fx::Node& node : compiled.graph_module()->graph().nodes()) {
    calls += node.op() != fx::Opcode::kPlaceholder && node.op() != fx::Opcode::kOutput &&
             node.op() != fx::Opcode::kGetAttr;
    kernels += node.op() == fx::Opcode::kCallModule && node.target().str().starts_with("kernel_");
  }
  facts["kernels"] = kernels;
  facts["calls"] = calls;
  return facts;
}

// The ways take turns, so that noise hits all of them. Errors are those against the first way.
Json compare(const std::string& row, const std::vector<Way>& ways, double budget_ms) {
  std::vector<std::vector<double>> times(ways.size());
  Json line = {{"row", row}};
  const at::Tensor wanted = ways.front().run();
  for (const Way& way : ways) line["ways"][way.name]["error"] = max_error(way.run(), wanted);
  double spent_us = 0;
  for (int round = 0; round < kLeastRounds || spent_us < budget_ms * 1000; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) {
      times[i].push_back(microseconds([&] { ways[i].run(); }));
      spent_us += times[i].back();
    }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    Json& figures = line["ways"][ways[i].name];
    figures["min_us"] = *std::min_element(times[i].begin(), times[i].end());
    figures["median_us"] = median(times[i]);
  }
  line["rounds"] = times.front().size();
  return line;
}

// Sixteen operators whose results do not depend on how they are computed, so that all ways agree
// bit for bit.
template <typename T>
T pointwise(T x) {
  for (int i = 0; i < 4; ++i) x = ((x * 0.75 + 0.5) - x * 2).abs();
  return x;
}

at::Tensor fused(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor a = torch::exp(x * 0.5);
  a = torch::tanh(a + y);
  a = torch::gelu(a) * x;
  a = torch::sigmoid(a + 1.0);
  return a * y + x;
}

Json pointwise_chain(const std::string& row, std::int64_t size, double budget_ms) {
  const at::Tensor x = torch::randn({size});
  const auto module = fx::symbolic_trace([](fx::Proxy p) { return pointwise(p); });
  const fx::Compiled compiled = fx::compile(module);
  fx::Interpreter interpreter(*module);
  Json line = compare(row,
                      {{"eager", [&] { return pointwise(x); }},
                       {"interpreter", [&] { return interpreter.run({x}).toTensor(); }},
                       {"compiled", [&] { return compiled(x).toTensor(); }}},
                      budget_ms);
  line["facts"] = facts_of(compiled);
  return line;
}

torch::nn::Sequential three_layers() {
  return torch::nn::Sequential(torch::nn::Linear(10, 5), torch::nn::ReLU(),
                               torch::nn::Linear(5, 2));
}

Json sample(const std::string& row, double budget_ms) {
  torch::nn::Sequential net = three_layers();
  const at::Tensor x = torch::randn({1, 10});
  const auto module = fx::symbolic_trace(net);
  fx::Interpreter interpreter(*module);
  Json line = compare(row,
                      {{"eager", [&] { return net->forward(x); }},
                       {"module", [&] { return (*module)(x).toTensor(); }},
                       {"interpreter", [&] { return interpreter.run({x}).toTensor(); }}},
                      budget_ms);
  line["facts"]["nodes"] = module->graph().size();
  return line;
}

Json fused_chain(const std::string& row, double budget_ms) {
  const at::Tensor x = torch::randn({4096, 1024});
  const at::Tensor y = torch::randn({4096, 1024});
  const fx::Compiled compiled = fx::compile(&fused);
  Json line = compare(row,
                      {{"eager", [&] { return fused(x, y); }},
                       {"compiled", [&] { return compiled(x, y).toTensor(); }}},
                      budget_ms);
  line["facts"] = facts_of(compiled);
  return line;
}

// The first run of a compiled model compiles; each of the next five has to be faster.
Json first_runs(const std::string& row) {
  torch::nn::Sequential net = three_layers();
  const fx::Compiled compiled = fx::compile(fx::symbolic_trace(net), {.mode = "reduce-overhead"});
  const at::Tensor x = torch::randn({1, 10});
  const at::Tensor wanted = net->forward(x);
  Json line = {{"row", row}};
  for (int run = 0; run < 6; ++run) {
    at::Tensor found;
    line["runs_us"].push_back(microseconds([&] { found = compiled(x).toTensor(); }));
    line["errors"].push_back(max_error(found, wanted));
    line["compilations"].push_back(compiled.num_compilations());
  }
  line["facts"] = facts_of(compiled);
  return line;
}

void print(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double budget_ms = argc > 1 ? std::atof(argv[1]) : 500;
  at::set_num_threads(2);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  print(first_runs("compiled_runs"));
  print(pointwise_chain("pointwise_chain/64", 64, budget_ms));
  print(pointwise_chain("pointwise_chain/1000000", 1000000, budget_ms));
  print(sample("sample_3_layers", budget_ms));
  print(fused_chain("fused_chain", budget_ms));
}
