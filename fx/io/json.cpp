#include "fx/io/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fx/base/text.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

constexpr std::size_t kMaxUnknownKeys = 20;
constexpr std::size_t kMaxShown = 60;

/// How many commas, colons and opening brackets are read: each costs up to 24 bytes once it is
/// parsed, ten times its text. What programs, weights and saved modules are made of has one of
/// kRecordKeys and far fewer of them than kMarksOfRecord.
constexpr std::size_t kMaxMarks = 2'000'000;
constexpr std::size_t kMarksOfRecord = 256;
constexpr std::string_view kRecordKeys[] = {"\"target\"", "\"path_name\"", "\"data_offsets\"",
                                            "\"class\""};

std::size_t count_marks(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (c == ',') + (c == ':') + (c == '[') + (c == '{');
  return count;
}

std::size_t count_records(std::string_view text) {
  std::size_t count = 0;
  for (std::string_view key : kRecordKeys)
    for (std::size_t at = text.find(key); at != std::string_view::npos;
         at = text.find(key, at + key.size()))
      ++count;
  return count;
}

std::string describe(simdjson::dom::element element) {
  using Type = simdjson::dom::element_type;
  switch (element.type()) {
    case Type::ARRAY:
      return "an array";
    case Type::OBJECT:
      return "an object";
    case Type::STRING:
      return "the string " + shown(std::string_view(element), kMaxShown);
    case Type::NULL_VALUE:
      return "null";
    case Type::BOOL:
      return bool(element) ? "true" : "false";
    case Type::INT64:
      return std::to_string(std::int64_t(element));
    case Type::UINT64:
      return std::to_string(std::uint64_t(element));
    case Type::DOUBLE:
      return float_repr(double(element));
  }
  return "something unknown";
}

void append_path(std::string& out, const JsonPath* path) {
  if (path == nullptr) return;
  append_path(out, path->parent);
  if (path->key.data() == nullptr) {
    out += "[" + std::to_string(path->index) + "]";
  } else if (is_identifier(path->key)) {
    if (!out.empty()) out += '.';
    out += path->key;
  } else {
    out += "[" + shown(path->key, kMaxShown) + "]";
  }
}

std::string path_text_of(const JsonPath* path) {
  std::string text;
  append_path(text, path);
  return text.empty() ? "the top level" : text;
}

}  // namespace

bool JsonValue::to_bool() const {
  if (!element_.is_bool()) fail_type("true or false");
  return bool(element_);
}

std::int64_t JsonValue::to_int() const {
  if (element_.is_uint64() && !element_.is_int64())
    fail(describe(element_) + " does not fit an int64");
  if (!element_.is_int64()) fail_type("an integer");
  return std::int64_t(element_);
}

std::int64_t JsonValue::to_int(std::int64_t low, std::int64_t high) const {
  std::int64_t value = to_int();
  if (value < low || value > high)
    fail(std::to_string(value) + " found, a value from " + std::to_string(low) + " to " +
         std::to_string(high) + " is wanted");
  return value;
}

