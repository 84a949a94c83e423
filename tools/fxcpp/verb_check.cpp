#include <ATen/core/Tensor.h>

#include <algorithm>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/io/npy.h"
#include "tools/fxcpp/backend.h"
#include "tools/fxcpp/compare.h"
#include "tools/fxcpp/inputs.h"
#include "tools/fxcpp/model.h"
#include "tools/fxcpp/node_compare.h"
#include "tools/fxcpp/pipeline.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

struct CheckFlags {
  std::string backend = "plan";
  std::vector<std::string> against;
  std::string passes;
  bool all_nodes = false;
  ToleranceFlags tolerance;
};

/// What the outputs are compared with: a backend, or one file for each output.
struct Reference {
  std::optional<Backend> backend;
  std::vector<std::string> files;  ///< by output, empty: not compared
  std::string name;                ///< for messages
};

/// @throws UsageError for anything that is neither a backend nor a .npy file of an output.
Reference read_reference(const std::vector<std::string>& against, const Model& model) {
  Reference reference;
  if (against.empty()) {
    reference.backend = Backend::kInterpret;
    reference.name = "interpret";
    return reference;
  }
  std::vector<std::string> unnamed;
  reference.files.resize(model.outputs.size());
  for (const std::string& text : against) {
    if (!text.ends_with(".npy")) {
      if (against.size() > 1)
        throw UsageError(ErrorCode::kBadOption,
                         "--against '" + text + "': wanted one backend, or .npy files alone");
      reference.backend = backend_from_name(text);
      reference.name = text;
      return reference;
    }
    const std::size_t equals = text.find('=');
    std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    if (path.starts_with('@')) path.erase(0, 1);
    reference.name += (reference.name.empty() ? "" : ", ") + path;
    if (equals == std::string::npos) {
      unnamed.push_back(path);
      continue;
    }
    const std::string name = text.substr(0, equals);
    const auto output = std::ranges::find(model.outputs, name, &ModelOutput::name);
    if (output == model.outputs.end()) {
      std::vector<std::string> names;
      for (const ModelOutput& known : model.outputs) names.push_back(known.name);
      throw UsageError(ErrorCode::kBadOption, "--against: the model has no output '" + name + "'" +
                                                  did_you_mean(name, names) + ". It has " +
                                                  any_of(names));
    }
    reference.files[static_cast<std::size_t>(output - model.outputs.begin())] = path;
  }
  std::size_t next = 0;
  for (const std::string& path : unnamed) {
    while (next < reference.files.size() && !reference.files[next].empty()) ++next;
    if (next == reference.files.size())
      throw UsageError(ErrorCode::kBadOption, "--against '" + path +
                                                  "' is one file too many: " + "the model has " +
                                                  counted(model.outputs.size(), "output"));
    reference.files[next++] = path;
  }
  return reference;
}

/// Compares outputs, fills table and JSON; returns how many failed.
class OutputCheck {
 public:
  OutputCheck(Report& report, const Model& model) : report_(report), model_(model) {
    report.json()["outputs"] = Json::array();
  }

  /// @param node that makes the output, or null.
  void add(std::size_t index, const Comparison& c, const Node* node) {
    const std::string& name = model_.outputs[index].name;
    table_.add({name,
                {c.pass ? "PASS" : "FAIL", c.pass ? Style::kGood : Style::kBad},
                short_number(c.max_abs.value),
                index_text(c.max_abs.index),
                short_number(c.max_rel.value),
                index_text(c.max_rel.index),
                short_number(c.tolerance.rtol),
                short_number(c.tolerance.atol)});
    Json entry{{"name", name}};
    entry.update(comparison_json(c));
    report_.json()["outputs"].push_back(std::move(entry));
    ++compared_;
    if (c.pass) return;
    failures_.push_back(name + ": " + explain(c));
    if (node != nullptr) failing_nodes_.push_back(node);
  }

  std::size_t finish() {
    report_.table("", std::move(table_));
    for (const std::string& failure : failures_) report_.line({{failure}});
    return failures_.size();
  }
  std::size_t compared() const { return compared_; }
  const std::vector<const Node*>& failing_nodes() const { return failing_nodes_; }

