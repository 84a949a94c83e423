#include "tests/random/oracles.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include "fuzz/temp_folder.h"
#include "fx/base/error.h"
#include "fx/graph/node_error.h"
#include "fx/graph/text.h"
#include "fx/io/save_module.h"
#include "fx/passes/pass_manager.h"

namespace fx::fuzz {
namespace {

// What is known of passes beyond the table: everything that is not here keeps every bit.
bool reorders_sums(std::string_view pass) {
  return pass == "fuse_conv_bn" || pass == "merge_matmul" || pass == "quantize_weights";
}
bool makes_weights(std::string_view pass) {
  return pass == "fuse_conv_bn" || pass == "constant_fold";
}
// Stores weights in 8 bits, which those that other passes made do not fit in.
bool narrows_weights(std::string_view pass) { return pass == "quantize_weights"; }
// What has no functional form is refused in the pass's own words.
bool may_refuse(std::string_view pass, const std::string& words) {
  return pass == "functionalize" && words.find("\nfunctionalize: ") != std::string::npos;
}

HowToRun how_to_run(const Program& program, Runner runner, bool twice = false) {
  return {.runner = runner, .random = program.draws, .twice = twice};
}

Outcome interpreted(const Program& program, bool twice = false) {
  return run(*program.module, program.inputs, how_to_run(program, Runner::kInterpreter, twice));
}

// An exception as words; checks report what is thrown like any other difference. Programs write to
// parameters, thus run without gradients, also where passes run them.
template <typename Fn>
std::string words_of(Fn&& fn) {
  const at::NoGradGuard no_grad;
  try {
    return fn();
  } catch (...) {
    return "threw: " + current_exception_text();
  }
}

std::string with_prefix(std::string_view prefix, const std::string& words) {
  return words.empty() ? words : std::string(prefix) + ": " + words;
}

// Whether a module equals the program's: its graph, and what it computes.
std::string check_equal_module(const Program& program, GraphModule& other) {
  const Graph& graph = program.module->graph();
  const std::string text = to_text(graph, {.meta = true});
  if (to_text(other.graph(), {.meta = true}) != text)
    return "the text differs:\n" + to_text(other.graph(), {.meta = true});
  if (!graph.same_structure(other.graph())) return "the structure differs";
  if (graph.structural_hash() != other.graph().structural_hash()) return "the hash differs";
  other.graph().lint({.strict = true});
  const Outcome wanted = interpreted(program);
  return difference(wanted, run(other, program.inputs, how_to_run(program, Runner::kPlan)),
                    Agreement::kExact);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

PassManager manager_of(const Pass& pass, const Program& program) {
  PassManagerOptions options{.check_claims = true};
  options.example_inputs = program.inputs;
  return PassManager(std::vector<Pass>{pass}, std::move(options));
}

}  // namespace

std::string check_runs(const Program& program) {
  return words_of([&] {
    program.module->graph().lint({.strict = true});
    const Outcome wanted = interpreted(program);
    if (program.eager) {
      std::string words = difference(*program.eager, wanted, Agreement::kExact);
      if (!words.empty()) return "eager and Interpreter: " + words;
    }
    GraphModule& module = *program.module;
    if (module.needs_recompile()) module.recompile();
    return with_prefix(
        "Interpreter and plan",
        difference(wanted, run(module, program.inputs, how_to_run(program, Runner::kPlan)),
                   Agreement::kExact));
  });
}

std::string check_text(const Program& program) {
  return words_of([&] {
    const std::string text = to_text(program.module->graph(), {.meta = true});
    const auto graph = parse_text(text);
    if (to_text(*graph, {.meta = true}) != text)
      return "the text of the parsed text differs:\n" + to_text(*graph, {.meta = true});
    const auto clone = program.module->deep_copy();
    GraphModule parsed(*clone, graph, "Parsed", GraphModule::Share::kAll,
                       {clone->constants().begin(), clone->constants().end()});
    return check_equal_module(program, parsed);
  });
}

std::string check_copies(const Program& program) {
  return words_of([&]() -> std::string {
    const Graph& graph = program.module->graph();
    const auto clone = graph.clone();
    clone->lint({.strict = true});
    if (to_text(*clone, {.meta = true}) != to_text(graph, {.meta = true}))
      return "the text of the clone differs";
    if (!clone->same_structure(graph) || clone->structural_hash() != graph.structural_hash())
      return "the structure of the clone differs";
    const auto copy = program.module->deep_copy();
    for (const auto& [name, tensor] : state_of(*copy))
      for (const auto& [other_name, other] : state_of(*program.module))
        if (tensor.numel() > 0 && tensor.is_alias_of(other))
          return "the deep copy's " + name + " shares memory with " + other_name;
    return with_prefix("deep copy", check_equal_module(program, *copy));
  });
}

std::string check_archive(const Program& program) {
  return words_of([&]() -> std::string {
    const std::string path = temp_folder() + "/module.fxa";
    const std::string again = temp_folder() + "/again.fxa";
    save(*program.module, path);
    const auto loaded = load(path);
    save(*loaded, again);
    if (bytes_of(path) != bytes_of(again)) return "the loaded module is saved as another file";
    std::map<std::string, at::Tensor> state;
    for (const auto& [name, tensor] : state_of(*loaded)) state.emplace(name, tensor);
    for (const auto& [name, tensor] : state_of(*program.module)) {
      const auto found = state.find(name);
      if (found == state.end()) return "attribute " + name + " is missing in the loaded module";
      if (!same_bits(tensor, found->second)) return "attribute " + name + " differs";
    }
    return with_prefix("loaded", check_equal_module(program, *loaded));
  });
}

Program after_passes(const Program& program, std::span<const CheckedPass> passes) {
  const at::NoGradGuard no_grad;
  Program copy = copy_of(program);
  bool made_weights = false;
  for (const CheckedPass& checked : passes) {
    const Pass& pass = checked.pass;
    if (narrows_weights(pass.name()) && made_weights) continue;
    try {
      const bool changed = manager_of(pass, program).run(*copy.module).changed;
      made_weights |= changed && makes_weights(pass.name());
    } catch (const PassError& error) {
      if (!may_refuse(pass.name(), error.what())) throw;
    }
  }
  return copy;
}

std::string check_passes(const Program& program, std::span<const CheckedPass> passes, bool twice,
                         Tally* tally) {
  std::string before;
  return words_of([&]() -> std::string {
    const Outcome wanted = interpreted(program, twice);
    const auto copy = program.module->deep_copy();
    Agreement agreement = Agreement::kExact;
    bool made_weights = false;
    for (const CheckedPass& checked : passes) {
      const Pass& pass = checked.pass;
      if (narrows_weights(pass.name()) && made_weights) continue;
      const std::string name = "after " + before + pass.str();
      PassManager manager = manager_of(pass, program);
      PipelineResult result;
      std::string words = words_of([&] {
        result = manager.run(*copy);
        return std::string();
      });
      if (may_refuse(pass.name(), words)) continue;
      if (!words.empty()) return name + ": " + words;
      const std::int64_t rewrites = result.passes.front().rewrites;
      if (tally) {
        tally->hits[pass.name()] += rewrites > 0;
        tally->rewrites[pass.name()] += rewrites;
      }
      before += pass.str() + ", ";
      if (!result.changed) continue;
      if (checked.agreement == Agreement::kRounding) agreement = Agreement::kRounding;
      made_weights |= makes_weights(pass.name());
      words = words_of([&] {
        return difference(wanted,
                          run(*copy, program.inputs, how_to_run(program, Runner::kPlan, twice)),
                          agreement);
      });
      if (!words.empty()) return name + ": " + words + "\n" + to_text(copy->graph());
      words = words_of([&]() -> std::string {
        return manager.run(*copy).changed ? "a second run changes the graph once more" : "";
      });
      if (!words.empty()) return name + ": " + words + "\n" + to_text(copy->graph());
    }
    return with_prefix(
        "Interpreter after " + before,
        difference(wanted,
                   run(*copy, program.inputs, how_to_run(program, Runner::kInterpreter, twice)),
                   agreement));
  });
}

// --- passes with options -------------------------------------------------------------------------

namespace {

// Whether an option that is not the default keeps what this program computes.
bool may_switch(std::string_view option, const Program& program, bool twice) {
  if (option == "fold_outputs" || option == "share_outputs") return !twice;
  if (option == "impure_random") return !program.draws;
  if (option == "even_in_training") return !program.active_dropout;
  if (option == "inputs_are_tensors")
    return program.inputs.size() == program.module->graph().placeholders().size();
  return option == "fold_trainable" || option == "remove_unused_attributes" ||
         option == "assume_linear_2d" || option == "static_shapes" || option == "only_kwargs" ||
         option == "use_metadata";
}

Pass with_options(const PassInfo& info, Choices& choices, const Program& program, bool twice) {
  PassOptions options(info);
  for (const PassOptionInfo& option : info.options) {
    if (option.name == "max_bytes") {
      options.set(option.name, choices.pick({"0", "16", "256", "67108864", "67108864"}));
    } else if (option.name == "min_numel") {
      options.set(option.name, choices.pick({"0", "4", "1", "1024"}));
    } else if (option.kind == PassOptionInfo::Kind::kBool && choices.chance(40) &&
               may_switch(option.name, program, twice)) {
      options.set(option.name, option.default_text == "true" ? "false" : "true");
    }
  }
  return Pass(info, std::move(options));
}

}  // namespace

std::vector<CheckedPass> checked_passes(std::string_view pipeline) {
  std::vector<CheckedPass> passes;
  for (Pass& pass : parse_pipeline(pipeline)) {
    const Agreement agreement =
        reorders_sums(pass.name()) ? Agreement::kRounding : Agreement::kExact;
    passes.push_back({std::move(pass), agreement});
  }
  return passes;
}

std::vector<CheckedPass> random_passes(Choices& choices, const Program& program, bool twice,
                                       std::span<const CheckedPass> more) {
  std::vector<CheckedPass> passes;
  auto insert = [&](CheckedPass pass) {
    passes.insert(passes.begin() + static_cast<std::ptrdiff_t>(choices.below(passes.size() + 1)),
                  std::move(pass));
  };
  for (const PassInfo& info : all_passes())
    insert({with_options(info, choices, program, twice),
            reorders_sums(info.name) ? Agreement::kRounding : Agreement::kExact});
  for (const CheckedPass& pass : more) insert(pass);
  return passes;
}

std::optional<Failure> check_all(const Program& program, Choices& choices, Tally& tally,
                                 const OracleOptions& options) {
  ++tally.programs;
  tally.nodes += static_cast<std::int64_t>(program.module->graph().size());
  std::vector<std::pair<std::string, Check>> checks = {
      {"check_runs", check_runs}, {"check_text", check_text}, {"check_copies", check_copies}};
  if (choices.chance(options.archive_percent)) checks.emplace_back("check_archive", check_archive);
  for (auto& [name, check] : checks) {
    std::string message = check(program);
    if (!message.empty()) return Failure{name, std::move(message), check, name + "(program)"};
  }
  const bool twice = choices.chance(30);
  const std::vector<CheckedPass> passes =
      random_passes(choices, program, twice, options.more_passes);
  // One alone, then all of them.
  const std::vector<CheckedPass> alone = {choices.pick(passes)};
  for (const std::vector<CheckedPass>& some : {alone, passes}) {
    std::string message = check_passes(program, some, twice, &tally);
    if (message.empty()) continue;
    std::string pipeline;
    for (const CheckedPass& pass : some)
      pipeline += (pipeline.empty() ? "" : ", ") + pass.pass.str();
    return Failure{"check_passes", std::move(message),
                   [some, twice](const Program& other) { return check_passes(other, some, twice); },
                   "check_passes(program, checked_passes(\"" + pipeline + "\"), " +
                       (twice ? "true" : "false") + ")"};
  }
  return std::nullopt;
}

}  // namespace fx::fuzz
