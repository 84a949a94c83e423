#include "tests/random/minimise.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"

namespace fx::fuzz {
namespace {

// The value of every node at the time it was made, by name.
class Recorder : public Interpreter {
 public:
  using Interpreter::Interpreter;
  void record_value(Node& node, const Value& value) override {
    values.insert_or_assign(std::string(node.name()), clone_tensors(value));
  }
  std::map<std::string, Value> values;
};

std::map<std::string, Value> record(const Program& program) {
  const at::NoGradGuard no_grad;
  const Program copy = copy_of(program);
  if (copy.draws) at::manual_seed(2026);
  Recorder recorder(*copy.module);
  recorder.run(copy.inputs);
  return std::move(recorder.values);
}

bool same_kind(const Value& a, const Value& b) {
  return a.isTensor() && b.isTensor() && a.toTensor().scalar_type() == b.toTensor().scalar_type() &&
         a.toTensor().sizes() == b.toTensor().sizes();
}

// Nodes without users go, whatever effects they have. Whether there were any.
bool sweep(Graph& graph) {
  std::vector<Node*> nodes = graph.nodes().to_vector();
  std::ranges::reverse(nodes);
  bool any = false;
  for (Node* node : nodes) {
    if (node->is_placeholder() || node->is_output() || node->num_users() > 0) continue;
    graph.erase_node(*node);
    any = true;
  }
  return any;
}

std::vector<std::string> names_of_calls(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (!node.is_placeholder() && !node.is_output()) names.emplace_back(node.name());
  return names;
}

class Minimiser {
 public:
  Minimiser(const Program& program, const std::function<bool(const Program&)>& fails,
            double seconds)
      : best_(copy_of(program)),
        fails_(fails),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(seconds))) {
    best_.eager.reset();
  }

  Program run() {
    values_ = record(best_);
    bool smaller = true;
    while (smaller && !late()) {
      smaller = return_one_value();
      smaller |= drop_results();
      smaller |= cut_nodes();
      smaller |= bypass_nodes();
      smaller |= drop_inputs();
      smaller |= drop_arguments();
      smaller |= shrink_shapes();
      smaller |= simplify_values();
    }
    return std::move(best_);
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() > end_; }

  // Takes the edited copy over if it still fails, without the nodes that nobody reads if they are
  // not what fails. The edit says whether there was anything to do.
  bool attempt(const std::function<bool(Program&)>& edit) {
    for (const bool swept : {true, false}) {
      if (late()) return false;
      Program candidate = copy_of(best_);
      try {
        if (!edit(candidate)) return false;
        const bool same = swept && !sweep(candidate.module->graph());
        candidate.module->delete_unused_attributes();
        candidate.module->graph().lint({.strict = true});
        candidate.module->recompile();
        if (fails_(candidate)) {
          values_ = record(candidate);
          best_ = std::move(candidate);
          return true;
        }
        if (same) return false;
      } catch (const std::exception&) {
      }
    }
    return false;
  }

  // A new input with that value, behind the other ones that are given.
  static Node& add_input(Program& program, const Value& value) {
    Graph& graph = program.module->graph();
    const auto inputs = graph.placeholders();
    Node& place = program.inputs.size() < inputs.size() ? *inputs[program.inputs.size()]
                  : inputs.empty()                      ? graph.nodes().front()
                                                        : *inputs.back()->next();
    const InsertPointGuard guard = graph.inserting_before(place);
    program.inputs.push_back(value);
    // The targets of placeholders are unique too.
    std::string name;
    auto is_taken = [&] {
      return std::ranges::any_of(inputs, [&](const Node* input) {
        return input->target().str() == name || input->name() == name;
      });
    };
    for (int i = 0; name.empty() || is_taken(); ++i) name = "input" + std::to_string(i);
    return graph.placeholder(name);
  }

  // The node becomes an input or a number with the value it had. False if that is neither.
  bool replace_by_value(Program& program, Node& node) {
    const auto value = values_.find(std::string(node.name()));
    if (value == values_.end()) return false;
    if (value->second.isTensor()) {
      node.replace_all_uses_with(add_input(program, clone_tensors(value->second)));
    } else if (value->second.isInt()) {
      for (Node* user : node.users().to_vector())
        user->replace_input_with(node, value->second.toInt());
    } else {
      return false;
    }
    return true;
  }

  // Only one node is returned, the earliest that will do; nothing behind it is left.
  bool return_one_value() {
    const Argument result = best_.module->graph().output_node().arg(0);
    if (result.is_node() && returned_ == result.node().name()) return false;
    for (const std::string& name : names_of_calls(best_.module->graph())) {
      const bool done = attempt([&](Program& program) {
        Graph& graph = program.module->graph();
        Node* node = graph.find_node(name);
        graph.output_node().set_args({*node});
        while (node->next() != &graph.output_node()) {
          Node& behind = *graph.output_node().prev();
          if (behind.num_users() > 0) return false;
          graph.erase_node(behind);
        }
        return true;
      });
      if (!done) continue;
      returned_ = name;
      return true;
    }
    return false;
  }

