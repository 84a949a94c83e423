#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fx/base/error.h"
#include "fx/graph/argument.h"

namespace fx::text {

/// Reads the tokens and literals of one text, line by line, and reports errors with their place.
/// The position never leaves the current line: a node stands on one line.
class Scanner {
 public:
  /// Finds the node behind a %name; may throw through Scanner::fail.
  class NodeResolver {
   public:
    virtual ~NodeResolver() = default;
    virtual Node& resolve(std::string_view name) = 0;
  };

  explicit Scanner(std::string_view text) : text_(text) { set_line(0); }

  // --- lines -----------------------------------------------------------------------------------
  /// Goes to the next line that holds more than blanks and a comment; false at the end of the text.
  bool next_line();
  std::size_t line_number() const { return line_; }
  std::size_t position() const { return at_; }
  /// Goes back to a position of an earlier line.
  void seek(std::size_t line_number, std::size_t line_start, std::size_t position);
  std::size_t line_start() const { return start_; }

  // --- tokens; all skip blanks first
  // ---------------------------------------------------------------
  void skip_blanks();
  /// Whether the line is used up, up to a comment.
  bool at_end();
  bool peek(char c);
  /// Takes `c` if it comes next.
  bool take(char c);
  bool take(std::string_view word);
  /// @throws ParseError kParseSyntax "wanted <what>".
  void expect(char c, std::string_view what);
  /// The identifier that comes next, possibly empty.
  std::string_view identifier();
  /// The longest run of characters for which `fits`.
  template <typename Fits>
  std::string_view run(Fits&& fits) {
    const std::size_t from = at_;
    while (at_ < end_ && fits(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  /// A quoted string. @throws ParseError
  std::string quoted();

  /// A literal or an aggregate, up to Argument::kMaxDepth levels deep.
  /// @param nodes resolves %names; null where no node may stand.
  Argument value(NodeResolver* nodes, int depth = 0);
  /// Items up to the closing character, which is taken: "1, %a)". Sets `one_comma` for "(1,)".
  std::vector<Argument> items(char close, NodeResolver* nodes, int depth, bool* trailing_comma);

  /// Throws a ParseError at `position` (default: here): "line 3, column 7: wanted X, found Y", and
  /// the line with a mark below.
  [[noreturn]] void fail(ErrorCode code, std::string_view message, std::size_t position) const;
  [[noreturn]] void fail_wanted(std::string_view what) const;

 private:
  void set_line(std::size_t start);
  std::string found() const;
  Argument number();
  Argument word(NodeResolver* nodes, int depth);
  Argument dict(NodeResolver* nodes, int depth);
  Argument device();
  double float_literal();

  std::string_view text_;
  std::size_t line_ = 1;
  std::size_t start_ = 0;  // of the line
  std::size_t end_ = 0;    // of the line, before its line feed
  std::size_t at_ = 0;
  bool fresh_ = true;  // the first line has not been given out yet
};

}  // namespace fx::text
