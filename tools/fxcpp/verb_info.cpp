#include <algorithm>

#include "fx/analysis/flops.h"
#include "fx/analysis/statistics.h"
#include "fx/base/error.h"
#include "fx/io/import_export.h"
#include "fx/ops/effects.h"
#include "fx/passes/nested.h"
#include "tools/fxcpp/model.h"
#include "tools/fxcpp/verbs.h"
#include "tools/fxcpp/weights.h"

namespace fx::cli {
namespace {

/// Operators that the summary shows; --ops shows all.
constexpr std::size_t kShownOperators = 10;

struct Sections {
  bool operators = false;
  bool signature = false;
  bool weights = false;
  int depth = -1;
  bool all() const { return !operators && !signature && !weights && depth < 0; }
};

/// The lines of an ImportError that lists what is not supported.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = text.find("\n  - "); at != std::string::npos;
       at = text.find("\n  - ", at)) {
    at += 5;
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  }
  if (lines.empty()) lines.push_back(text);
  return lines;
}

/// "aten::add.Tensor" for "torch.ops.aten.add.Tensor": one spelling, also for what cannot be
/// loaded.
std::string operator_name(std::string name) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (!name.starts_with(kPrefix)) return name;
  name.erase(0, kPrefix.size());
  if (const std::size_t dot = name.find('.'); dot != std::string::npos) name.replace(dot, 1, "::");
  if (name.ends_with(".default")) name.resize(name.size() - 8);
  return name;
}

/// What the calls of one operator do besides returning a value.
struct CallEffects {
  bool mutates = false;
  bool random = false;
  bool other = false;

  void add(const Node& node) {
    const auto has_kwarg = [&node](std::string_view key) { return node.has_kwarg(key); };
    const Effects effects = node.op() == Opcode::kCallFunction
                                ? effects_of(*node.target().function(), has_kwarg)
                                : effects_of_method(node.target().str(), has_kwarg);
    if (!effects.unless_false_name.empty()) {
      const Argument* condition = node.find_kwarg(effects.unless_false_name);
      if (condition == nullptr && effects.unless_false_index < node.num_args())
        condition = &node.args()[effects.unless_false_index];
      if (condition != nullptr && condition->kind() == Argument::Kind::kBool &&
          !condition->to_bool())
        return;
    }
    mutates |= effects.mutates;
    random |= effects.random;
    other |= effects.other;
  }

  std::string text() const {
    std::string out;
    for (const auto& [has, word] :
         {std::pair(mutates, "mutates"), std::pair(random, "random"), std::pair(other, "effect")})
      if (has) out += (out.empty() ? "" : ", ") + std::string(word);
    return out;
  }
};

class Info {
 public:
  Info(Report& report, const io::ArchiveSummary& archive, const io::ProgramSummary& program,
       const Sections& sections)
      : report_(report), archive_(archive), program_(program), sections_(sections) {}