double JsonValue::to_double() const {
  if (element_.is_string()) {
    std::string_view text(element_);
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  if (!element_.is_number()) fail_type("a number");
  return double(element_);
}

std::string_view JsonValue::to_string() const {
  if (!element_.is_string()) fail_type("a string");
  return std::string_view(element_);
}

simdjson::dom::object JsonValue::object() const {
  if (!element_.is_object()) fail_type("an object");
  return simdjson::dom::object(element_);
}

simdjson::dom::array JsonValue::array() const {
  if (!element_.is_array()) fail_type("an array");
  return simdjson::dom::array(element_);
}

std::size_t JsonValue::size() const {
  std::size_t count = 0;
  if (element_.is_array()) {
    for ([[maybe_unused]] auto element : array()) ++count;
  } else {
    for ([[maybe_unused]] auto member : object()) ++count;
  }
  return count;
}

std::string JsonValue::path_text() const { return path_text_of(path_); }

void JsonValue::fail(const std::string& what) const {
  throw ImportError(document_->schema_code(),
                    document_->label() + ": " + path_text() + ": " + what);
}

void JsonValue::fail_type(std::string_view wanted) const {
  fail(describe(element_) + " found, " + std::string(wanted) + " is wanted");
}

JsonDocument::JsonDocument(std::string text, std::string label, ErrorCode syntax, ErrorCode schema,
                           std::size_t max_depth)
    : label_(std::move(label)), schema_(schema) {
  auto fail = [&](const std::string& what) { throw ImportError(syntax, label_ + ": " + what); };
  if (text.empty()) fail("the text is empty, JSON is wanted");
  if (text.size() > kMaxMarks)
    if (const std::size_t marks = count_marks(text); marks > kMaxMarks)
      if (const std::size_t records = count_records(text);
          marks > kMaxMarks + kMarksOfRecord * records)
        fail("it holds " + std::to_string(marks) + " commas, colons and brackets for " +
             std::to_string(records) + " nodes, tensors and modules; at most " +
             std::to_string(kMaxMarks) + " and " + std::to_string(kMarksOfRecord) +
             " for each of them are read, so that memory is bounded");
  // simdjson counts the level of the values in the innermost array too.
  simdjson::error_code error = parser_.allocate(text.size(), max_depth + 1);
  if (!error) error = parser_.parse(text).get(root_);
  if (error == simdjson::DEPTH_ERROR)
    fail("arrays and objects are nested more than " + std::to_string(max_depth) + " deep");
  if (error == simdjson::MEMALLOC || error == simdjson::CAPACITY)
    fail("not enough memory for a JSON text of " + std::to_string(text.size()) + " bytes");
  if (error) fail(std::string("this is not valid JSON: ") + simdjson::error_message(error));
}

JsonObject::JsonObject(const JsonValue& value, std::initializer_list<std::string_view> keys)
    : value_(value), count_(keys.size()) {
  FX_ASSERT(keys.size() <= kMaxKeys, "too many keys");
  std::ranges::copy(keys, keys_);
  for (simdjson::dom::key_value_pair member : value.object()) {
    std::size_t i = slot(member.key);
    if (i == count_) {
      auto& unknown = value.document().unknown_;
      JsonPath step{value.path(), member.key, 0};
      if (unknown.size() < kMaxUnknownKeys) unknown.push_back(path_text_of(&step));
      continue;
    }
    if (present_[i]) value.fail("the key " + shown(member.key) + " occurs twice");
    present_[i] = true;
    elements_[i] = member.value;
    paths_[i] = JsonPath{value.path(), keys_[i], 0};
  }
}

std::size_t JsonObject::slot(std::string_view key) const {
  return static_cast<std::size_t>(std::find(keys_, keys_ + count_, key) - keys_);
}

JsonValue JsonObject::at(std::string_view key) const {
  std::size_t i = slot(key);
  FX_ASSERT(i < count_, "key not declared");
  if (!present_[i]) value_.fail("the key " + shown(key) + " is missing");
  return JsonValue(value_.document(), elements_[i], &paths_[i]);
}

std::optional<JsonValue> JsonObject::find(std::string_view key) const {
  std::size_t i = slot(key);
  FX_ASSERT(i < count_, "key not declared");
  if (!present_[i] || elements_[i].is_null()) return std::nullopt;
  return JsonValue(value_.document(), elements_[i], &paths_[i]);
}

JsonUnion::JsonUnion(const JsonValue& value) : value_(value) {
  std::size_t count = 0;
  for (simdjson::dom::key_value_pair member : value.object()) {
    if (count++ > 0) continue;
    step_ = JsonPath{value.path(), member.key, 0};
    element_ = member.value;
  }
  if (count != 1)
    value.fail("an object with one key (a tagged value) is wanted, " + std::to_string(count) +
               " keys found");
}

void JsonUnion::fail_tag(std::string_view union_name) const {
  value_.fail("unknown tag " + shown(tag()) + " of " + std::string(union_name));
}

}  // namespace fx::io
