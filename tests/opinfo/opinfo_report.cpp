// opinfo_report FOLDER DTYPE: runs the samples of FOLDER/DTYPE.jsonl (scripts/export_opinfo.py) by
// the Interpreter, as a plan, as a plan that replays, decomposed to core operators, and compiled by
// the llvm backend, and adds a line for each to FOLDER/DTYPE.results.jsonl. Samples that have a
// line there already are left out, so that a run that crashed goes on behind the line that is added
// for the sample at fault.

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <set>

#include "fx/compile/compile.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/decompose.h"
#include "tests/opinfo/sample.h"

namespace fx::opinfo {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSeed = 42;  // of the export
constexpr unsigned kSecondsForSample = 120;

// Tensors whose product with 1 is themselves, and which kernels know.
bool is_number_tensor(const Value& value) {
  if (!value.isTensor() || value.toTensor().layout() != at::kStrided) return false;
  switch (value.toTensor().scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kLong:
    case at::kInt:
    case at::kShort:
    case at::kChar:
    case at::kByte:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<GraphModule> module_of(const std::string& text) {
  return std::make_shared<GraphModule>(parse_text(text));
}

// The graph with a product by 1 before and behind it, so that single operators are part of
// something larger, which is what becomes a kernel. Nothing if the graph returns or changes its
// inputs.
std::shared_ptr<GraphModule> wrapped(const std::string& text, const Values& inputs,
                                     const Values& outputs) {
  const std::shared_ptr<Graph> graph = parse_text(text);
  Node& output = graph->output_node();
  for (const Node* node : output.all_input_nodes())
    if (node->is_placeholder()) return nullptr;
  std::vector<Node*> placeholders;
  for (Node& node : graph->nodes())
    if (node.is_placeholder()) placeholders.push_back(&node);
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    if (!is_number_tensor(inputs[i])) continue;
    const InsertPointGuard guard = graph->inserting_after(*placeholders.back());
    Node& product = graph->call_function("aten::mul.Scalar", {*placeholders[i], 1}, {}, "wrapped");
    placeholders[i]->replace_all_uses_with(product, [&](Node& user) { return &user != &product; });
  }
  std::vector<Argument> results;
  {
    const InsertPointGuard guard = graph->inserting_before(output);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Argument& result = output.arg(0).items()[i];
      if (is_number_tensor(outputs[i]))
        results.emplace_back(graph->call_function("aten::mul.Scalar", {result, 1}, {}, "wrapped"));
      else
        results.push_back(result);
    }
  }
  output.update_arg(0, Argument::tuple(std::move(results)));
  graph->lint();
  return std::make_shared<GraphModule>(graph);
}

// Operators warn of what the samples are there to try.
class NoWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {}
};

// What the graph gives when its numbers are double; nothing if it gives nothing then.
Values in_double(const std::string& text, Values inputs) {
  const std::shared_ptr<Graph> graph = parse_text(text);
  const auto is_narrow = [](c10::ScalarType type) {
    return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  };
  const auto widened = [&](const Argument& argument) -> Argument {
    if (argument.kind() == Argument::Kind::kDtype && is_narrow(argument.to_dtype()))
      return at::kDouble;
    return argument;
  };
  for (Node& node : graph->nodes())
    for (std::size_t i = 0; i < node.num_args(); ++i)
      node.update_arg(i, node.arg(i).map_leaves(widened));
  for (Value& input : inputs)
    if (is_narrow(input.toTensor().scalar_type())) input = input.toTensor().to(at::kDouble);
  try {
    GraphModule module(graph);
    at::manual_seed(kSeed);
    return elements(Interpreter(module).run(std::move(inputs)));
  } catch (const std::exception&) {
    return {};
  }
}

class SampleRun {
 public:
  explicit SampleRun(const Sample& sample) : sample_(sample) {}