  bool drop_results() {
    const Argument result = best_.module->graph().output_node().arg(0);
    bool smaller = false;
    if (result.kind() != Argument::Kind::kList && result.kind() != Argument::Kind::kTuple &&
        result.kind() != Argument::Kind::kDict)
      return false;
    std::vector<std::string> nodes;
    result.for_each_node([&](Node& node) { nodes.emplace_back(node.name()); });
    for (std::size_t left_out = 0; left_out < nodes.size() && nodes.size() > 1;) {
      std::vector<std::string> rest = nodes;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
      const bool done = attempt([&](Program& program) {
        std::vector<Argument> items;
        for (const std::string& name : rest)
          items.emplace_back(program.module->graph().find_node(name));
        program.module->graph().output_node().set_args({Argument::tuple(std::move(items))});
        return true;
      });
      smaller |= done;
      if (done)
        nodes = std::move(rest);
      else
        ++left_out;
    }
    return smaller;
  }

  // Runs of nodes, long ones first, are replaced by inputs with their values, or just left out.
  bool cut_nodes() {
    bool smaller = false;
    std::size_t length = std::max<std::size_t>(best_.module->graph().size() / 2, 1);
    for (;; length /= 2) {
      for (std::size_t from = 0; !late();) {
        const std::vector<std::string> names = names_of_calls(best_.module->graph());
        if (from >= names.size()) break;
        const std::size_t size = std::min(length, names.size() - from);
        const std::span<const std::string> part = std::span(names).subspan(from, size);
        const bool done = attempt([&](Program& program) { return cut(program, part); });
        smaller |= done;
        // What stands there now was behind the part that went.
        if (!done) from += size;
      }
      if (length == 1 || late()) break;
    }
    return smaller;
  }

  bool cut(Program& program, std::span<const std::string> part) {
    Graph& graph = program.module->graph();
    for (auto name = part.rbegin(); name != part.rend(); ++name) {
      Node* node = graph.find_node(*name);
      if (node->num_users() > 0 && !replace_by_value(program, *node)) return false;
      graph.erase_node(*node);
    }
    return true;
  }

  // A node that looks like one of its inputs gives way to it.
  bool bypass_nodes() {
    bool smaller = false;
    for (const std::string& name : names_of_calls(best_.module->graph())) {
      const Node* node = best_.module->graph().find_node(name);
      if (!node) continue;
      std::vector<std::string> inputs;
      for (const Node* input : node->all_input_nodes()) inputs.emplace_back(input->name());
      for (const std::string& input : inputs) {
        if (!same_kind(values_[name], values_[input])) continue;
        const bool done = attempt([&](Program& program) {
          Graph& graph = program.module->graph();
          Node* gone = graph.find_node(name);
          gone->replace_all_uses_with(*graph.find_node(input));
          graph.erase_node(*gone);
          return true;
        });
        smaller |= done;
        if (done) break;
      }
    }
    return smaller;
  }

