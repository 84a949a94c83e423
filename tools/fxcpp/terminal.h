#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

/// What a terminal shows: colours, and the talk on stderr.
namespace fx::cli {

enum class Style { kPlain, kBold, kDim, kGood, kBad, kWarn };

/// `text` with escape codes for `style`, or as it is when `color` is false.
std::string styled(std::string_view text, Style style, bool color);

/// `text` of a file, fit for a terminal: control characters except line ends and tabs, also those
/// above ASCII that terminals obey, as \xNN.
std::string printable(std::string_view text);

/// Whether the stream is a terminal that wants colours: NO_COLOR (any value but empty) and
/// TERM=dumb switch them off.
bool stdout_has_color();
bool stderr_has_color();
/// Whether the stream is a terminal at all.
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Columns that `text` takes: UTF-8 code points, each counted as one.
std::size_t display_width(std::string_view text);

/// What the tool says on stderr while stdout holds the result alone. Each line starts with the
/// command ("fxcpp run: ").
class Talk {
 public:
  explicit Talk(std::string command) : command_(std::move(command)) {}

  void set_quiet(bool quiet) { quiet_ = quiet; }
  void set_verbose(bool verbose) { verbose_ = verbose; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }

  /// What the user should know: what was generated, where a file went. Silent with -q.
  void note(std::string_view text) const;
  /// With -v only.
  void detail(std::string_view text) const;
  /// Silent with -q.
  void warn(std::string_view text) const;
  /// Always.
  void error(std::string_view text) const;

 private:
  void line(std::string_view label, Style style, std::string_view text) const;

  std::string command_;
  bool quiet_ = false;
  bool verbose_ = false;
};

/// A line "running 12/345 layer1_conv" on stderr that redraws itself at most ten times a second. It
/// shows only on a terminal, only after one second, and leaves nothing behind.
class Progress {
 public:
  /// @param total 0 when unknown.
  Progress(const Talk& talk, std::string what, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more step is about to begin.
  void step(std::string_view name);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace fx::cli
