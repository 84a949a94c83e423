#include "tools/fxcpp/report.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace fx::cli {
namespace {

constexpr int kSchemaVersion = 1;

/// JSON leaves U+007F to U+009F as they are, which terminals obey.
std::string json_text(std::string_view text) {
  std::string out = printable(text);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (out[i] != '\\') continue;
    if (out[i + 1] == 'x') out.replace(i, 2, "\\u00");  // no escape of JSON: one of the above
    ++i;
  }
  return out;
}

std::string csv_field(const Json& value) {
  std::string text;
  if (value.is_string())
    text = printable(value.get<std::string>());
  else if (!value.is_null())
    text = value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Report::Report(std::string_view command) {
  json_["schema_version"] = kSchemaVersion;
  json_["command"] = command;
}

void Report::heading(std::string text) { blocks_.emplace_back(Heading{printable(text)}); }
void Report::line(std::vector<Cell> cells) {
  for (Cell& cell : cells) cell.text = printable(cell.text);
  blocks_.emplace_back(Line{std::move(cells)});
}
void Report::table(std::string title, Table table) {
  if (!table.empty()) blocks_.emplace_back(TableBlock{std::move(title), std::move(table)});
}

std::string Report::render(Format format, bool color) const {
  switch (format) {
    case Format::kTable:
      return text(color);
    case Format::kMarkdown:
      return markdown();
    case Format::kJson:
      // Text of a file that is no UTF-8 must not keep the rest from being read.
      return json_text(json_.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
    case Format::kCsv:
      return csv();
  }
  return {};
}

std::string Report::text(bool color) const {
  std::string out;
  bool after_table = false;
  for (const auto& block : blocks_) {
    if (const auto* heading = std::get_if<Heading>(&block)) {
      if (!out.empty()) out += '\n';
      out += styled(heading->text, Style::kBold, color) + "\n";
    } else if (const auto* line = std::get_if<Line>(&block)) {
      if (after_table) out += '\n';
      for (const Cell& cell : line->cells) out += styled(cell.text, cell.style, color);
      out += '\n';
    } else if (const auto* table = std::get_if<TableBlock>(&block)) {
      if (!out.empty()) out += '\n';
      if (!table->title.empty()) {
        out += styled(table->title, Style::kBold, color) + "\n";
      }
      out += table->table.to_text(color, table->title.empty() ? 0 : 2);
    }
    after_table = std::holds_alternative<TableBlock>(block);
  }
  return out;
}

std::string Report::markdown() const {
  std::string out;
  for (const auto& block : blocks_) {
    if (!out.empty()) out += '\n';
    if (const auto* heading = std::get_if<Heading>(&block)) {
      out += "## " + without_tags(heading->text) + "\n";
    } else if (const auto* line = std::get_if<Line>(&block)) {
      for (const Cell& cell : line->cells) out += without_tags(cell.text);
      out += '\n';
    } else if (const auto* table = std::get_if<TableBlock>(&block)) {
      if (!table->title.empty()) out += "**" + table->title + "**\n\n";
      out += table->table.to_markdown();
    }
  }
  return out;
}

std::string Report::csv() const {
  const auto rows = json_.find(csv_key_);
  if (rows == json_.end()) return {};
  std::vector<std::string> keys;
  for (const Json& row : *rows)
    for (const auto& [key, value] : row.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::string out;
  for (std::size_t i = 0; i < keys.size(); ++i) out += (i ? "," : "") + csv_field(Json(keys[i]));
  if (!keys.empty()) out += '\n';
  for (const Json& row : *rows) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i) out += ',';
      if (auto value = row.find(keys[i]); value != row.end()) out += csv_field(*value);
    }
    out += '\n';
  }
  return out;
}

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string with_commas(std::uint64_t value) {
  std::string out = std::to_string(value);
  for (std::size_t i = out.size(); i > 3; i -= 3) out.insert(i - 3, ",");
  return out;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace fx::cli
