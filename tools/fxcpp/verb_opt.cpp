#include <algorithm>
#include <array>
#include <cstdio>

#include "fx/analysis/statistics.h"
#include "fx/base/error.h"
#include "fx/io/atomic_file.h"
#include "fx/io/save_module.h"
#include "tools/fxcpp/backend.h"
#include "tools/fxcpp/compare.h"
#include "tools/fxcpp/graph_text.h"
#include "tools/fxcpp/inputs.h"
#include "tools/fxcpp/line_diff.h"
#include "tools/fxcpp/model.h"
#include "tools/fxcpp/pipeline.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

/// Passes may round differently (a folded batch norm), so 32-bit results get more room than two
/// runs of one graph.
constexpr double kPassRtol = 1e-4;

using Counts = std::vector<std::pair<std::string, std::size_t>>;

std::size_t count_in(const Counts& counts, const std::string& name) {
  const auto it = std::ranges::find(counts, name, &Counts::value_type::first);
  return it == counts.end() ? 0 : it->second;
}

std::string milliseconds(double seconds) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f", seconds * 1e3);
  return text.data();
}

Cell delta_cell(std::size_t before, std::size_t after) {
  if (before == after) return {"0", Style::kDim};
  return after < before ? Cell("-" + std::to_string(before - after), Style::kGood)
                        : Cell("+" + std::to_string(after - before), Style::kWarn);
}

/// The table of operators before and after; those that changed first.
void add_counts(Report& report, const Counts& before, const Counts& after, std::size_t nodes_before,
                std::size_t nodes_after) {
  struct Row {
    std::string name;
    std::size_t before, after;
  };
  std::vector<Row> rows;
  for (const auto& [name, count] : before) rows.push_back({name, count, count_in(after, name)});
  for (const auto& [name, count] : after)
    if (count_in(before, name) == 0) rows.push_back({name, 0, count});
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const Row& row) { return row.before != row.after; });
  Table table({"operator", ">before", ">after", ">delta"});
  Json json = Json::array();
  for (const Row& row : rows) {
    table.add({row.name, std::to_string(row.before), std::to_string(row.after),
               delta_cell(row.before, row.after)});
    json.push_back(
        {{"name", row.name},
         {"before", row.before},
         {"after", row.after},
         {"delta", static_cast<std::int64_t>(row.after) - static_cast<std::int64_t>(row.before)}});
  }
  table.add({{"all nodes", Style::kBold},
             std::to_string(nodes_before),
             std::to_string(nodes_after),
             delta_cell(nodes_before, nodes_after)});
  report.json()["operators"] = std::move(json);
  report.json()["nodes_before"] = nodes_before;
  report.json()["nodes_after"] = nodes_after;
  report.table("", std::move(table));
}

void add_passes(Report& report, const PipelineResult& result) {
  Table table({"pass", "changed", ">rewrites", ">nodes before", ">after", ">ms"});
  for (const PassStatistics& pass : result.passes) {
    table.add({pass.name,
               {pass.changed ? "yes" : "no", pass.changed ? Style::kGood : Style::kDim},
               std::to_string(pass.rewrites),
               std::to_string(pass.nodes_before),
               std::to_string(pass.nodes_after),
               milliseconds(pass.seconds)});
    for (const auto& [rule, count] : pass.rules)
      table.add({"  " + std::string(rule), "", std::to_string(count), "", "", ""});
  }
  report.json()["changed"] = result.changed;
  report.table("", std::move(table));
}

/// Runs the model before and after the passes on the interpreter. Returns whether outputs agree.
bool verify(Report& report, GraphModule& before, GraphModule& after, const Model& model,
            const ModelInputs& inputs, const ToleranceFlags& tolerance, std::uint64_t seed,
            const Talk& talk) {
  const Values expected = run_backend(before, Backend::kInterpret, inputs.clone(), seed, talk);
  const Values actual = run_backend(after, Backend::kInterpret, inputs.clone(), seed, talk);
  Json outputs = Json::array();
  bool pass = actual.size() == expected.size();
  double worst = 0;
  std::vector<std::string> failures;
  for (std::size_t i = 0; pass && i < actual.size(); ++i) {
    ToleranceFlags flags = tolerance;
    if (!flags.rtol && expected[i].isTensor() &&
        c10::isFloatingType(expected[i].toTensor().scalar_type()))
      flags.rtol =
          std::max(kPassRtol, default_tolerance(expected[i].toTensor().scalar_type()).rtol);
    const Comparison comparison = compare(actual[i], expected[i], flags);
    Json entry{{"name", model.outputs[i].name}};
    entry.update(comparison_json(comparison));
    outputs.push_back(std::move(entry));
    worst = std::max(worst, comparison.max_abs.value);
    if (!comparison.pass) failures.push_back(model.outputs[i].name + ": " + explain(comparison));
  }
  pass = pass && failures.empty();
  report.json()["verification"] = {{"verdict", pass ? "pass" : "fail"},
                                   {"inputs", inputs_json(inputs)},
                                   {"outputs", std::move(outputs)}};
  const std::string agree = counted(actual.size(), "output") +
                            (actual.size() == 1 ? " agrees" : " agree") +
                            " before and after, max abs error " + short_number(worst);
  report.line({{pass ? "PASS" : "FAIL", pass ? Style::kGood : Style::kBad},
               {": " + (pass ? agree : "the passes changed the outputs")}});
  for (const std::string& failure : failures) report.line({{"  " + failure}});
  return pass;
}

}  // namespace

