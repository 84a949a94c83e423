#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Comparing what the pages under docs/ show with what programs print.
namespace fx::docs_test {

/// A page and its marked blocks: a fenced block below a line `<!-- output: NAME -->`.
class Page {
 public:
  /// @param path relative to the folder docs.
  explicit Page(std::string path);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  /// Whether the page holds `words`, with any white space between them.
  bool says(std::string_view words) const;
  /// Names of all marked outputs, in order.
  std::vector<std::string> output_names() const;
  /// The block marked NAME; a failed assertion and empty if there is none.
  std::string output(std::string_view name) const;
  /// Expects that the block is `printed`. With the environment variable FXCPP_UPDATE_DOCS set,
  /// writes it into the page instead.
  void expect_output(std::string_view name, const std::string& printed);

 private:
  std::string path_;
  std::string text_;
};

/// All pages of a folder below docs, sorted.
std::vector<std::string> pages_in(const std::string& folder);

/// What a fresh run of the program example_NAME printed below the line "== SECTION", or all of it
/// for an empty section. Each program runs once.
std::string example_output(const std::string& name, const std::string& section = {});

/// Takes what is written to standard output while it lives.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  /// Ends the capture.
  std::string text();

 private:
  bool active_ = true;
};

}  // namespace fx::docs_test
