#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/fxcpp/table.h"

namespace fx::cli {

using Json = nlohmann::ordered_json;

/// How a result is printed on stdout.
enum class Format { kTable, kMarkdown, kJson, kCsv };

/// The result of a command, in all formats at once. The blocks are for people: lines and tables in
/// the order they were added. The JSON is for programs: every field named, units in the keys, raw
/// numbers. CSV is the array of flat objects in it that is the command's main table.
class Report {
 public:
  /// @param command goes into the JSON, after "schema_version".
  explicit Report(std::string_view command);

  /// A line that stands out.
  void heading(std::string text);
  /// Plain text; lines may be joined from cells with styles.
  void line(std::vector<Cell> cells);
  /// A table under a title of its own (none: empty). Left out when it has no rows.
  void table(std::string title, Table table);

  Json& json() { return json_; }
  /// The key in json() of the array that --format csv prints. Rows may lack keys; nested values are
  /// printed as JSON.
  void set_csv(std::string key) { csv_key_ = std::move(key); }

  std::string render(Format format, bool color) const;

 private:
  struct Heading {
    std::string text;
  };
  struct Line {
    std::vector<Cell> cells;
  };
  struct TableBlock {
    std::string title;
    Table table;
  };

  std::string text(bool color) const;
  std::string markdown() const;
  std::string csv() const;

  std::vector<std::variant<Heading, Line, TableBlock>> blocks_;
  Json json_;
  std::string csv_key_;
};

/// A double as JSON can hold it: "nan", "inf" and "-inf" become strings.
Json json_number(double value);

/// "1,234,567".
std::string with_commas(std::uint64_t value);
/// "94.2 KiB"; bytes below 1024 as "512 B".
std::string human_bytes(std::uint64_t bytes);
/// Up to six significant digits, "nan", "inf".
std::string short_number(double value);
/// "1 input", "3 inputs".
std::string counted(std::size_t count, std::string_view noun);

}  // namespace fx::cli