 private:
  Report& report_;
  const Model& model_;
  Table table_{
      {"output", "verdict", ">max abs error", "at", ">max rel error", "at", ">rtol", ">atol"}};
  std::vector<std::string> failures_;
  std::vector<const Node*> failing_nodes_;
  std::size_t compared_ = 0;
};

/// Departing nodes that count, as they feed what is wrong: failing outputs, else nodes that are the
/// same computation in both graphs and yet depart. A node that a pass gave another origin is no
/// fault by itself.
std::unordered_set<const Node*> suspects(const Graph& graph,
                                         const std::vector<NodeComparison>& nodes,
                                         const std::vector<const Node*>& failing_outputs) {
  std::vector<const Node*> wrong = failing_outputs;
  if (wrong.empty())
    for (const NodeComparison& node : nodes)
      if (!node.comparison.pass && node.same_computation) wrong.push_back(node.node);
  return feeding(graph, wrong);
}

/// The part of --all-nodes. Returns whether no node departs that is the same computation in both
/// graphs.
bool check_nodes(Report& report, const Graph& graph, const std::vector<NodeComparison>& nodes,
                 const std::vector<const Node*>& failing_outputs) {
  Json& json = report.json();
  json["nodes"] = Json::array();
  const std::unordered_set<const Node*> suspected = suspects(graph, nodes, failing_outputs);
  const NodeComparison* first = nullptr;
  std::size_t departing = 0;
  bool agree = true;
  for (const NodeComparison& node : nodes) {
    Json entry{{"name", node.node->name()},
               {"target", node.node->target().str()},
               {"reference", node.reference}};
    entry.update(comparison_json(node.comparison));
    json["nodes"].push_back(std::move(entry));
    if (node.comparison.pass) continue;
    ++departing;
    if (node.same_computation) agree = false;
    if (first == nullptr && suspected.contains(node.node)) first = &node;
  }
  json["departing_nodes"] = departing;
  json["first_departing_node"] = first != nullptr ? Json(first->node->name()) : Json(nullptr);
  if (departing == 0) {
    report.line({{"all " + counted(nodes.size(), "node") + " agree"}});
    return agree;
  }
  const std::string count =
      std::to_string(departing) + " of " + counted(nodes.size(), "node") + " depart";
  if (first == nullptr) {
    report.line(
        {{count + (failing_outputs.empty() ? "; the passes gave each of them another origin"
                                           : "; none of them feeds the outputs that differ")}});
    return agree;
  }
  report.line(
      {{count + "; the first is " + std::string(first->node->name()) +
        (first->reference == first->node->name() ? ""
                                                 : ", which stands for " + first->reference)}});
  report.line({{"  " + first->node->format_node()}});
  report.line({{"  " + explain(first->comparison)}});
  if (!first->origin.empty()) report.line({{"  from " + first->origin, Style::kDim}});
  return agree;
}

/// The node behind each output of the model, null for a constant.
std::vector<const Node*> output_nodes(const Graph& graph, std::size_t count) {
  const Argument& result = graph.output_node().arg(0);
  if (!result.is_aggregate()) return {result.node_or_null()};
  std::vector<const Node*> nodes;
  for (const Argument& item : result.items()) nodes.push_back(item.node_or_null());
  nodes.resize(count);
  return nodes;
}

}  // namespace

