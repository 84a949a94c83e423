#pragma once

// Internal: strict reading of JSON records. The only header that knows the JSON library.

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fx/base/error.h"

namespace fx::io {

/// Deepest nesting of arrays and objects that is read. torch writes at most about 20.
inline constexpr std::size_t kMaxJsonDepth = 100;

/// Where a value stands in its document: a chain on the stack, turned into text only for a message.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view key;   // of an object member
  std::size_t index = 0;  // of an array element, if key is null
};

class JsonDocument;

/// A value of a document and how it was reached. Refers to the document and to the path's owner.
class JsonValue {
 public:
  JsonValue(const JsonDocument& document, simdjson::dom::element element, const JsonPath* path)
      : document_(&document), element_(element), path_(path) {}

  bool is_null() const { return element_.is_null(); }
  bool is_object() const { return element_.is_object(); }
  bool is_array() const { return element_.is_array(); }
  bool is_string() const { return element_.is_string(); }
  bool is_int() const { return element_.is_int64(); }

  // Each throws ImportError (the document's code) with the path when the value is something else.
  bool to_bool() const;
  std::int64_t to_int() const;
  /// An int within [low, high].
  std::int64_t to_int(std::int64_t low, std::int64_t high) const;
  /// A finite number, or one of the strings "Infinity", "-Infinity", "NaN" that torch writes for
  /// them.
  double to_double() const;
  std::string_view to_string() const;

  /// Calls fn(JsonValue) for each element of an array.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    JsonPath step{path_, {}, 0};
    for (simdjson::dom::element element : array()) {
      fn(JsonValue(*document_, element, &step));
      ++step.index;
    }
  }
  /// Calls fn(key, JsonValue) for each member of an object that has string keys by nature (a map).
  /// Duplicate keys are for the caller to refuse.
  template <typename Fn>
  void for_each_member(Fn&& fn) const {
    JsonPath step{path_, {}, 0};
    for (simdjson::dom::key_value_pair member : object()) {
      step.key = member.key;
      fn(member.key, JsonValue(*document_, member.value, &step));
    }
  }
  std::size_t size() const;

  simdjson::dom::object object() const;
  simdjson::dom::array array() const;

  /// "graph.nodes[3].target"; "the top level" for the root.
  std::string path_text() const;
  /// Throws the document's error: "<record>: <path>: <what>".
  [[noreturn]] void fail(const std::string& what) const;
  /// Throws "a <wanted> wanted, <found> found".
  [[noreturn]] void fail_type(std::string_view wanted) const;

  const JsonDocument& document() const { return *document_; }
  const JsonPath* path() const { return path_; }

 private:
  const JsonDocument* document_;
  simdjson::dom::element element_;
  const JsonPath* path_;
};

/// A parsed JSON text. Owns the values.
class JsonDocument {
 public:
  /// Parses `text` whole: UTF-8, no trailing bytes, numbers that fit, nesting of at most
  /// `max_depth`, and not so many small values that their memory would be out of proportion. Syntax
  /// errors throw ImportError `syntax`, wrong values later `schema`; `label` starts each message.
  /// The text is gone when the document is made.
  JsonDocument(std::string text, std::string label, ErrorCode syntax = ErrorCode::kBadJson,
               ErrorCode schema = ErrorCode::kBadSchema, std::size_t max_depth = kMaxJsonDepth);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonValue root() const { return JsonValue(*this, root_, nullptr); }
  const std::string& label() const { return label_; }
  ErrorCode schema_code() const { return schema_; }

  /// Keys that no reader knew, as paths; written by a newer torch. At most 20 are kept.
  const std::vector<std::string>& unknown_keys() const { return unknown_; }

 private:
  friend class JsonObject;

  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::string label_;
  ErrorCode schema_;
  mutable std::vector<std::string> unknown_;
};

/// An object with a fixed set of keys: each may occur once; others are noted as unknown.
class JsonObject {
 public:
  static constexpr std::size_t kMaxKeys = 12;

  JsonObject(const JsonValue& value, std::initializer_list<std::string_view> keys);
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  /// The value under a key; throws when it is missing.
  JsonValue at(std::string_view key) const;
  /// The value under a key, or nothing if it is missing or null.
  std::optional<JsonValue> find(std::string_view key) const;

 private:
  std::size_t slot(std::string_view key) const;

  JsonValue value_;
  std::size_t count_ = 0;
  std::string_view keys_[kMaxKeys];
  bool present_[kMaxKeys] = {};
  simdjson::dom::element elements_[kMaxKeys];
  JsonPath paths_[kMaxKeys];
};

/// A union: an object with exactly one member, whose key says what the value is.
class JsonUnion {
 public:
  explicit JsonUnion(const JsonValue& value);
  JsonUnion(const JsonUnion&) = delete;
  JsonUnion& operator=(const JsonUnion&) = delete;

  std::string_view tag() const { return step_.key; }
  JsonValue value() const { return JsonValue(value_.document(), element_, &step_); }
  /// For a tag that the caller does not know.
  [[noreturn]] void fail_tag(std::string_view union_name) const;

 private:
  JsonValue value_;
  simdjson::dom::element element_;
  JsonPath step_;
};

}  // namespace fx::io
