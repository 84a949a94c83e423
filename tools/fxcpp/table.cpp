#include "tools/fxcpp/table.h"

#include <algorithm>

#include "fx/base/error.h"

namespace fx::cli {
namespace {

std::string escape_markdown(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return without_tags(out);
}

}  // namespace

std::string without_tags(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<Cell> row) {
  FX_ASSERT(row.size() == titles_.size(), "a row with another number of cells than the table");
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::to_text(bool color, std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles_) widths.push_back(display_width(title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i].text));

  std::string out;
  auto append = [&](std::size_t column, const std::string& text, Style style) {
    const std::size_t pad = widths[column] - display_width(text);
    const bool last = column + 1 == titles_.size();
    if (right_[column]) out.append(pad, ' ');
    out += styled(text, style, color);
    if (!right_[column] && !last) out.append(pad, ' ');
    if (!last) out += "  ";
  };
  auto end_line = [&out] {
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  };
  out.append(indent, ' ');
  for (std::size_t i = 0; i < titles_.size(); ++i) append(i, titles_[i], Style::kDim);
  end_line();
  for (const auto& row : rows_) {
    out.append(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) append(i, row[i].text, row[i].style);
    end_line();
  }
  return out;
}

std::string Table::to_markdown() const {
  std::string out = "|";
  for (const std::string& title : titles_) out += " " + escape_markdown(title) + " |";
  out += "\n|";
  for (bool right : right_) out += right ? " ---: |" : " --- |";
  out += "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (const Cell& cell : row) out += " " + escape_markdown(cell.text) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace fx::cli
