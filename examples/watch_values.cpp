// Keeping what the nodes of a graph give: in the recorder, with processing, by kind of node, in
// env, in run_node, and with hooks.

#include <fx/fx.h>
#include <torch/torch.h>

#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Pairs of a name and a value in the order of execution.
using Listing = std::vector<std::pair<std::string, fx::Value>>;

void print(const Listing& listing) {
  for (const auto& [name, value] : listing)
    std::cout << "  " << name << ": " << fx::to_string(value) << "\n";
}

std::shared_ptr<fx::GraphModule> relu_plus_one() {
  return fx::symbolic_trace([](auto x) { return relu(x) + 1; });
}
std::shared_ptr<fx::GraphModule> plus_one_times_two() {
  return fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
}

// [recorder]
/// Keeps the value of every node. run() calls record_value once for each node it executed.
struct ValueTracker : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  void record_value(fx::Node& node, const fx::Value& value) override {
    std::cout << node.name() << ": " << fx::to_string(value) << "\n";
    values.emplace_back(node.name(), value);
  }
  Listing values;
};
// [end]

void recorder(std::shared_ptr<fx::GraphModule> gm, const at::Tensor& input) {
  ValueTracker tracker(*gm);
  fx::Value result = tracker.run({input});
  std::cout << "result: " << fx::to_string(result) << "\n" << "recorded:\n";
  print(tracker.values);
}

// [processed]
/// Records text; the values that flow from node to node stay tensors.
struct ProcessedValues : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  void record_value(fx::Node& node, const fx::Value& value) override {
    texts.emplace_back(node.name(), "Processed: " + fx::to_string(value));
  }
  std::vector<std::pair<std::string, std::string>> texts;
};
// [end]

void processed() {
  std::cout << "== processed values\n";
  auto gm = plus_one_times_two();
  ProcessedValues tracker(*gm);
  fx::Value result = tracker.run({torch::tensor({3.0, 4.0})});
  for (const auto& [name, text] : tracker.texts) std::cout << "  " << name << ": " << text << "\n";
  std::cout << "result: " << fx::to_string(result) << "\n";
}

// [by_node]
/// Absolute values of what torch.relu gives in one list, everything else in another.
struct ByNode : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  void record_value(fx::Node& node, const fx::Value& value) override {
    if (node.calls("torch.relu"))
      relus.emplace_back(node.name(), value.toTensor().abs());
    else
      others.emplace_back(node.name(), value);
  }
  Listing relus, others;
};
// [end]

void by_node() {
  std::cout << "== by kind of node\n";
  auto gm = relu_plus_one();
  ByNode tracker(*gm);
  fx::Value result = tracker.run({torch::tensor({-1.0, 2.0})});
  std::cout << "relu, absolute:\n";
  print(tracker.relus);
  std::cout << "others:\n";
  print(tracker.others);
  std::cout << "result: " << fx::to_string(result) << "\n";
}

// [env]
/// Writes to env() itself, which does no harm: run() stores the returned value there anyway.
struct EnvWriter : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    fx::Value value = fx::Interpreter::run_node(node);
    env().set(node, value);
    std::cout << node.name() << ": " << fx::to_string(env().at(node)) << "\n";
    return value;
  }
};
// [end]

void env_listing() {
  std::cout << "== env\n";
  auto gm = plus_one_times_two();
  for (bool garbage_collect_values : {true, false}) {
    EnvWriter writer(*gm, garbage_collect_values);
    writer.run({torch::tensor({1.0, 2.0})});
    std::cout << "env after the run" << (garbage_collect_values ? "" : ", values kept") << ":\n";
    for (auto [node, value] : writer.env())
      std::cout << "  " << node.name() << ": " << fx::to_string(value) << "\n";
  }
}

// [own_store]
/// Keeps values in a container of its own; they stay although run() drops them from env().
struct OwnStore : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    fx::Value value = fx::Interpreter::run_node(node);
    std::cout << node.name() << ": " << fx::to_string(value) << "\n";
    outputs.emplace_back(node.name(), value);
    return value;
  }
  Listing outputs;
};
// [end]

void own_store() {
  std::cout << "== own store\n";
  auto gm = plus_one_times_two();
  OwnStore store(*gm);
  fx::Value result = store.run({torch::tensor({1.0, 2.0})});
  std::cout << "result: " << fx::to_string(result) << "\n" << "stored:\n";
  print(store.outputs);
}

// [hooks]
/// Registers a hook in its constructor. Hooks see the values and cannot change them.
struct HookedInterpreter : fx::Interpreter {
  explicit HookedInterpreter(fx::GraphModule& gm) : fx::Interpreter(gm) {
    register_node_post_hook([this](fx::Node& node, const fx::Value& output) {
      std::cout << "hook: " << node.name() << ": " << fx::to_string(output) << "\n";
      outputs.emplace_back(node.name(), output);
    });
  }
  Listing outputs;
};
// [end]

void hooks() {
  std::cout << "== hooks\n";
  auto gm = plus_one_times_two();
  HookedInterpreter interpreter(*gm);
  fx::Value result = interpreter.run({torch::tensor({1.0, 2.0})});
  std::cout << "result: " << fx::to_string(result) << "\n" << "stored:\n";
  print(interpreter.outputs);
}

}  // namespace

int main() {
  std::cout << "== random input\n";
  torch::manual_seed(0);
  recorder(relu_plus_one(), torch::randn({2, 3}));
  std::cout << "== recorder\n";
  recorder(plus_one_times_two(), torch::tensor({1.0, 2.0}));
  processed();
  by_node();
  env_listing();
  own_store();
  hooks();
}
