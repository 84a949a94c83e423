#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/compile/lower_table.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/text.h"
#include "tests/compile/random_args.h"
#include "tests/opinfo/sample.h"

// fxcpp_bench_ops CALLS ELEMENTS [OPERATOR [FOLDER DTYPE]]: times single operators, compiled and by
// LibTorch: one line of JSON each. For each operator that has a lowering (or only those in whose
// name OPERATOR occurs), CALLS calls with random arguments of about ELEMENTS elements; then the
// samples of FOLDER/DTYPE.jsonl (scripts/export_opinfo.py) with more than 10,000 elements.
// benchmarks/ops.py makes a table of the lines.
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::int64_t kLargeSample = 10000;  // elements
constexpr double kSlower = 1.05;
constexpr int kTries = 40;  // for a call that eager takes

double microseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Pair {
  double eager_us;
  double fx_us;
  double ratio() const { return fx_us / eager_us; }
};

// The fastest of each, by turns.
Pair measure(const std::function<void()>& eager, const std::function<void()>& compiled,
             double budget_us) {
  Pair out{microseconds(eager), microseconds(compiled)};
  for (double spent = 0; spent < budget_us;) {
    const double e = microseconds(eager);
    const double f = microseconds(compiled);
    spent += e + f;
    out.eager_us = std::min(out.eager_us, e);
    out.fx_us = std::min(out.fx_us, f);
  }
  return out;
}

std::int64_t largest(const fx::Value& value) {
  if (value.isTensor()) return value.toTensor().defined() ? value.toTensor().numel() : 0;
  std::int64_t out = 0;
  if (value.isTuple())
    for (const fx::Value& item : value.toTupleRef().elements()) out = std::max(out, largest(item));
  if (value.isList())
    for (const fx::Value& item : value.toList()) out = std::max(out, largest(item));
  return out;
}

std::string sizes_text(const fx::Value& value) {
  std::ostringstream out;
  if (value.isTensor())
    out << value.toTensor().scalar_type() << value.toTensor().sizes();
  else if (value.isList() || value.isTuple())
    for (const fx::Value& item : fx::elements(value)) out << sizes_text(item) << " ";
  else
    out << fx::to_string(value);
  return out.str();
}

class Report {
 public:
  explicit Report(double budget_us) : budget_us_(budget_us) {}

  // Nothing where the two do not run. What is slower is measured again, for longer.
  void add(const std::string& source, const std::string& op, const std::string& call,
           std::int64_t elements, const fx::Compiled& compiled, const fx::Values& inputs,
           const std::function<void()>& eager) {
    const std::function<void()> ours = [&] { compiled(inputs); };
    for (int threads : {1, 2}) {
      at::set_num_threads(threads);
      Pair found = measure(eager, ours, budget_us_);
      if (found.ratio() > kSlower) {
        const Pair again = measure(eager, ours, 4 * budget_us_);
        if (again.ratio() < found.ratio()) found = again;
      }
      const json line = {{"source", source},     {"op", op},
                         {"call", call},         {"elements", elements},
                         {"threads", threads},   {"eager_us", found.eager_us},
                         {"fx_us", found.fx_us}, {"kernel", compiled.num_kernel_codes() > 0}};
      std::cout << line.dump() << std::endl;
    }
  }

 private:
  double budget_us_;
};

// The call of one operator: tensors are inputs, everything else stands in the graph.
class CallGraph {
 public:
  CallGraph(const std::string& name, const fx::Overload& overload,
            const std::vector<fx::Value>& stack)
      : graph_(std::make_shared<fx::Graph>()) {
    for (const fx::Value& value : stack) find_inputs(value);
    std::vector<fx::Argument> args;
    std::vector<std::pair<std::string, fx::Argument>> kwargs;
    std::size_t at = 0;
    const auto convert = [&](const fx::Value& value) -> fx::Argument {
      if (value.isTensor() && is_number(value.toTensor()))
        return fx::argument_of(value.toTensor().item(), [](const fx::Value&) -> fx::Argument {
          throw std::invalid_argument("no number");
        });
      if (value.isTensor()) return *nodes_.at(at++);
      throw std::invalid_argument("an argument that no graph holds");
    };
    for (std::size_t i = 0; i < stack.size(); ++i) {
      fx::Argument argument = fx::argument_of(stack[i], convert);
      if (i < overload.num_positional)
        args.push_back(std::move(argument));
      else
        kwargs.emplace_back(overload.rules[i].name, std::move(argument));
    }
    fx::Node& call = graph_->call_function(name, std::move(args));
    for (auto& [key, argument] : kwargs) call.update_kwarg(key, std::move(argument));
    graph_->output(call);
  }