int run_opt(Args args) {
  Command command(
      "opt",
      "Runs passes over the graph, shows what they did, and verifies on inputs that the outputs "
      "stay the same (exit status 1 if not).",
      {{"fxcpp opt model.pt2 --passes dce,cse,constant_fold", "before and after"},
       {"fxcpp opt model.pt2 --passes fuse_conv_bn --print-changed", "the lines that changed"},
       {"fxcpp opt model.pt2 --passes cse -o model2.pt2", "keep the model, for Python too"},
       {"fxcpp opt model.pt2 --passes cse -o model.fxa", "keep it in the form of fx::save"},
       {"fxcpp opt model.pt2 --passes cse -o model.fx", "keep the graph as text"},
       {"fxcpp passes", "which passes there are"}});
  std::string file, pipeline, output;
  bool print_changed = false, no_verify = false;
  LoadFlags load_flags;
  InputFlags input_flags;
  ToleranceFlags tolerance;
  add_load_options(command, file, load_flags);
  command.app()
      .add_option("--passes", pipeline, "the pipeline: a,b(option=value),c")
      ->type_name("PIPELINE")
      ->required();
  command.app().add_flag("--print-changed", print_changed,
                         "show the lines that each pass removed and added");
  command.app()
      .add_option(
          "-o,--output", output,
          "write the model (.pt2, .fxa), or its graph without the weights: " + graph_extensions())
      ->type_name("PATH");
  command.app().add_flag("--no-verify", no_verify, "do not run the model to compare outputs");
  add_input_options(command, input_flags);
  command.app()
      .add_option("--rtol", tolerance.rtol, "of the verification (default: 1e-4 for f32)")
      ->type_name("X");
  command.app()
      .add_option("--atol", tolerance.atol, "of the verification (default: 1e-5 for f32)")
      ->type_name("X");
  if (!command.parse(args)) return 0;
  const bool saves_module = output.ends_with(".fxa") || output.ends_with(".pt2");
  const std::string format = output.empty() || saves_module ? "" : graph_format_of_file(output);
  const bool needs_inputs = wants_inputs(pipeline) || !no_verify;

  Model model = load_model(file, load_flags);
  const std::shared_ptr<GraphModule> original = no_verify ? nullptr : model.module->deep_copy();
  ModelInputs inputs;
  if (needs_inputs) inputs = make_inputs(model, input_flags, command.talk());
  const Counts before = graph_statistics(model.module->graph()).calls;
  const std::size_t nodes_before = model.module->graph().size();

  Report report("opt");
  report.json()["file"] = file;
  report.json()["pipeline"] = pipeline;
  Json diffs = Json::array();
  const auto on_change = [&](const PassStatistics& pass, const std::string& text_before,
                             const std::string& text_after) {
    if (!print_changed) return;
    report.heading("after " + pass.name);
    Json lines = Json::array();
    for (const DiffLine& line : diff_lines(text_before, text_after)) {
      const Style style = line.mark == '-'   ? Style::kBad
                          : line.mark == '+' ? Style::kGood
                                             : Style::kDim;
      const std::string text = line.mark == '@' ? "  ..." : std::string(1, line.mark) + line.text;
      report.line({{text, style}});
      lines.push_back(text);
    }
    diffs.push_back({{"pass", pass.name}, {"lines", std::move(lines)}});
  };
  const PipelineResult result =
      run_pipeline(model, pipeline, needs_inputs ? &inputs : nullptr, command.talk(), on_change);
  report.json()["passes"] = passes_json(result);
  if (print_changed) report.json()["diffs"] = std::move(diffs);
  add_passes(report, result);
  add_counts(report, before, graph_statistics(model.module->graph()).calls, nodes_before,
             model.module->graph().size());
  report.set_csv("operators");
  bool pass = true;
  if (!no_verify)
    pass = verify(report, *original, *model.module->deep_copy(), model, inputs, tolerance,
                  input_flags.seed, command.talk());
  if (saves_module && pass) {
    save(*model.module, output);
    command.talk().note("wrote " + output + " (the model with its weights)");
    report.json()["output"] = output;
  } else if (!output.empty() && pass) {
    io::AtomicFile out(output);
    out.write(graph_as(format, model));
    out.commit();
    command.talk().note("wrote " + output + " (" + format +
                        "); weights stay in the model's file: write .pt2 or .fxa to keep both");
    report.json()["output"] = output;
  } else if (!output.empty()) {
    command.talk().warn(output + " is not written, since the outputs differ");
  }
  return command.finish(report, pass ? ExitCode::kOk : ExitCode::kMismatch);
}

}  // namespace fx::cli
