#include "fx/passes/pass.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

using Kind = PassOptionInfo::Kind;

std::string_view kind_text(Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return "true or false";
    case Kind::kInt:
      return "an integer";
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a text";
  }
  return "";
}

template <typename T>
bool reads_as(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool fits(std::string_view text, Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return text == "true" || text == "false";
    case Kind::kInt:
      return reads_as<std::int64_t>(text);
    case Kind::kFloat:
      return reads_as<double>(text);
    case Kind::kString:
      return true;
  }
  return false;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : "; did you mean " + str_repr(near) + "?";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

[[noreturn]] void throw_syntax(std::string_view pipeline, std::size_t at, std::string_view wanted) {
  throw PassError(ErrorCode::kBadPassOption,
                  "cannot read the pipeline " + str_repr(pipeline) + ": wanted " +
                      std::string(wanted) + " at character " + std::to_string(at + 1) + ", found " +
                      (at < pipeline.size() ? str_repr(pipeline.substr(at, 1)) : "the end"));
}

}  // namespace

// --- options -------------------------------------------------------------------------------------

PassOptions::PassOptions(const PassInfo& info) : info_(&info) {
  for (const PassOptionInfo& option : info.options) texts_.emplace_back(option.default_text);
}

void PassOptions::set(std::string_view name, std::string_view text) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const PassOptionInfo& option = info_->options[i];
    if (option.name != name) continue;
    if (!fits(text, option.kind))
      throw PassError(ErrorCode::kBadPassOption, "the option " + str_repr(name) + " of the pass " +
                                                     str_repr(info_->name) + " takes " +
                                                     std::string(kind_text(option.kind)) +
                                                     ", found " + str_repr(text));
    texts_[i] = text;
    return;
  }
  std::vector<std::string> known;
  for (const PassOptionInfo& option : info_->options) known.emplace_back(option.name);
  throw PassError(ErrorCode::kBadPassOption, "the pass " + str_repr(info_->name) +
                                                 " has no option " + str_repr(name) +
                                                 did_you_mean(name, known));
}

const std::string& PassOptions::text_of(std::string_view name, Kind kind) const {
  for (std::size_t i = 0; i < texts_.size(); ++i)
    if (info_->options[i].name == name && info_->options[i].kind == kind) return texts_[i];
  FX_ASSERT(false, "the pass declares no such option");
}

bool PassOptions::get_bool(std::string_view name) const {
  return text_of(name, Kind::kBool) == "true";
}

std::int64_t PassOptions::get_int(std::string_view name) const {
  const std::string& text = text_of(name, Kind::kInt);
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double PassOptions::get_float(std::string_view name) const {
  const std::string& text = text_of(name, Kind::kFloat);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

const std::string& PassOptions::get_string(std::string_view name) const {
  return text_of(name, Kind::kString);
}

std::string PassOptions::str() const {
  std::string out;
  for (std::size_t i = 0; i < texts_.size(); ++i)
    if (texts_[i] != info_->options[i].default_text)
      out += (out.empty() ? "" : ", ") + std::string(info_->options[i].name) + "=" + texts_[i];
  return out.empty() ? out : "(" + out + ")";
}

// --- passes --------------------------------------------------------------------------------------

Pass::Pass(const PassInfo& info, PassOptions options)
    : name_(info.name), info_(&info), options_(std::move(options)) {}

std::optional<PassResult> Pass::operator()(GraphModule& module) const {
  return info_ ? info_->run(module, *options_) : function_(module);
}

const PassInfo& find_pass(std::string_view name) {
  for (const PassInfo& info : all_passes())
    if (info.name == name) return info;
  std::vector<std::string> known;
  for (const PassInfo& info : all_passes()) known.emplace_back(info.name);
  throw PassError(ErrorCode::kUnknownPass,
                  "there is no pass " + str_repr(name) + did_you_mean(name, known));
}

std::vector<Pass> parse_pipeline(std::string_view text) {
  std::vector<Pass> passes;
  std::size_t at = 0;
  auto skip_space = [&] {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  };
  auto take_word = [&](std::string_view wanted) {
    skip_space();
    const std::size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    if (at == begin) throw_syntax(text, at, wanted);
    return text.substr(begin, at - begin);
  };
  auto take = [&](char c) {
    skip_space();
    if (at == text.size() || text[at] != c) return false;
    ++at;
    return true;
  };

  skip_space();
  if (at == text.size()) return passes;
  do {
    const PassInfo& info = find_pass(take_word("the name of a pass"));
    PassOptions options(info);
    if (take('(') && !take(')')) {
      do {
        const std::string_view option = take_word("the name of an option");
        if (take('=')) {
          const std::size_t end = std::min(text.find_first_of(",)", at), text.size());
          options.set(option, trimmed(text.substr(at, end - at)));
          at = end;
        } else {
          options.set(option, "true");
        }
      } while (take(','));
      if (!take(')')) throw_syntax(text, at, "',' or ')'");
    }
    passes.emplace_back(info, std::move(options));
  } while (take(','));
  if (at != text.size()) throw_syntax(text, at, "',' between passes");
  return passes;
}

}  // namespace fx
