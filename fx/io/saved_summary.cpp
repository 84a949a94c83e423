#include <algorithm>
#include <functional>
#include <map>

#include "fx/io/pt2_archive.h"
#include "fx/io/save_module.h"
#include "fx/io/treespec.h"
#include "fx/io/value_meta.h"

namespace fx::io {
namespace {

std::string type_of(const GraphModule& module, const Node& node) {
  const auto* meta = node.meta().get<ValueMetaPtr>("val");
  if (meta && *meta) return (*meta)->str();
  for (const InputGuard& guard : module.input_guards())
    if (node.is_placeholder() && guard.input == node.target().str()) return guard.str();
  return "?";
}

void add_values(const GraphModule& module, ProgramSummary& summary) {
  for (const Node* input : module.graph().placeholders())
    summary.inputs.push_back({input->target().str(), input->num_args() > 0
                                                         ? "= " + repr(input->arg(0))
                                                         : type_of(module, *input)});
  for (const Node& node : module.graph().nodes()) {
    if (!node.is_output() || node.num_args() == 0) continue;
    const Argument& result = node.arg(0);
    const bool several =
        result.kind() == Argument::Kind::kTuple || result.kind() == Argument::Kind::kList;
    const auto items = several ? result.items() : std::span(&result, 1);
    for (const Argument& item : items) {
      const Node* value = item.node_or_null();
      summary.outputs.push_back(
          value ? ProgramSummary::Value{std::string(value->name()), type_of(module, *value)}
                : ProgramSummary::Value{"", repr(item)});
    }
  }
}

void add_operators(const GraphModule& module, ProgramSummary& summary) {
  std::map<std::string, std::size_t> counts;
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod ||
        node.op() == Opcode::kCallModule)
      ++counts[node.target().str()];
  summary.operators.assign(counts.begin(), counts.end());
  std::ranges::stable_sort(summary.operators, std::greater<>(),
                           &std::pair<std::string, std::size_t>::second);
}

}  // namespace

ArchiveSummary inspect_saved(const OpenedArchive& archive, const LoadOptions& options) {
  const auto module = load_saved(archive, options);
  ArchiveSummary summary;
  summary.path = archive.zip->path();
  summary.file_bytes = archive.file->size();
  summary.num_records = archive.zip->entries().size();
  summary.is_saved = true;
  ProgramSummary& program = summary.programs.emplace_back();
  program.name = module->class_name();
  if (const auto* version = module->meta().get<std::string>("torch_version"))
    program.torch_version = *version;
  if (const auto* ranges = module->meta().get<RangeConstraints>("range_constraints"))
    program.symbols = *ranges;
  if (const auto* warnings = module->meta().get<std::vector<std::string>>("warnings"))
    program.warnings = *warnings;
  if (module->in_spec()) program.in_spec = treespec_str(*module->in_spec());
  if (module->out_spec()) program.out_spec = treespec_str(*module->out_spec());
  program.num_nodes = module->graph().size();
  add_values(*module, program);
  add_operators(*module, program);
  for (const auto& item : module->named_parameters()) {
    ++program.num_parameters;
    program.parameter_elements += static_cast<std::uint64_t>(item.value().numel());
  }
  program.num_buffers = module->named_buffers().size();
  for (const ZipEntry& entry : archive.zip->entries())
    if (entry.name.starts_with("fxa/data/")) program.weight_bytes += entry.size;
  return summary;
}

}  // namespace fx::io