  json report() {
    if (!sample_.error.empty()) {
      check_error();
      return std::move(report_);
    }
    for (const auto& [form, text] : sample_.graphs) {
      try {
        module_of(text)->graph().lint({.strict = true});
        if (to_text(*parse_text(to_text(*parse_text(text)))) != to_text(*parse_text(text)))
          throw std::runtime_error("the text reads back differently");
      } catch (const std::exception& error) {
        fail("text", form, error.what());
        continue;
      }
      check("interpret", form, sample_.outputs, true, [&, module = module_of(text)](Values inputs) {
        return Interpreter(module).run(std::move(inputs));
      });
      check("plan", form, sample_.outputs, true, [&, module = module_of(text)](Values inputs) {
        return module->forward(std::move(inputs));
      });
      if (form == "method") continue;
      if (form == "operators") check_core(text);
      const Compiled replay =
          compile(module_of(text), {.backend = "plan", .mode = "reduce-overhead"});
      for (int i = 0; i < 2; ++i)
        check("replay", form, sample_.outputs, true,
              [&](Values inputs) { return replay(std::move(inputs)); });
      if (form == "operators" || form == "inplace") {
        const Compiled alone = compile(module_of(text));
        for (int i = 0; i < 2; ++i)
          check("llvm", form, sample_.outputs, true,
                [&](Values inputs) { return alone(std::move(inputs)); });
        if (alone.num_compilations() > 0) explain(alone.explain(), own_nodes(text));
      }
      check_wrapped(form, text);
    }
    return std::move(report_);
  }

 private:
  // Every way has to give the message that Python gives.
  void check_error() {
    const std::string& text = sample_.graphs.at("operators");
    const auto refuses = [&](const char* way, auto run) {
      try {
        at::manual_seed(kSeed);
        run(sample_.inputs());
        fail(way, "operators", "does not refuse it: " + sample_.error);
      } catch (const std::exception& error) {
        if (std::string_view(error.what()).find(sample_.error) == std::string_view::npos)
          fail(way, "operators", std::string(error.what()) + " instead of " + sample_.error);
      }
    };
    const auto module = module_of(text);
    refuses("interpret", [&](Values inputs) { Interpreter(module).run(std::move(inputs)); });
    refuses("plan", [&](Values inputs) { module->forward(std::move(inputs)); });
    const Compiled replay =
        compile(module_of(text), {.backend = "plan", .mode = "reduce-overhead"});
    refuses("replay", [&](Values inputs) { replay(std::move(inputs)); });
    const Compiled compiled = compile(module_of(text));
    refuses("llvm", [&](Values inputs) { compiled(std::move(inputs)); });
  }

  // As a graph of core operators (run_decompositions).
  void check_core(const std::string& text) {
    std::shared_ptr<GraphModule> core;
    try {
      std::vector<at::Tensor> inputs;
      for (const Value& input : sample_.inputs()) inputs.push_back(input.toTensor());
      core = run_decompositions(*module_of(text), inputs);
    } catch (const std::exception& error) {
      fail("core", "operators", error.what());
      return;
    }
    for (const Node& node : core->graph().nodes())
      if (core_aten_decompositions().contains(node.target().str()))
        fail("core", "operators", "left " + node.format_node());
    check("core", "operators", sample_.outputs, false,
          [&](Values inputs) { return core->forward(std::move(inputs)); });
  }

  // Compiled among other operators, against the Interpreter: the operator gets dense inputs here.
  void check_wrapped(const std::string& form, const std::string& text) {
    Values wanted;
    std::shared_ptr<GraphModule> module;
    try {
      module = wrapped(text, sample_.inputs(), sample_.outputs);
      if (!module) return;
      at::manual_seed(kSeed);
      wanted = elements(Interpreter(module).run(sample_.inputs()));
    } catch (const std::exception&) {
      return;  // the operator refuses dense inputs
    }
    const Names own = own_nodes(text);
    bool made = true;
    for (const char* mode : {"default", "reduce-overhead"}) {
      const Compiled compiled = compile(module, {.mode = mode});
      for (int i = 0; i < 2 && made; ++i)
        made = check("llvm among others", form, wanted, false,
                     [&](Values inputs) { return compiled(std::move(inputs)); });
      if (made) explain(compiled.explain(), own);
      if (form != "operators") break;
    }
  }