  /// The model, or what stands in its way.
  void load(const std::string& file, LoadFlags flags) {
    flags.model_name = program_.name;
    try {
      model_ = load_model(file, flags);
    } catch (const ImportError& error) {
      if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kForbiddenOperator)
        throw;
      unsupported_ = listed(error.text());
    }
  }

  void head() {
    Json& json = report_.json();
    json["file"] = archive_.path;
    json["file_bytes"] = archive_.file_bytes;
    json["format"] = is_text_graph(archive_.path) ? "fx"
                     : archive_.is_saved          ? "fxa"
                                                  : "torch.export";
    json["program"] = program_.name;
    json["torch_version"] = program_.torch_version;
    json["export_schema"] = program_.schema_version;
    report_.heading(archive_.path);
    report_.line({{(archive_.is_saved ? "saved module " + program_.name
                                      : "exported program of torch " + program_.torch_version) +
                   ", " + human_bytes(archive_.file_bytes) + ", " +
                   counted(archive_.num_records, "record")}});
    if (archive_.has_aoti_code)
      report_.line({{"also holds compiled AOTInductor code, which is not used", Style::kWarn}});
  }

  void signature() {
    Json& json = report_.json();
    std::vector<std::string> symbols_seen;
    Table inputs({"name", "type"});
    json["inputs"] = Json::array();
    Json rows = Json::array();
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      Json entry = model_.module
                       ? signature_json(model_.inputs.at(i).name, model_.inputs[i].meta,
                                        model_.inputs[i].type)
                       : Json{{"name", program_.inputs[i].name}, {"type", program_.inputs[i].type}};
      inputs.add({entry["name"].get<std::string>(), entry["type"].get<std::string>()});
      add_row(rows, "input", entry);
      json["inputs"].push_back(std::move(entry));
    }
    Table outputs({"name", "type"});
    json["outputs"] = Json::array();
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      Json entry = model_.module ? signature_json(model_.outputs.at(i).name, model_.outputs[i].meta,
                                                  model_.outputs[i].type)
                                 : Json{{"name", program_.outputs[i].name},
                                        {"type", program_.outputs[i].type}};
      outputs.add({entry["name"].get<std::string>(), entry["type"].get<std::string>()});
      add_row(rows, "output", entry);
      json["outputs"].push_back(std::move(entry));
    }
    Table symbols({"symbol", "range"});
    json["symbols"] = Json::array();
    for (const auto& [symbol, range] : program_.symbols) {
      Json entry{{"name", symbol}};
      if (range.first) entry["min"] = *range.first;
      if (range.second) entry["max"] = *range.second;
      json["symbols"].push_back(std::move(entry));
      const std::string text = range_text(symbol, range.first, range.second);
      symbols.add({symbol, text.empty() ? "any" : text});
    }
    json["in_spec"] = program_.in_spec;
    json["out_spec"] = program_.out_spec;
    json["mutated"] = program_.mutated;
    json["signature"] = std::move(rows);
    if (!sections_.all() && !sections_.signature) return;
    report_.table("inputs", std::move(inputs));
    report_.table("outputs", std::move(outputs));
    report_.table("symbols", std::move(symbols));
    if (sections_.signature)
      report_.line({{"structure  " + program_.in_spec + " -> " + program_.out_spec}});
    if (!program_.mutated.empty()) {
      std::string names;
      for (const std::string& name : program_.mutated) names += (names.empty() ? "" : ", ") + name;
      report_.line({{"a call changes: " + names, Style::kWarn}});
    }
  }

  void weights() {
    Json& json = report_.json();
    if (!model_.module) {
      json["parameters"] = {{"tensors", program_.num_parameters},
                            {"elements", program_.parameter_elements}};
      json["buffers"] = {{"tensors", program_.num_buffers}};
      json["constants"] = {{"tensors", program_.num_constants}};
      json["weight_bytes"] = program_.weight_bytes;
      if (sections_.all())
        report_.line({{"weights: " + with_commas(program_.parameter_elements) + " parameters in " +
                       counted(program_.num_parameters, "tensor") + ", " +
                       human_bytes(program_.weight_bytes) + " in all"}});
      return;
    }
    const WeightSummary summary = summarize_weights(*model_.module);
    Table totals({"weights", ">tensors", ">elements", ">size"});
    auto add = [&](const char* key, const WeightTotal& total) {
      json[key] = {
          {"tensors", total.tensors}, {"elements", total.elements}, {"bytes", total.bytes}};
      if (total.tensors > 0 || std::string_view(key) == "parameters")
        totals.add({key, with_commas(total.tensors), with_commas(total.elements),
                    human_bytes(total.bytes)});
    };
    add("parameters", summary.parameters);
    add("buffers", summary.buffers);
    add("constants", summary.constants);
    json["weight_bytes"] =
        summary.parameters.bytes + summary.buffers.bytes + summary.constants.bytes;
    if (sections_.all()) report_.table("", std::move(totals));
    if (!sections_.weights) return;
    Table table({"name", "kind", "type", ">elements", ">size", "shares memory with"});
    json["weights"] = Json::array();
    for (const WeightRow& row : summary.rows) {
      std::string shape;
      for (std::int64_t size : row.shape)
        shape += (shape.empty() ? "" : ", ") + std::to_string(size);
      table.add({row.name, row.kind, row.dtype + "[" + shape + "]", with_commas(row.elements),
                 human_bytes(row.bytes), row.shared_with});
      Json entry{{"name", row.name},   {"kind", row.kind},         {"dtype", row.dtype},
                 {"shape", row.shape}, {"elements", row.elements}, {"bytes", row.bytes}};
      if (!row.shared_with.empty()) entry["shared_with"] = row.shared_with;
      json["weights"].push_back(std::move(entry));
    }
    report_.table("weights", std::move(table));
  }

  void operators() {
    Json& json = report_.json();
    auto calls = model_.module ? calls_in_all_graphs() : program_.operators;
    for (auto& [name, count] : calls) name = operator_name(name);
    std::map<std::string, CallEffects> effects_by_name;
    std::size_t graphs = 0;
    if (model_.module)
      for_each_graph_module(*model_.module, [&](GraphModule& module) {
        ++graphs;
        for (const Node& node : module.graph().nodes())
          if (node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod)
            effects_by_name[node.target().str()].add(node);
      });
    json["graphs"] = std::max<std::size_t>(graphs, 1);
    std::size_t total = 0;
    for (const auto& [name, count] : calls) total += count;
    if (model_.module) {
      std::map<Opcode, std::size_t> opcodes;
      for (const Node& node : model_.module->graph().nodes()) ++opcodes[node.op()];
      Json nodes{{"total", model_.module->graph().size()}};
      std::string text;
      for (const auto& [opcode, count] : opcodes) {
        nodes[std::string(opcode_name(opcode))] = count;
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
                std::string(opcode_name(opcode));
      }
      json["nodes"] = std::move(nodes);
      if (sections_.all())
        report_.line({{counted(model_.module->graph().size(), "node") + ": " + text}});
    } else {
      json["nodes"] = {{"total", program_.num_nodes}};
      if (sections_.all()) report_.line({{counted(program_.num_nodes, "node")}});
    }
    const bool all = sections_.operators;
    Table table(all ? std::vector<std::string>{"operator", ">calls", "effects"}
                    : std::vector<std::string>{"operator", ">calls"});
    json["operators"] = Json::array();
    for (const auto& [name, count] : calls) {
      const std::string effects = effects_by_name[name].text();
      json["operators"].push_back({{"name", name}, {"calls", count}, {"effects", effects}});
      if (all)
        table.add({name, std::to_string(count), effects});
      else if (table.size() < kShownOperators)
        table.add({name, std::to_string(count)});
    }
    if (!sections_.all() && !all) return;
    report_.table(counted(total, "call") + " of " + counted(calls.size(), "operator") +
                      (graphs > 1 ? " in " + counted(graphs, "graph") : ""),
                  std::move(table));
    if (!all && calls.size() > kShownOperators)
      report_.line({{"  ... and " + std::to_string(calls.size() - kShownOperators) + " more: --ops",
                     Style::kDim}});
  }

  /// By the sizes that the file states, with each symbol as small as its range allows: nothing is
  /// run.
  void flops() {
    if (!model_.module) return;
    const auto symbol_value = [this](std::string_view symbol) -> std::optional<std::int64_t> {
      for (const auto& [name, range] : program_.symbols)
        if (name == symbol) return std::max<std::int64_t>(range.first.value_or(1), 1);
      return 1;
    };
    const FlopCount count = count_flops(
        *model_.module, [&](const Node& node) -> std::optional<std::vector<std::int64_t>> {
          const auto* meta = node.meta().get<io::ValueMetaPtr>("val");
          if (meta == nullptr || !*meta || (*meta)->kind != io::ValueMeta::Kind::kTensor)
            return std::nullopt;
          std::vector<std::int64_t> sizes;
          for (const io::SymDim& size : (*meta)->sizes) {
            const auto known = size.is_known() ? size.value : size.expr->evaluate(symbol_value);
            if (!known || *known < 0) return std::nullopt;
            sizes.push_back(*known);
          }
          return sizes;
        });
    Json symbols = Json::object();
    std::string at;
    for (const auto& [name, range] : program_.symbols) {
      symbols[name] = *symbol_value(name);
      at += (at.empty() ? " for " : ", ") + name + " = " + std::to_string(*symbol_value(name));
    }
    Json rows = Json::array();
    Table table({"operator", ">FLOPs"});
    for (const auto& [name, flops] : count.operators) {
      rows.push_back({{"name", operator_name(name)}, {"flops", flops}});
      table.add({operator_name(name), with_commas(flops)});
    }
    report_.json()["flops"] = {{"total", count.total},
                               {"symbols", std::move(symbols)},
                               {"operators", std::move(rows)},
                               {"calls_of_unknown_size", count.unknown},
                               {"has_loops", count.has_loops}};
    if (!sections_.all() && !sections_.operators) return;
    if (count.total == 0 && count.unknown == 0) return;
    report_.line(
        {{with_commas(count.total) + " FLOPs a call" + at +
          (count.has_loops ? ", each loop as one step" : "") +
          (count.unknown > 0 ? ", without " + counted(count.unknown, "call") + " of unknown size"
                             : "")}});
    if (sections_.operators) report_.table("FLOPs", std::move(table));
  }

  void modules() {
    if (sections_.depth < 0 || !model_.module) return;
    Table table({"module", "type", ">calls", ">parameters"});
    Json rows = Json::array();
    for (const ModuleRow& row :
         module_tree(*model_.module, static_cast<std::size_t>(sections_.depth))) {
      const std::string name =
          row.path.empty() ? "(model)" : row.path.substr(row.path.rfind('.') + 1);
      table.add({std::string(2 * row.depth, ' ') + name, row.type.substr(row.type.rfind('.') + 1),
                 std::to_string(row.calls), with_commas(row.parameters)});
      rows.push_back({{"path", row.path},
                      {"type", row.type},
                      {"depth", row.depth},
                      {"calls", row.calls},
                      {"parameters", row.parameters}});
    }
    report_.json()["modules"] = std::move(rows);
    report_.table("modules", std::move(table));
  }

  void support() {
    Json& json = report_.json();
    json["supported"] = unsupported_.empty();
    json["unsupported"] = unsupported_;
    json["warnings"] = program_.warnings;
    if (unsupported_.empty()) return;
    report_.line({{"cannot be run, since this is not supported:", Style::kBad}});
    for (const std::string& what : unsupported_) report_.line({{"  - " + what}});
  }

 private:
  /// Calls of each operator in the graph and those below it, the most frequent first.
  std::vector<std::pair<std::string, std::size_t>> calls_in_all_graphs() const {
    std::map<std::string, std::size_t> counts;
    for_each_graph_module(*model_.module, [&](GraphModule& module) {
      for (const auto& [name, count] : graph_statistics(module.graph()).calls)
        counts[name] += count;
    });
    std::vector<std::pair<std::string, std::size_t>> calls(counts.begin(), counts.end());
    std::ranges::stable_sort(calls, std::greater<>(), &std::pair<std::string, std::size_t>::second);
    return calls;
  }

  static void add_row(Json& rows, const char* kind, const Json& entry) {
    Json row{{"kind", kind}};
    row.update(entry);
    rows.push_back(std::move(row));
  }

  Report& report_;
  const io::ArchiveSummary& archive_;
  const io::ProgramSummary& program_;
  const Sections& sections_;
  Model model_;
  std::vector<std::string> unsupported_;
};