int run_check(Args args) {
  Command command("check",
                  "Runs a model and compares what it returns with the interpreter, another backend "
                  "or reference "
                  "files; the exit status is 1 when something differs.",
                  {{"fxcpp check model.pt2", "the plan against the interpreter"},
                   {"fxcpp check model.pt2 -i x=@x.npy --against y.npy", "against Python's output"},
                   {"fxcpp check model.pt2 --all-nodes", "the first node that departs"},
                   {"fxcpp check model.pt2 --passes fuse_conv_bn --all-nodes", "what a pass did"},
                   {"fxcpp check model.pt2 --passes fuse_conv_bn", "a model after passes"},
                   {"fxcpp check model.pt2 --rtol 1e-3", "a tolerance of your own"}});
  std::string file;
  LoadFlags load_flags;
  InputFlags input_flags;
  CheckFlags flags;
  int threads = 0;
  add_load_options(command, file, load_flags);
  add_input_options(command, input_flags);
  command.app()
      .add_option("--backend", flags.backend, "what is checked: interpret or plan (default: plan)")
      ->type_name("NAME");
  command
      .add_list("--against", flags.against,
                "a backend (default: interpret), or ref.npy or OUTPUT=ref.npy; repeatable")
      ->type_name("REFERENCE");
  command.app()
      .add_option("--passes", flags.passes,
                  "check the model after these passes; the reference runs without them")
      ->type_name("PIPELINE");
  command.app().add_flag("--all-nodes", flags.all_nodes,
                         "compare every node with the interpreter, not only the outputs");
  command.app()
      .add_option("--rtol", flags.tolerance.rtol,
                  "relative tolerance (default: by dtype, 1.3e-6 for f32)")
      ->type_name("X");
  command.app()
      .add_option("--atol", flags.tolerance.atol,
                  "absolute tolerance (default: by dtype, 1e-5 for f32)")
      ->type_name("X");
  add_threads_option(command, threads);
  if (!command.parse(args)) return 0;
  const Backend backend = backend_from_name(flags.backend);
  set_threads(threads);

  const Model model = load_model(file, load_flags);
  const Reference reference = read_reference(flags.against, model);
  const ModelInputs inputs = make_inputs(model, input_flags, command.talk());

  // Each run gets a module of its own, since programs may write to their buffers.
  const std::uint64_t seed = input_flags.seed;
  Values expected(model.outputs.size());
  if (reference.backend) {
    expected = run_backend(*model.module->deep_copy(), *reference.backend, inputs.clone(), seed,
                           command.talk());
  } else {
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!reference.files[i].empty()) expected[i] = io::read_npy(reference.files[i]);
  }
  Model subject = model;
  if (!flags.passes.empty()) {
    subject.module = model.module->deep_copy();
    run_pipeline(subject, flags.passes, &inputs, command.talk());
  }
  const Values actual =
      run_backend(*subject.module->deep_copy(), backend, inputs.clone(), seed, command.talk());

  Report report("check");
  Json& json = report.json();
  json["file"] = file;
  json["backend"] = flags.backend;
  json["against"] = reference.name;
  if (!flags.passes.empty()) json["passes"] = flags.passes;
  json["seed"] = seed;
  json["inputs"] = inputs_json(inputs);
  json["verdict"] = "";
  OutputCheck outputs(report, model);
  const Graph& graph = subject.module->graph();
  const std::vector<const Node*> result_nodes = output_nodes(graph, actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!reference.backend && reference.files[i].empty()) {
      command.talk().warn("output " + model.outputs[i].name + " has no reference file");
      continue;
    }
    outputs.add(i, compare(actual[i], expected.at(i), flags.tolerance), result_nodes[i]);
  }
  const std::size_t failures = outputs.finish();
  bool pass = failures == 0;
  if (flags.all_nodes) {
    const std::vector<NodeComparison> nodes = compare_nodes(
        *subject.module, *model.module, backend, inputs, seed, flags.tolerance, command.talk());
    if (!check_nodes(report, graph, nodes, outputs.failing_nodes())) pass = false;
  }
  json["verdict"] = pass ? "pass" : "fail";
  report.set_csv(flags.all_nodes ? "nodes" : "outputs");
  report.line({{pass ? "PASS" : "FAIL", pass ? Style::kGood : Style::kBad},
               {": " + flags.backend + (flags.passes.empty() ? "" : " after " + flags.passes) +
                " against " + reference.name + ", " +
                (failures == 0 ? counted(outputs.compared(), "output") + " compared"
                               : std::to_string(failures) + " of " +
                                     counted(outputs.compared(), "output") + " differ")}});
  return command.finish(report, pass ? ExitCode::kOk : ExitCode::kMismatch);
}

}  // namespace fx::cli
