#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/fxcpp/terminal.h"

namespace fx::cli {

/// A cell: text, and how a terminal shows it.
struct Cell {
  std::string text;
  Style style = Style::kPlain;

  Cell() = default;
  Cell(std::string t, Style s = Style::kPlain) : text(std::move(t)), style(s) {}
  Cell(const char* t) : text(t) {}
};

/// `text` for Markdown, which would take what follows a "<" for HTML.
std::string without_tags(std::string_view text);

/// Rows under titled columns. A title that starts with '>' is right-aligned, and so is its column.
class Table {
 public:
  Table() = default;
  explicit Table(std::vector<std::string> titles);

  /// @pre as many cells as there are titles.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }

  /// Columns padded to their widest cell, two blanks apart, each line after `indent` blanks; no
  /// blanks at the ends of lines.
  std::string to_text(bool color, std::size_t indent = 2) const;
  /// A GitHub table; bars in cells are escaped.
  std::string to_markdown() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace fx::cli
