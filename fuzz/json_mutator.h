#pragma once

// Mutations of JSON documents for libFuzzer: what comes out is JSON again, so that inputs get past
// the parser and reach what reads the document. A fuzzer whose input is JSON includes this file
// once; one input in eight is still mutated byte by byte.

#ifndef FXCPP_REPLAY  // where inputs are only run, there is nothing to mutate

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace fx::fuzz {

using Json = nlohmann::ordered_json;

class JsonMutator {
 public:
  explicit JsonMutator(unsigned seed) : random_(seed) {}

  /// Changes one value of `document`, or the place of one. Values are taken from `donor` as well,
  /// which may be `document`.
  void mutate(Json& document, const Json& donor) {
    Json& value = *pick(values_of(document));
    switch (below(6)) {
      case 0: {  // a copy first: the donor may be the document, and change
        const Json copy = *pick(values_of(donor));
        value = copy;
        return;
      }
      case 1:
        value = extreme();
        return;
      case 2:
        remove_or_repeat(value);
        return;
      case 3:
        rename(value, donor);
        return;
      default:
        change(value);
    }
  }

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  template <class T>
  T pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }

  template <class AnyJson>
  static void collect(AnyJson& value, std::vector<AnyJson*>& all) {
    all.push_back(&value);
    if (value.is_structured())
      for (auto& item : value) collect(item, all);
  }

  template <class AnyJson>
  static std::vector<AnyJson*> values_of(AnyJson& document) {
    std::vector<AnyJson*> all;
    collect(document, all);
    return all;
  }

  Json extreme() {
    static const std::vector<Json> values = {nullptr,
                                             true,
                                             false,
                                             0,
                                             1,
                                             -1,
                                             2,
                                             7,
                                             255,
                                             65536,
                                             INT32_MAX,
                                             INT32_MIN,
                                             INT64_MAX,
                                             INT64_MIN,
                                             UINT64_MAX,
                                             1e308,
                                             -0.0,
                                             0.5,
                                             "",
                                             "x",
                                             "..",
                                             "/",
                                             std::string(300, 'a'),
                                             "NaN",
                                             "-Infinity",
                                             Json::array(),
                                             Json::object(),
                                             Json::array({Json::array()}),
                                             Json{{"as_int", -1}},
                                             Json{{"as_none", true}},
                                             Json{{"as_expr", {{"expr_str", "s0"}}}}};
    return pick(values);
  }

  void remove_or_repeat(Json& value) {
    if (!value.is_structured() || value.empty()) return change(value);
    const std::size_t at = below(value.size());
    if (value.is_object()) {
      value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(at)));
    } else if (below(2) == 0) {
      value.erase(at);
    } else {
      const Json copy = value[at];
      value.insert(value.begin() + static_cast<std::ptrdiff_t>(below(value.size())), copy);
    }
  }

  /// One member gets the name of another, of this object or of one of the donor's.
  void rename(Json& value, const Json& donor) {
    std::vector<std::string> names;
    for (const Json* other : values_of(donor))
      if (other->is_object())
        for (const auto& [name, member] : other->items()) names.push_back(name);
    if (!value.is_object() || value.empty() || names.empty()) return change(value);
    const auto member = std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size())));
    const Json moved = member.value();
    if (below(2) == 0) value.erase(member);
    value[pick(names)] = moved;
  }

  void change(Json& value) {
    if (value.is_number_integer()) {
      const std::uint64_t number =
          static_cast<std::uint64_t>(value.get<std::int64_t>());  // it may wrap around
      const std::uint64_t choices[] = {number + 1, number - 1, 0 - number,
                                       number ^ (std::uint64_t{1} << below(64))};
      value = static_cast<std::int64_t>(choices[below(4)]);
    } else if (value.is_number()) {
      value = value.get<double>() * (below(2) == 0 ? -1.5 : 1e300);
    } else if (value.is_boolean()) {
      value = !value.get<bool>();
    } else if (value.is_string()) {
      std::string text = value.get<std::string>();
      const std::size_t size = text.size();
      text.resize(size + 16);
      text.resize(
          LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
      value = text;
    } else if (value.is_array() && value.size() > 1) {
      std::swap(value[below(value.size())], value[below(value.size())]);
    } else {
      value = extreme();
    }
  }

  std::minstd_rand random_;
};

inline Json parse_json(const std::uint8_t* data, std::size_t size) {
  return Json::parse(data, data + size, nullptr, false);
}

/// `document` into `out`, if it is at most `max_size` bytes long: then its size, else 0.
inline std::size_t write_json(const Json& document, std::uint8_t* out, std::size_t max_size) {
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size) return 0;
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

}  // namespace fx::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  fx::fuzz::JsonMutator mutator(seed);
  if (mutator.below(8) != 0) {
    fx::fuzz::Json document = fx::fuzz::parse_json(data, size);
    if (!document.is_discarded()) {
      for (std::size_t changes = 1 + mutator.below(3); changes > 0; --changes)
        mutator.mutate(document, document);
      if (const std::size_t written = fx::fuzz::write_json(document, data, max_size))
        return written;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* data1, std::size_t size1,
                                                 const std::uint8_t* data2, std::size_t size2,
                                                 std::uint8_t* out, std::size_t max_size,
                                                 unsigned seed) {
  fx::fuzz::Json document = fx::fuzz::parse_json(data1, size1);
  const fx::fuzz::Json donor = fx::fuzz::parse_json(data2, size2);
  if (document.is_discarded() || donor.is_discarded()) return 0;
  fx::fuzz::JsonMutator mutator(seed);
  for (std::size_t changes = 1 + mutator.below(3); changes > 0; --changes)
    mutator.mutate(document, donor);
  return fx::fuzz::write_json(document, out, max_size);
}

#endif
