#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/base/error.h"
#include "fx/ops/version.h"
#include "tools/fxcpp/command.h"
#include "tools/fxcpp/exit_code.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

struct Verb {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  int (*run)(Args);
};

constexpr std::array kVerbs = {
#define FXCPP_VERB(name, arguments, summary) Verb{#name, arguments, summary, &run_##name},
#include "tools/fxcpp/verbs.def"
#undef FXCPP_VERB
};

std::string help_text() {
  std::string out =
      "fxcpp: look into, transform, run and check PyTorch programs, without Python\n\n"
      "usage: fxcpp VERB [arguments] [options]\n\nverbs:\n";
  for (const Verb& verb : kVerbs) {
    std::string left = "  " + std::string(verb.name) + " " + std::string(verb.arguments);
    left.resize(17, ' ');
    out += left + std::string(verb.summary) + "\n";
  }
  out +=
      "\n"
      "A FILE is what torch.export.save(torch.export.export(model, args), 'model.pt2') wrote.\n\n"
      "start here:\n"
      "  fxcpp info model.pt2                       # what is in it\n"
      "  fxcpp run model.pt2                        # run it on generated inputs\n"
      "  fxcpp run model.pt2 -i x=@x.npy -o y.npy   # on yours\n"
      "  fxcpp VERB --help                          # options and examples of a verb\n\n"
      "exit status: 0 ok, 1 mismatch, 2 usage, 3 unsupported model, 4 unreadable file, 5 internal "
      "error\n";
  return out;
}

/// @throws UsageError when there is no such verb.
const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return verb;
    names.emplace_back(verb.name);
  }
  if (name.starts_with('-'))
    throw UsageError(ErrorCode::kBadOption, "the verb comes first, options such as '" + name +
                                                "' follow it: a verb is " + any_of(names));
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored))
    throw UsageError(ErrorCode::kBadOption, "'" + name +
                                                "' is a file: say what to do with it, as in "
                                                "`fxcpp info " +
                                                name + "`");
  throw UsageError(
      ErrorCode::kBadOption,
      "unknown verb '" + name + "'" + did_you_mean(name, names) + ". A verb is " + any_of(names));
}

int run(std::vector<std::string> args) {
  if (args.empty()) {
    std::fputs(help_text().c_str(), stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    if (args.size() > 1) return find_verb(args[1]).run(std::array<std::string, 1>{"--help"});
    write_stdout(help_text());
    return static_cast<int>(ExitCode::kOk);
  }
  if (args[0] == "--version" || args[0] == "version") {
    write_stdout(version_line() + "\n");
    return static_cast<int>(ExitCode::kOk);
  }
  return find_verb(args[0]).run(std::span(args).subspan(1));
}

}  // namespace
}  // namespace fx::cli

int main(int argc, char** argv) {
  using namespace fx::cli;
  std::string command = "fxcpp";
  for (const Verb& verb : kVerbs)
    if (argc > 1 && verb.name == argv[1]) command += " " + std::string(verb.name);
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    Talk(command).error(describe_error(error));
    return static_cast<int>(exit_code_of(error));
  } catch (...) {
    Talk(command).error("internal error: an exception that is no std::exception");
    return static_cast<int>(ExitCode::kInternal);
  }
}
