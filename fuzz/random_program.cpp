// Bytes as the choices that make a program: every check of random programs holds, and random edits
// leave its graph sound.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "fx/graph/text.h"
#include "tests/random/edits.h"
#include "tests/random/minimise.h"

namespace {

[[noreturn]] void fail(const std::string& words) {
  std::fputs(words.c_str(), stderr);
  std::abort();
}

void edit(const fx::fuzz::Program& program, fx::fuzz::Choices& choices) {
  fx::fuzz::Editor editor(choices, program.module->graph().clone(), {.strict = true});
  std::string history;
  while (!choices.exhausted()) {
    history += editor.step() + "\n";
    try {
      editor.graph().lint({.strict = true});
      const std::string text = fx::to_text(editor.graph(), {.meta = true});
      if (fx::to_text(*fx::parse_text(text), {.meta = true}) != text)
        fail(history + "the text of the parsed text differs\n" + text);
    } catch (const std::exception& error) {
      fail(history + error.what() + "\n" + fx::to_text(editor.graph()));
    }
    const std::string words = editor.refused_step();
    if (!words.empty()) fail(history + words + "\n");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fx::fuzz::Choices choices(std::span(data, size));
  const bool edits = choices.chance(25);
  const fx::fuzz::Program program = fx::fuzz::random_program(choices);
  if (edits) {
    edit(program, choices);
    return 0;
  }
  static fx::fuzz::Tally tally;
  const auto failure = fx::fuzz::check_all(program, choices, tally, {.archive_percent = 2});
  if (failure)
    fail(fx::fuzz::report(program, *failure, "again with the file that libFuzzer wrote"));
  return 0;
}