  using Names = std::set<std::string, std::less<>>;

  static Names own_nodes(const std::string& text) {
    Names names;
    const std::shared_ptr<Graph> graph = parse_text(text);
    for (const Node& node : graph->nodes())
      if (!node.is_placeholder()) names.insert(std::string(node.name()));
    return names;
  }

  // Whether a node of the sample became part of a kernel, or why the first did not.
  void explain(const std::string& text, const Names& own) {
    if (report_["llvm"] == "kernel") return;
    std::string name, reason;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("    ")) {
        name = line.substr(0, line.find_first_of(": "));
      } else if (own.contains(name)) {
        if (line.starts_with("    in kernel_")) {
          report_["llvm"] = "kernel";
          return;
        }
        if (reason.empty() && line.starts_with("    an operator: ")) reason = line.substr(17);
      }
    }
    report_["llvm"] = "operators";
    report_["reason"] = reason;
  }

  template <typename Run>
  bool check(const char* way, const std::string& form, const Values& wanted, bool strides,
             Run run) {
    try {
      at::manual_seed(kSeed);
      const Values inputs = sample_.inputs();
      Values found = elements(run(inputs));
      if (form == "inplace" && strides) {
        // The result is the first input, which was written to.
        const std::string text = difference(inputs[0], wanted[0], {.values = sample_.judge_values});
        if (!text.empty()) throw std::runtime_error("input 0: " + text);
      }
      if (found.size() != wanted.size()) throw std::runtime_error("another number of results");
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        Judge judge{.values = sample_.judge_values, .strides = strides};
        std::string text = difference(found[i], wanted[i], judge);
        if (!text.empty() &&
            (std::string_view(way).starts_with("llvm") || way == std::string_view("core"))) {
          const Values truth = in_double(sample_.graphs.at(form), sample_.inputs());
          judge.truth = truth.size() > i ? &truth[i] : nullptr;
          judge.times_as_far = way == std::string_view("core") ? 4 : 0;
          text = difference(found[i], wanted[i], judge);
        }
        if (!text.empty()) throw std::runtime_error("result " + std::to_string(i) + ": " + text);
      }
      return true;
    } catch (const std::exception& error) {
      fail(way, form, error.what());
      return false;
    }
  }

  void fail(const char* way, const std::string& form, const std::string& what) {
    report_["bad"].push_back({{"way", way}, {"form", form}, {"what", what.substr(0, 600)}});
  }

  const Sample& sample_;
  json report_ = json::object();
};

int report_samples(const std::string& folder, const std::string& dtype) {
  const Storages storages(folder + "/" + dtype + ".safetensors");
  const std::string path = folder + "/" + dtype + ".results.jsonl";
  std::size_t done = 0;
  std::ifstream earlier(path);
  for (std::string line; std::getline(earlier, line);) ++done;
  std::ofstream results(path, std::ios::app);
  std::ifstream samples(folder + "/" + dtype + ".jsonl");
  for (std::string line; std::getline(samples, line);) {
    if (done > 0) {
      --done;
      continue;
    }
    const json item = json::parse(line);
    json report = json::object();
    if (!item.contains("missing")) {
      alarm(kSecondsForSample);
      report = SampleRun(Sample(item, storages)).report();
    }
    results << report.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace fx::opinfo

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: opinfo_report FOLDER DTYPE\n";
    return 2;
  }
  const c10::NoGradGuard no_grad;
  fx::opinfo::NoWarnings quiet;
  c10::WarningUtils::WarningHandlerGuard handler(&quiet);
  at::set_num_threads(1);
  return fx::opinfo::report_samples(argv[1], argv[2]);
}