  std::shared_ptr<fx::GraphModule> module() const {
    return std::make_shared<fx::GraphModule>(graph_);
  }
  const fx::Values& inputs() const { return inputs_; }

 private:
  static bool is_number(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->is_wrapped_number();
  }

  void find_inputs(const fx::Value& value) {
    if (value.isTensor() && value.toTensor().defined() && !is_number(value.toTensor())) {
      nodes_.push_back(&graph_->placeholder("x" + std::to_string(nodes_.size())));
      inputs_.push_back(value);
    } else if (value.isList()) {
      for (const fx::Value& item : value.toList()) find_inputs(item);
    }
  }

  std::shared_ptr<fx::Graph> graph_;
  std::vector<fx::Node*> nodes_;
  fx::Values inputs_;
};

const fx::Overload& overload_of(std::string_view name) {
  const fx::OpInfo& info = fx::OpInfo::of(*fx::Function::get(name));
  return info.overloads.at(0);
}

void time_calls(Report& report, const std::string& name, int calls, std::int64_t elements) {
  const fx::Overload& overload = overload_of(name);
  int done = 0;
  for (int i = 0; done < calls && i < kTries * calls; ++i) {
    fx::loops::ArgMaker maker(std::hash<std::string>()(name) + static_cast<std::uint64_t>(i),
                              elements);
    std::int64_t size = 0;
    std::string call;
    std::vector<fx::Value> args;
    try {
      args = maker.make(overload);
      std::vector<fx::Value> stack = args;
      overload.handle.callBoxed(stack);
      for (const fx::Value& result : stack) size = std::max(size, largest(result));
      for (const fx::Value& arg : args) {
        size = std::max(size, largest(arg));
        call += (call.empty() ? "" : ", ") + sizes_text(arg);
      }
    } catch (const std::exception&) {
      continue;  // eager refuses it
    }
    if (size <= kLargeSample) continue;
    const CallGraph graph(name, overload, args);
    const fx::Compiled compiled = fx::compile(graph.module());
    for (int run = 0; run < 2; ++run) compiled(graph.inputs());
    report.add("random", name, call, size, compiled, graph.inputs(), [&] {
      std::vector<fx::Value> stack = args;
      overload.handle.callBoxed(stack);
    });
    ++done;
  }
}

void time_samples(Report& report, const std::string& folder, const std::string& dtype,
                  const std::string& wanted) {
  const fx::opinfo::Storages storages(folder + "/" + dtype + ".safetensors");
  std::ifstream lines(folder + "/" + dtype + ".jsonl");
  for (std::string line; std::getline(lines, line);) {
    const json item = json::parse(line);
    if (item.contains("missing") || item.contains("error")) continue;
    const fx::opinfo::Sample sample(item, storages);
    if (sample.op.find(wanted) == std::string::npos) continue;
    const fx::Values inputs = sample.inputs();
    std::int64_t size = 0;
    for (const fx::Value& value : inputs) size = std::max(size, largest(value));
    for (const fx::Value& value : sample.outputs) size = std::max(size, largest(value));
    if (size <= kLargeSample) continue;
    const auto module =
        std::make_shared<fx::GraphModule>(fx::parse_text(sample.graphs.at("operators")));
    const fx::Compiled eager = fx::compile(module, {.backend = "eager"});
    const fx::Compiled compiled = fx::compile(module);
    for (int run = 0; run < 2; ++run) {
      compiled(inputs);
      eager(inputs);
    }
    report.add("opinfo", sample.op + " " + dtype, "sample " + std::to_string(sample.number), size,
               compiled, inputs, [&] { eager(inputs); });
  }
}

class NoWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4 && argc != 6) {
    std::fprintf(stderr, "usage: fxcpp_bench_ops CALLS ELEMENTS [OPERATOR [FOLDER DTYPE]]\n");
    return 2;
  }
  const int calls = std::atoi(argv[1]);
  const std::int64_t elements = std::atoll(argv[2]);
  const std::string wanted = argc > 3 ? argv[3] : "";
  const c10::NoGradGuard no_grad;
  NoWarnings quiet;
  const c10::WarningUtils::WarningHandlerGuard handler(&quiet);
  Report report(6000);
  for (const fx::loops::Lowering& lowering : fx::loops::lowerings())
    if (calls > 0 && lowering.name.find(wanted) != std::string_view::npos)
      time_calls(report, std::string(lowering.name), calls, elements);
  if (argc == 6) time_samples(report, argv[4], argv[5], wanted);
  return 0;
}