  static void erase_input(Program& program, std::size_t index) {
    Graph& graph = program.module->graph();
    graph.erase_node(*graph.placeholders()[index]);
    if (index < program.inputs.size())
      program.inputs.erase(program.inputs.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // Inputs that nobody reads go; one input takes the place of another one like it.
  bool drop_inputs() {
    bool smaller = false;
    for (std::size_t i = best_.module->graph().placeholders().size(); i-- > 0;) {
      bool done = attempt([&](Program& program) {
        Node& input = *program.module->graph().placeholders()[i];
        if (i >= program.inputs.size()) replace_by_value(program, input);
        if (input.num_users() > 0) return false;
        erase_input(program, i);
        return true;
      });
      for (std::size_t other = 0; other < i && !done && i < best_.inputs.size(); ++other) {
        if (!same_kind(best_.inputs[i], best_.inputs[other])) continue;
        done = attempt([&](Program& program) {
          const auto inputs = program.module->graph().placeholders();
          inputs[i]->replace_all_uses_with(*inputs[other]);
          erase_input(program, i);
          return true;
        });
      }
      smaller |= done;
    }
    return smaller;
  }

  bool drop_arguments() {
    bool smaller = false;
    for (const std::string& name : names_of_calls(best_.module->graph())) {
      auto change = [&](auto&& edit) {
        smaller |= attempt([&](Program& program) {
          Node* node = program.module->graph().find_node(name);
          return node && edit(*node);
        });
      };
      const Node* node = best_.module->graph().find_node(name);
      if (!node) continue;
      for (std::size_t k = node->kwargs().size(); k-- > 0;)
        change([k](Node& edited) {
          if (k >= edited.kwargs().size()) return false;
          Kwargs kwargs(edited.kwargs().begin(), edited.kwargs().end());
          kwargs.erase(kwargs.begin() + static_cast<std::ptrdiff_t>(k));
          edited.set_kwargs(std::move(kwargs));
          return true;
        });
      change([](Node& edited) {
        if (edited.num_args() < 2) return false;
        Args args(edited.args().begin(), edited.args().end() - 1);
        edited.set_args(std::move(args));
        return true;
      });
    }
    return smaller;
  }

  // Dimensions of one size in all inputs, then those of single inputs, become shorter.
  bool shrink_shapes() {
    bool smaller = false;
    std::set<std::int64_t> sizes;
    for (const Value& input : best_.inputs)
      if (input.isTensor())
        for (const std::int64_t size : input.toTensor().sizes())
          if (size > 1) sizes.insert(size);
    for (const std::int64_t size : sizes)
      for (const std::int64_t to : {std::int64_t{1}, size / 2}) {
        const bool done = attempt([&](Program& program) {
          for (Value& input : program.inputs)
            if (input.isTensor()) input = shortened(input.toTensor(), size, to);
          return to < size;
        });
        smaller |= done;
        if (done) break;
      }
    for (std::size_t i = 0; i < best_.inputs.size(); ++i) {
      if (!best_.inputs[i].isTensor()) continue;
      smaller |= attempt([&](Program& program) {
        const at::Tensor first = program.inputs[i].toTensor();
        if (first.dim() == 0 || first.numel() == 0) return false;
        program.inputs[i] = first.flatten()[0].clone();
        return true;
      });
      for (std::int64_t d = 0; d < best_.inputs[i].toTensor().dim(); ++d)
        smaller |= attempt([&](Program& program) {
          const at::Tensor tensor = program.inputs[i].toTensor();
          if (tensor.size(d) < 2) return false;
          program.inputs[i] = tensor.narrow(d, 0, 1).clone();
          return true;
        });
    }
    return smaller;
  }

  static at::Tensor shortened(at::Tensor tensor, std::int64_t size, std::int64_t to) {
    for (std::int64_t d = 0; d < tensor.dim(); ++d)
      if (tensor.size(d) == size) tensor = tensor.narrow(d, 0, to);
    return tensor.clone();
  }

  // Inputs of zeros or ones, in memory of their own and in order.
  bool simplify_values() {
    for (std::size_t i = 0; i < best_.inputs.size(); ++i) {
      if (!best_.inputs[i].isTensor()) continue;
      auto give = [&](auto&& make) {
        return attempt([&](Program& program) {
          const at::Tensor old = program.inputs[i].toTensor();
          const at::Tensor made = make(old);
          if (same_bits(old, made) && old.strides() == made.strides()) return false;
          program.inputs[i] = made;
          return true;
        });
      };
      const at::TensorOptions options = best_.inputs[i].toTensor().options();
      const std::vector<std::int64_t> shape = best_.inputs[i].toTensor().sizes().vec();
      if (give([&](const at::Tensor&) { return at::zeros(shape, options); })) continue;
      if (is_zero(best_.inputs[i].toTensor())) continue;
      if (give([&](const at::Tensor&) { return at::ones(shape, options); })) continue;
      give([](const at::Tensor& old) { return old.contiguous().clone(); });
    }
    // Only a means: values alone are no reason for another round.
    return false;
  }
  static bool is_zero(const at::Tensor& tensor) {
    return same_bits(tensor, at::zeros(tensor.sizes(), tensor.options()));
  }

  Program best_;
  std::map<std::string, Value> values_;  // of best_
  const std::function<bool(const Program&)>& fails_;
  std::chrono::steady_clock::time_point end_;
  std::string returned_;
};

// Failures of one kind have the same of these words in their messages, or none.
std::string_view kind_of(const std::string& message) {
  for (const std::string_view words :
       {"threw: ", "a second run changes", "results differ", "after the run", "no longer writes",
        "shares memory", "the text", "the structure"})
    if (message.find(words) != std::string::npos) return words;
  return {};
}

}  // namespace

Program minimise(const Program& program, const std::function<bool(const Program&)>& fails,
                 const MinimiseOptions& options) {
  const at::NoGradGuard no_grad;
  return Minimiser(program, fails, options.seconds).run();
}

Program minimise(const Program& program, const Failure& failure, const MinimiseOptions& options) {
  // Eager calls are no part of a smaller program: a failure of that check is kept whole.
  Program plain = program;
  plain.eager.reset();
  if (failure.check(plain).empty()) return copy_of(program);
  return minimise(
      program,
      [&](const Program& candidate) {
        record(candidate);
        const std::string message = failure.check(candidate);
        return !message.empty() && kind_of(message) == kind_of(failure.message);
      },
      options);
}

}  // namespace fx::fuzz
