#include "tools/fxcpp/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fx/base/error.h"
#include "tools/fxcpp/words.h"

namespace fx::cli {
namespace {

constexpr std::size_t kHelpColumn = 28;
constexpr std::size_t kHelpWidth = 100;
constexpr std::string_view kOptionsGroup = "options";
constexpr std::string_view kCommonGroup = "common options";

/// Appends `text` in lines of at most kHelpWidth columns, further lines indented by `indent`.
void append_wrapped(std::string& out, std::string_view text, std::size_t column,
                    std::size_t indent) {
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!first && column + 1 + end > kHelpWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    first = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

/// Help in the tool's own layout: what the verb does, usage, options, examples.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string usage = "usage: " + app->get_name(), arguments, common;
    std::vector<std::pair<std::string, std::string>> groups = {{std::string(kOptionsGroup), ""}};
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) {
        const std::string name = option->get_name(true);
        usage += option->get_required() ? " " + name : " [" + name + "]";
        append_row(arguments, name, option->get_description());
        continue;
      }
      if (option->get_group() == kCommonGroup) {
        append_row(common, names_of(*option), option->get_description());
        continue;
      }
      auto group = std::ranges::find(groups, option->get_group(),
                                     &std::pair<std::string, std::string>::first);
      if (group == groups.end()) group = groups.insert(group, {option->get_group(), ""});
      append_row(group->second, names_of(*option), option->get_description());
    }
    std::string out;
    append_wrapped(out, app->get_description(), 0, 0);
    out += "\n" + usage + " [options]\n";
    if (!arguments.empty()) out += "\narguments:\n" + arguments;
    for (const auto& [group, rows] : groups)
      if (!rows.empty()) out += "\n" + group + ":\n" + rows;
    out += "\n" + std::string(kCommonGroup) + ":\n" + common;
    return out + "\n" + app->get_footer() + "\n";
  }

 private:
  static std::string names_of(const CLI::Option& option) {
    std::string names;
    for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
    if (names.empty()) names = "    ";
    for (const std::string& name : option.get_lnames()) names += "--" + name + " ";
    const std::string type = option.get_type_name();
    return type.empty() ? names : names + type;
  }

  static void append_row(std::string& out, const std::string& names, const std::string& text) {
    std::string line = "  " + names;
    if (line.size() + 2 > kHelpColumn) {
      out += line + "\n";
      line.clear();
    }
    line.resize(kHelpColumn, ' ');
    out += line;
    append_wrapped(out, text, kHelpColumn, kHelpColumn);
  }
};

/// CLI11's "Could not convert: --seed = abc" in our words.
std::string bad_value(const std::string& text) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (!text.starts_with(kPrefix) || equals == std::string::npos) return text;
  return text.substr(kPrefix.size(), equals - kPrefix.size()) + " cannot be '" +
         text.substr(equals + 3) + "': it is a number";
}

std::string examples_text(const std::vector<Command::Example>& examples) {
  std::size_t width = 0;
  for (const Command::Example& example : examples) width = std::max(width, example.line.size());
  std::string out = "examples:";
  for (const Command::Example& example : examples) {
    out += "\n  " + std::string(example.line);
    out.append(width - example.line.size(), ' ');
    out += "   # " + std::string(example.what);
  }
  return out;
}

}  // namespace

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  throw ImportError(ErrorCode::kWriteFailed, std::string("cannot write the result to standard "
                                                         "output: ") +
                                                 std::strerror(errno));
}

Command::Command(std::string verb, std::string summary, std::vector<Example> examples)
    : verb_(std::move(verb)), app_(std::move(summary), "fxcpp " + verb_), talk_("fxcpp " + verb_) {
  app_.formatter(std::make_shared<HelpFormatter>());
  if (!examples.empty()) example_ = examples.front().line;
  app_.footer(examples_text(examples));
  app_.option_defaults()->group(std::string(kOptionsGroup));
  app_.set_help_flag("-h,--help", "show this")->group(std::string(kCommonGroup));
}

