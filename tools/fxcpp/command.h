#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fxcpp/exit_code.h"
#include "tools/fxcpp/report.h"
#include "tools/fxcpp/terminal.h"
#include "tools/fxcpp/words.h"

namespace fx::cli {

/// The arguments behind the verb.
using Args = std::span<const std::string>;

/// The command line of one verb: its options, the ones all verbs have (--format, -q, -v, --help),
/// and the way its result leaves. The order in a verb: construct, add options, parse, work, finish.
class Command {
 public:
  /// A line of the examples in --help.
  struct Example {
    std::string_view line;
    std::string_view what;
  };

  Command(std::string verb, std::string summary, std::vector<Example> examples);

  /// For add_option and add_flag. Options that may be repeated take one value each time.
  CLI::App& app() { return app_; }
  /// A repeatable option ("-i,--input"), one value each time.
  CLI::Option* add_list(std::string names, std::vector<std::string>& values, std::string text);
  /// An option whose value is one of a few words; the others are refused with a "did you mean".
  CLI::Option* add_choice(std::string names, std::string& value, std::vector<std::string> choices,
                          std::string text);
  /// Replaces the values of --format; the first is the default. See format_name().
  void set_formats(std::vector<std::string> formats) { formats_ = std::move(formats); }

  /// False when help was asked for and printed.
  /// @throws UsageError kBadOption
  bool parse(Args args);

  const Talk& talk() const { return talk_; }
  const std::string& verb() const { return verb_; }
  const std::string& format_name() const { return format_; }
  bool format_given() const { return app_.get_option("--format")->count() > 0; }
  /// The value of --format as one of the common four; kTable for a verb's own formats.
  Format format() const;

  /// Prints the report on stdout and gives the exit status.
  int finish(const Report& report, ExitCode code = ExitCode::kOk) const;

 private:
  struct Choice {
    const std::string* value;
    std::string name;
    std::vector<std::string> choices;
  };
  void refuse_unknown_options(Args args) const;
  std::string missing_argument() const;
  void check_choices() const;

  std::string verb_;
  std::string example_;  ///< the first of --help
  CLI::App app_;
  Talk talk_;
  std::vector<std::string> formats_ = {"table", "md", "json", "csv"};
  std::string format_;
  bool quiet_ = false;
  bool verbose_ = false;
  std::vector<Choice> choices_;
};

/// Writes the result to stdout and flushes it.
/// @throws ImportError kWriteFailed when stdout cannot take it.
void write_stdout(std::string_view text);

}  // namespace fx::cli
