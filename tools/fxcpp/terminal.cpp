#include "tools/fxcpp/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace fx::cli {
namespace {

bool wants_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return isatty(fd) == 1;
}

const char* escape(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\033[1m";
    case Style::kDim:
      return "\033[2m";
    case Style::kGood:
      return "\033[32m";
    case Style::kBad:
      return "\033[1;31m";
    case Style::kWarn:
      return "\033[33m";
  }
  return "";
}

}  // namespace

std::string styled(std::string_view text, Style style, bool color) {
  if (!color || style == Style::kPlain || text.empty()) return std::string(text);
  return escape(style) + std::string(text) + "\033[0m";
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_wide = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
    if (is_wide || (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      const unsigned char shown = is_wide ? next : byte;
      out += {'\\', 'x', kHex[shown >> 4], kHex[shown & 15]};
      i += is_wide ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool stdout_has_color() {
  static const bool color = wants_color(STDOUT_FILENO);
  return color;
}

bool stderr_has_color() {
  static const bool color = wants_color(STDERR_FILENO);
  return color;
}

bool stdout_is_terminal() {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal;
}

bool stderr_is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  return terminal;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (unsigned char c : text) width += (c & 0xC0) != 0x80;
  return width;
}

void Talk::line(std::string_view label, Style style, std::string_view text) const {
  const bool color = stderr_has_color();
  const std::string line = styled(command_ + ":", Style::kDim, color) + " " +
                           styled(label, style, color) + printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Talk::note(std::string_view text) const {
  if (!quiet_) line("", Style::kPlain, text);
}
void Talk::detail(std::string_view text) const {
  if (verbose_ && !quiet_) line("", Style::kPlain, text);
}
void Talk::warn(std::string_view text) const {
  if (!quiet_) line("warning: ", Style::kWarn, text);
}
void Talk::error(std::string_view text) const { line("error: ", Style::kBad, text); }

Progress::Progress(const Talk& talk, std::string what, std::size_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(stderr_is_terminal() && !talk.quiet()),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::step(std::string_view name) {
  ++done_;
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  shown_ = true;
  std::string line = "\r\033[K" + what_ + " " + std::to_string(done_);
  if (total_ != 0) line += "/" + std::to_string(total_);
  line += " " + printable(name.substr(0, 50));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace fx::cli