CLI::Option* Command::add_list(std::string names, std::vector<std::string>& values,
                               std::string text) {
  return app_.add_option(std::move(names), values, std::move(text))->allow_extra_args(false);
}

CLI::Option* Command::add_choice(std::string names, std::string& value,
                                 std::vector<std::string> choices, std::string text) {
  CLI::Option* option = app_.add_option(std::move(names), value, std::move(text));
  choices_.push_back({&value, option->get_name(), std::move(choices)});
  return option;
}

bool Command::parse(Args args) {
  format_ = formats_.front();
  std::string formats;
  for (const std::string& name : formats_) formats += (formats.empty() ? "" : "|") + name;
  add_choice("--format", format_, formats_, formats + " (default: " + formats_.front() + ")")
      ->type_name("FORMAT")
      ->group(std::string(kCommonGroup));
  app_.add_flag("-q,--quiet", quiet_, "say nothing on stderr but errors")
      ->group(std::string(kCommonGroup));
  app_.add_flag("-v,--verbose", verbose_, "say more on stderr")->group(std::string(kCommonGroup));

  const bool help = std::ranges::any_of(
      args, [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
  if (help) {
    write_stdout(app_.help());
    return false;
  }
  refuse_unknown_options(args);
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app_.parse(std::move(reversed));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extra = app_.remaining();
    std::string text = "unexpected argument '" + extra.front() + "'";
    const bool is_input =
        extra.front().find('=') != std::string::npos || extra.front().starts_with('@');
    if (is_input && app_.get_option_no_throw("--input") != nullptr)
      text += "; each input needs its own -i: -i '" + extra.front() + "'";
    throw UsageError(ErrorCode::kBadOption, text);
  } catch (const CLI::RequiredError& error) {
    throw UsageError(ErrorCode::kBadOption,
                     "no " + missing_argument() + " was given; try `" + example_ + "`");
  } catch (const CLI::ConversionError& error) {
    throw UsageError(ErrorCode::kBadOption, bad_value(error.what()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(ErrorCode::kBadOption, error.what());
  }
  check_choices();
  talk_.set_quiet(quiet_);
  talk_.set_verbose(verbose_);
  return true;
}

/// CLI11 takes the value of an option that it does not know for a positional argument, and
/// complains about that; so options are looked up before it parses.
void Command::refuse_unknown_options(Args args) const {
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  for (const std::string& arg : args) {
    if (arg == "--") return;
    if (arg.size() < 2 || arg[0] != '-' || std::isdigit(static_cast<unsigned char>(arg[1])))
      continue;
    const bool is_long = arg[1] == '-';
    const std::string name = is_long ? arg.substr(0, arg.find('=')) : arg.substr(0, 2);
    if (std::ranges::find(known, name) != known.end()) continue;
    throw UsageError(ErrorCode::kBadOption, "unknown option '" + (is_long ? name : arg) + "'" +
                                                did_you_mean(is_long ? name : "-" + arg, known));
  }
}

std::string Command::missing_argument() const {
  for (const CLI::Option* option : app_.get_options())
    if (option->get_required() && option->count() == 0)
      return option->get_name(option->get_positional());
  return "argument";
}

void Command::check_choices() const {
  for (const Choice& choice : choices_) {
    if (choice.value->empty()) continue;
    if (std::ranges::find(choice.choices, *choice.value) != choice.choices.end()) continue;
    throw UsageError(ErrorCode::kBadOption, choice.name + " cannot be '" + *choice.value +
                                                "': it is " + any_of(choice.choices) +
                                                did_you_mean(*choice.value, choice.choices));
  }
}

Format Command::format() const {
  if (format_ == "md") return Format::kMarkdown;
  if (format_ == "json") return Format::kJson;
  if (format_ == "csv") return Format::kCsv;
  return Format::kTable;
}

int Command::finish(const Report& report, ExitCode code) const {
  write_stdout(report.render(format(), stdout_has_color()));
  return static_cast<int>(code);
}

}  // namespace fx::cli