/// A file with several programs: their names, to choose one from.
void list_programs(Report& report, const io::ArchiveSummary& archive) {
  report.json()["file"] = archive.path;
  report.json()["file_bytes"] = archive.file_bytes;
  report.heading(archive.path);
  Table table({"program", ">inputs", ">outputs", ">nodes"});
  Json rows = Json::array();
  for (const io::ProgramSummary& program : archive.programs) {
    table.add({program.name, std::to_string(program.inputs.size()),
               std::to_string(program.outputs.size()), std::to_string(program.num_nodes)});
    rows.push_back({{"name", program.name},
                    {"inputs", program.inputs.size()},
                    {"outputs", program.outputs.size()},
                    {"nodes", program.num_nodes}});
  }
  report.json()["programs"] = std::move(rows);
  report.set_csv("programs");
  report.table("programs: choose one with --model NAME", std::move(table));
}

}  // namespace

int run_info(Args args) {
  Command command(
      "info",
      "Tells what is in a model: inputs with their symbols, outputs, weights, operators, "
      "and everything that is not supported.",
      {{"fxcpp info model.pt2", "the summary"},
       {"fxcpp info model.pt2 --ops", "all operators, with their effects"},
       {"fxcpp info model.pt2 --depth 2", "the module tree"},
       {"fxcpp info model.pt2 --weights --format csv", "every tensor, for a script"}});
  std::string file;
  LoadFlags load_flags;
  Sections sections;
  add_load_options(command, file, load_flags);
  command.app().add_flag("--ops", sections.operators, "all operators, how often, and effects");
  command.app().add_flag("--signature", sections.signature, "inputs, outputs and their structure");
  command.app().add_flag("--weights", sections.weights, "every parameter, buffer and constant");
  command.app()
      .add_option("--depth", sections.depth, "the module tree, N levels deep")
      ->type_name("N");
  if (!command.parse(args)) return 0;

  Report report("info");
  const io::ArchiveSummary archive = inspect_model(file, load_flags);
  if (archive.programs.size() > 1) {
    list_programs(report, archive);
    return command.finish(report);
  }
  report.set_csv(sections.operators    ? "operators"
                 : sections.weights    ? "weights"
                 : sections.depth >= 0 ? "modules"
                                       : "signature");
  Info info(report, archive, archive.programs.front(), sections);
  info.load(file, load_flags);
  info.head();
  info.signature();
  info.weights();
  info.operators();
  info.flops();
  info.modules();
  info.support();
  return command.finish(report);
}

}  // namespace fx::cli
