#pragma once

// Internal: options of torch::nn modules as JSON, both ways.

#include <torch/enum.h>
#include <torch/expanding_array.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "fx/base/text.h"
#include "fx/io/json.h"
#include "fx/io/json_writer.h"
#include "fx/io/shown.h"

namespace fx::io {

/// A choice of torch's enumerations: torch::kZeros.
template <typename T>
concept OptionName = requires(const T& value) { torch::enumtype::_compute_enum_name{}(value); };

/// One kind of value: how it is written, and read.
template <typename T>
struct OptionJson;

template <typename T>
void write_option(JsonWriter& json, const T& value) {
  OptionJson<T>::write(json, value);
}

template <>
struct OptionJson<bool> {
  static void write(JsonWriter& json, bool value) { json.boolean(value); }
  static void read(const JsonValue& json, bool& value) { value = json.to_bool(); }
};
template <>
struct OptionJson<std::int64_t> {
  static void write(JsonWriter& json, std::int64_t value) { json.integer(value); }
  static void read(const JsonValue& json, std::int64_t& value) { value = json.to_int(); }
};
template <>
struct OptionJson<double> {
  static void write(JsonWriter& json, double value) {
    if (std::isfinite(value))
      json.raw(float_repr(value));
    else
      json.string(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  }
  static void read(const JsonValue& json, double& value) { value = json.to_double(); }
};
template <>
struct OptionJson<std::string> {
  static void write(JsonWriter& json, const std::string& value) { json.string(value); }
  static void read(const JsonValue& json, std::string& value) { value = json.to_string(); }
};
template <typename T>
struct OptionJson<std::optional<T>> {
  static void write(JsonWriter& json, const std::optional<T>& value) {
    if (value)
      write_option(json, *value);
    else
      json.null();
  }
  static void read(const JsonValue& json, std::optional<T>& value) {
    value.reset();
    if (json.is_null()) return;
    T item{};
    OptionJson<T>::read(json, item);
    value = std::move(item);
  }
};
template <typename T>
struct OptionJson<std::vector<T>> {
  static void write(JsonWriter& json, const std::vector<T>& items) {
    json.begin_array();
    for (const T& item : items) write_option(json, item);
    json.end_array();
  }
  static void read(const JsonValue& json, std::vector<T>& items) {
    items.clear();
    json.for_each([&](const JsonValue& value) {
      if (items.size() >= 64) value.fail("an option has at most 64 values");
      OptionJson<T>::read(value, items.emplace_back());
    });
  }
};
/// ExpandingArray and what derives from it: a fixed number of values.
template <typename Array>
  requires requires(const Array& array) { array->size(); }
struct OptionJson<Array> {
  static void write(JsonWriter& json, const Array& array) {
    json.begin_array();
    for (const auto& item : *array) write_option(json, item);
    json.end_array();
  }
  static void read(const JsonValue& json, Array& array) {
    if (json.size() != array->size())
      json.fail("a list of " + std::to_string(array->size()) + " values is wanted, it has " +
                std::to_string(json.size()));
    std::size_t i = 0;
    json.for_each([&](const JsonValue& value) {
      auto& item = (*array)[i++];
      OptionJson<std::decay_t<decltype(item)>>::read(value, item);
    });
  }
};
template <typename... Choices>
struct OptionJson<std::variant<Choices...>> {
  using Variant = std::variant<Choices...>;

  static void write(JsonWriter& json, const Variant& choice) {
    std::visit(
        [&](const auto& chosen) {
          if constexpr (OptionName<std::decay_t<decltype(chosen)>>)
            json.string(torch::enumtype::_compute_enum_name{}(chosen));
          else
            write_option(json, chosen);
        },
        choice);
  }
  static void read(const JsonValue& json, Variant& choice) {
    if (!(try_read<Choices>(json, choice) || ...))
      json.fail("none of the values that the option has");
  }

 private:
  template <typename T>
  static bool try_read(const JsonValue& json, Variant& choice) {
    if constexpr (OptionName<T>) {
      if (!json.is_string() || json.to_string() != torch::enumtype::_compute_enum_name{}(T{}))
        return false;
      choice = T{};
    } else {
      if (json.is_string()) return false;
      T value(0);
      OptionJson<T>::read(json, value);
      choice = std::move(value);
    }
    return true;
  }
};

/// Reads the option `name` of an object. @throws ImportError where it is missing.
template <typename T>
void read_option(const JsonValue& options, std::string_view name, T& value) {
  const JsonPath step{options.path(), name, 0};
  simdjson::dom::element element;
  if (options.object()[name].get(element))
    options.fail("the option " + shown(name) + " is missing");
  OptionJson<T>::read(JsonValue(options.document(), element, &step), value);
}

}  // namespace fx::io
