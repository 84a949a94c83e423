// Sequences of random edits: lint accepts every graph on the way, texts and copies equal it, a
// snapshot brings it back, and edits that keep the meaning keep results.

#include <gtest/gtest.h>

#include "fx/graph/module_snapshot.h"
#include "fx/graph/text.h"
#include "tests/graph/random_graph.h"
#include "tests/random/edits.h"
#include "tests/random/program.h"
#include "tests/random/run_settings.h"

namespace fx::fuzz {
namespace {

// What is wrong with the graph as a structure.
std::string structure_problem(const Graph& graph, bool strict) {
  try {
    graph.lint({.strict = strict});
    const std::string text = to_text(graph, {.meta = true});
    const auto parsed = parse_text(text);
    if (to_text(*parsed, {.meta = true}) != text) return "the text of the parsed text differs";
    const auto clone = graph.clone();
    clone->lint({.strict = strict});
    if (to_text(*clone, {.meta = true}) != text) return "the text of the clone differs";
    for (const auto& other : {parsed, clone})
      if (!other->same_structure(graph) || other->structural_hash() != graph.structural_hash())
        return "the structure of a copy differs";
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void expect_sound_sequence(std::shared_ptr<Graph> graph, Choices& choices, bool strict) {
  Editor editor(choices, std::move(graph), {.strict = strict});
  std::string history;
  for (int i = 0; i < 25; ++i) {
    const std::string words = editor.step();
    if (!words.empty()) history += words + "\n";
    ASSERT_EQ(structure_problem(editor.graph(), strict), "") << history << to_text(editor.graph());
    ASSERT_EQ(editor.refused_step(), "") << history << to_text(editor.graph());
  }
}

TEST(EditSequence, structures_stay_sound) {
  const RunSettings settings = run_settings(600);
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    SCOPED_TRACE(settings.rerun(seed));
    Choices choices(seed);
    expect_sound_sequence(random_graph(seed, 20), choices, /*strict=*/false);
    if (HasFatalFailure()) return;
  }
}

TEST(EditSequence, programs_stay_sound) {
  const RunSettings settings = run_settings(600);
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    SCOPED_TRACE(settings.rerun(seed));
    Choices choices(seed);
    expect_sound_sequence(random_program(choices).module->graph().clone(), choices,
                          /*strict=*/true);
    if (HasFatalFailure()) return;
  }
}

TEST(EditSequence, a_snapshot_undoes_all_edits) {
  const RunSettings settings = run_settings(600);
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    SCOPED_TRACE(settings.rerun(seed));
    Choices choices(seed);
    const auto graph = random_program(choices).module->graph().clone();
    GraphSnapshot snapshot(*graph, GraphSnapshot::Keep::kForRestore);
    const std::string text = to_text(*graph, {.meta = true});
    Editor editor(choices, graph, {.strict = true});
    // Not beyond a clone, which is another graph.
    for (int i = 0; i < 25 && editor.graph_ptr() == graph; ++i) editor.step();
    snapshot.restore();
    ASSERT_EQ(to_text(*graph, {.meta = true}), text);
    ASSERT_EQ(structure_problem(*graph, /*strict=*/true), "");
    ASSERT_FALSE(snapshot.differs());
  }
}

TEST(EditSequence, edits_that_keep_the_meaning_keep_results) {
  const RunSettings settings = run_settings(600);
  int edits = 0;
  for (std::uint64_t seed = settings.first; seed < settings.end(); ++seed) {
    SCOPED_TRACE(settings.rerun(seed));
    Choices choices(seed);
    ProgramOptions options;
    options.writing_programs_percent = options.drawing_programs_percent = 0;
    const Program program = random_program(choices, options);
    const auto module = program.module->deep_copy();
    Editor editor(choices, module->graph_ptr(), {.strict = true, .keep_meaning = true});
    std::string history;
    for (int i = 0; i < 25; ++i) {
      const std::string words = editor.step();
      if (words.empty()) continue;
      history += words + "\n";
      ++edits;
      ASSERT_NO_THROW(module->graph().lint({.strict = true})) << history;
    }
    module->recompile();
    for (const Runner runner : {Runner::kInterpreter, Runner::kPlan})
      ASSERT_EQ(difference(*program.eager, run(*module, program.inputs, {.runner = runner}),
                           Agreement::kExact),
                "")
          << history << to_text(program.module->graph()) << to_text(module->graph());
  }
  EXPECT_GT(edits, 5 * static_cast<int>(settings.count));
}

}  // namespace
}  // namespace fx::fuzz
