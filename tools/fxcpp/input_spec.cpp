#include "tools/fxcpp/input_spec.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "tools/fxcpp/words.h"

namespace fx::cli {
namespace {

struct DtypeName {
  std::string_view name;
  at::ScalarType dtype;
};
constexpr std::array kDtypes = {
    DtypeName{"f32", at::kFloat},
    DtypeName{"f64", at::kDouble},
    DtypeName{"f16", at::kHalf},
    DtypeName{"bf16", at::kBFloat16},
    DtypeName{"i8", at::kChar},
    DtypeName{"i16", at::kShort},
    DtypeName{"i32", at::kInt},
    DtypeName{"i64", at::kLong},
    DtypeName{"u8", at::kByte},
    DtypeName{"u16", at::kUInt16},
    DtypeName{"u32", at::kUInt32},
    DtypeName{"u64", at::kUInt64},
    DtypeName{"bool", at::kBool},
    DtypeName{"c64", at::kComplexFloat},
    DtypeName{"c128", at::kComplexDouble},
    // torch's names
    DtypeName{"float32", at::kFloat},
    DtypeName{"float", at::kFloat},
    DtypeName{"float64", at::kDouble},
    DtypeName{"double", at::kDouble},
    DtypeName{"float16", at::kHalf},
    DtypeName{"half", at::kHalf},
    DtypeName{"bfloat16", at::kBFloat16},
    DtypeName{"int8", at::kChar},
    DtypeName{"int16", at::kShort},
    DtypeName{"short", at::kShort},
    DtypeName{"int32", at::kInt},
    DtypeName{"int", at::kInt},
    DtypeName{"int64", at::kLong},
    DtypeName{"long", at::kLong},
    DtypeName{"uint8", at::kByte},
    DtypeName{"uint16", at::kUInt16},
    DtypeName{"uint32", at::kUInt32},
    DtypeName{"uint64", at::kUInt64},
    DtypeName{"complex64", at::kComplexFloat},
    DtypeName{"complex128", at::kComplexDouble},
};

bool is_floating(at::ScalarType dtype) {
  return c10::isFloatingType(dtype) || c10::isComplexType(dtype);
}

/// The whole of `text` as a number, or nothing.
template <typename T>
std::optional<T> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool fits(std::int64_t value, at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return value >= 0 && value <= std::numeric_limits<std::uint8_t>::max();
    case at::kChar:
      return value >= std::numeric_limits<std::int8_t>::min() &&
             value <= std::numeric_limits<std::int8_t>::max();
    case at::kShort:
      return value >= std::numeric_limits<std::int16_t>::min() &&
             value <= std::numeric_limits<std::int16_t>::max();
    case at::kInt:
      return value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    case at::kUInt16:
      return value >= 0 && value <= std::numeric_limits<std::uint16_t>::max();
    case at::kUInt32:
      return value >= 0 && value <= std::numeric_limits<std::uint32_t>::max();
    case at::kUInt64:
      return value >= 0;
    default:
      return true;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  InputSpec parse() {
    InputSpec spec;
    spec.text = std::string(text_);
    if (text_.empty()) fail(0, "an empty input");
    const std::size_t special = text_.find_first_of("=@[:\"");
    if (special != std::string_view::npos && text_[special] == '=') {
      spec.name = std::string(text_.substr(0, special));
      if (!is_identifier(spec.name)) fail(0, "'" + spec.name + "' is no name of an input");
      at_ = special + 1;
    }
    if (at_ == text_.size()) fail(at_, "nothing follows '='");
    if (text_[at_] == '@') {
      spec.value = file();
    } else if (text_.find('[', at_) != std::string_view::npos && text_[at_] != '"') {
      spec.value = tensor();
    } else {
      spec.value = scalar();
    }
    return spec;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw UsageError(ErrorCode::kBadInputSpec, "input: " + what + "\n    " + std::string(text_) +
                                                   "\n    " + std::string(at, ' ') + "^");
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string found() const {
    return at_ < text_.size() ? "found '" + std::string(1, text_[at_]) + "'" : "the text ends here";
  }

  void expect(char c, const std::string& where) {
    if (peek() != c) fail(at_, std::string("'") + c + "' wanted " + where + ", " + found());
    ++at_;
  }

  /// Up to the next of `stops`, blanks at both ends left out; `at` is set to where it starts.
  std::string_view word(std::string_view stops, std::size_t& at) {
    while (peek() == ' ') ++at_;
    at = at_;
    std::size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    at_ = end;
    while (end > at && text_[end - 1] == ' ') --end;
    return text_.substr(at, end - at);
  }

  InputSpec::File file() {
    const std::string path(text_.substr(at_ + 1));
    if (path.empty()) fail(at_ + 1, "a path wanted behind '@'");
    if (path.ends_with(".npz"))
      fail(at_ + 1, ".npz archives are not read: save each array with numpy.save as a .npy");
    return {path};
  }

  InputSpec::Scalar scalar() {
    const std::string_view word = text_.substr(at_);
    if (word == "true" || word == "True") return {true};
    if (word == "false" || word == "False") return {false};
    if (word == "none" || word == "None") return {std::monostate{}};
    if (word.size() >= 2 && word.front() == '"' && word.back() == '"')
      return {std::string(word.substr(1, word.size() - 2))};
    if (const auto value = number<std::int64_t>(word)) return {*value};
    if (const auto value = number<double>(word)) return {*value};
    fail(at_, "'" + std::string(word) +
                  "' is neither @FILE, nor DTYPE[SIZES]:FILL, nor a number, true, false, none or "
                  "\"text\"");
  }

  TensorSpec tensor() {
    TensorSpec tensor;
    std::size_t at = 0;
    const std::string_view dtype = word("[", at);
    const auto known = dtype_from_name(dtype);
    if (!known) {
      std::vector<std::string> names;
      for (const DtypeName& row : kDtypes) names.emplace_back(row.name);
      fail(at, "'" + std::string(dtype) + "' is no dtype" + did_you_mean(dtype, names));
    }
    tensor.dtype = *known;
    expect('[', "behind the dtype");
    sizes(tensor);
    if (at_ == text_.size()) return tensor;
    expect(':', "behind the sizes");
    fill(tensor);
    return tensor;
  }

  void sizes(TensorSpec& tensor) {
    std::size_t at = 0;
    if (word("]", at).empty() && peek() == ']') {
      ++at_;
      return;
    }
    at_ = at;
    while (true) {
      const std::string_view text = word(",]:", at);
      TensorSpec::Dim dim;
      dim.at = at;
      if (const auto value = number<std::int64_t>(text)) {
        if (*value < 0) fail(at, "a size cannot be negative");
        dim.value = *value;
      } else if (is_identifier(text)) {
        dim.symbol = std::string(text);
      } else {
        fail(at, text.empty() ? "a size wanted" : "'" + std::string(text) + "' is no size");
      }
      tensor.dims.push_back(std::move(dim));
      if (peek() != ',') break;
      ++at_;
    }
    expect(']', "behind the sizes");
  }

  void fill(TensorSpec& tensor) {
    using Fill = TensorSpec::Fill;
    std::size_t at = 0;
    const std::string_view name = word("(,", at);
    tensor.fill_at = at;
    if (name.empty()) fail(at, "a fill wanted behind ':'");
    const bool called = peek() == '(';
    if (name == "zeros" || name == "ones" || name == "randn") {
      if (called) fail(at_, std::string(name) + " takes no arguments");
      if (name == "randn" && !is_floating(tensor.dtype))
        fail(at, "randn makes floating numbers: use randint(lo,hi) for this dtype");
      tensor.fill = name == "zeros" ? Fill::kZeros : name == "ones" ? Fill::kOnes : Fill::kRandn;
      return finish();
    }
    if (name == "rand") {
      if (!is_floating(tensor.dtype))
        fail(at, "rand makes floating numbers: use randint(lo,hi) for this dtype");
      tensor.fill = Fill::kRand;
      if (!called) return finish();
      ++at_;
      tensor.lo = bound<double>("a number");
      expect(',', "between the bounds");
      tensor.hi = bound<double>("a number");
      if (!(tensor.lo <= tensor.hi)) fail(at, "the lower bound is above the upper one");
      return close();
    }
    if (name == "randint") {
      if (!called) fail(at_, "randint needs its bounds: randint(lo,hi)");
      tensor.fill = Fill::kRandint;
      ++at_;
      tensor.int_lo = bound<std::int64_t>("an integer");
      expect(',', "between the bounds");
      tensor.int_hi = bound<std::int64_t>("an integer");
      if (tensor.int_lo >= tensor.int_hi) fail(at, "randint(lo,hi) needs lo below hi");
      if (!fits(tensor.int_lo, tensor.dtype) || !fits(tensor.int_hi - 1, tensor.dtype))
        fail(at, "the bounds are outside of the dtype");
      if (tensor.dtype == at::kBool && (tensor.int_lo < 0 || tensor.int_hi > 2))
        fail(at, "a bool is 0 or 1: randint(0,2)");
      return close();
    }
    if (name == "full") {
      if (!called) fail(at_, "full needs its value: full(0.5)");
      ++at_;
      tensor.fill = Fill::kFull;
      const std::string_view text = word(")", at);
      tensor.values.push_back(value(text, at, tensor.dtype));
      return close();
    }
    if (std::isalpha(static_cast<unsigned char>(name[0])) != 0 && name != "true" &&
        name != "false" && name != "True" && name != "False" && name != "inf" && name != "nan") {
      const std::vector<std::string> fills = {"zeros", "ones", "rand", "randn", "randint", "full"};
      fail(at, "'" + std::string(name) + "' is no fill" + did_you_mean(name, fills) + ". It is " +
                   any_of(fills) + ", or values separated by commas");
    }
    tensor.fill = Fill::kValues;
    at_ = at;
    while (true) {
      const std::string_view text = word(",", at);
      tensor.values.push_back(value(text, at, tensor.dtype));
      if (peek() != ',') return;
      ++at_;
    }
  }

  template <typename T>
  T bound(const std::string& wanted) {
    std::size_t at = 0;
    const std::string_view text = word(",)", at);
    const auto value = number<T>(text);
    if (!value) fail(at, wanted + " wanted, found '" + std::string(text) + "'");
    return *value;
  }

  void close() {
    expect(')', "at the end");
    finish();
  }
  void finish() {
    if (at_ < text_.size()) fail(at_, "nothing wanted behind the fill, " + found());
  }

  c10::Scalar value(std::string_view text, std::size_t at, at::ScalarType dtype) const {
    const std::string shown = "'" + std::string(text) + "'";
    if (text.empty()) fail(at, "a value wanted");
    if (dtype == at::kBool) {
      if (text == "1" || text == "true" || text == "True") return true;
      if (text == "0" || text == "false" || text == "False") return false;
      fail(at, shown + " is no bool: 0, 1, true or false");
    }
    if (c10::isComplexType(dtype)) return complex(text, at);
    if (c10::isFloatingType(dtype)) {
      if (const auto value = number<double>(text)) return *value;
      fail(at, shown + " is no number");
    }
    const auto value = number<std::int64_t>(text);
    if (!value) fail(at, shown + " is no integer");
    if (!fits(*value, dtype)) fail(at, shown + " is outside of the dtype");
    return *value;
  }

  /// "1", "2j", "1+2j", "1e-3-2j".
  c10::Scalar complex(std::string_view text, std::size_t at) const {
    const std::string shown = "'" + std::string(text) + "'";
    if (!text.ends_with('j')) {
      if (const auto real = number<double>(text)) return c10::complex<double>(*real, 0);
      fail(at, shown + " is no complex number, as 1+2j");
    }
    const std::string_view body = text.substr(0, text.size() - 1);
    if (const auto imag = number<double>(body)) return c10::complex<double>(0, *imag);
    for (std::size_t i = body.size(); i-- > 1;) {
      if ((body[i] != '+' && body[i] != '-') || body[i - 1] == 'e' || body[i - 1] == 'E') continue;
      const auto real = number<double>(body.substr(0, i));
      const auto imag = number<double>(body.substr(i));
      if (real && imag) return c10::complex<double>(*real, *imag);
    }
    fail(at, shown + " is no complex number, as 1+2j");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<at::ScalarType> dtype_from_name(std::string_view name) {
  for (const DtypeName& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

InputSpec parse_input_spec(std::string_view text) { return Parser(text).parse(); }

TensorSpec::Fill default_fill(at::ScalarType dtype) {
  return is_floating(dtype) ? TensorSpec::Fill::kRandn : TensorSpec::Fill::kRandint;
}

std::string_view default_fill_name(at::ScalarType dtype) {
  return is_floating(dtype) ? "randn" : "randint(0,2)";
}

void parse_dim(std::string_view text, Dims& dims) {
  const std::size_t equals = text.find('=');
  const std::string shown = "--dim '" + std::string(text) + "'";
  if (equals == std::string_view::npos || !is_identifier(text.substr(0, equals)))
    throw UsageError(ErrorCode::kBadOption, shown + " is not SYMBOL=SIZE, as in --dim s0=4");
  const auto value = number<std::int64_t>(text.substr(equals + 1));
  if (!value || *value < 0)
    throw UsageError(ErrorCode::kBadOption,
                     shown + ": '" + std::string(text.substr(equals + 1)) + "' is no size");
  const std::string symbol(text.substr(0, equals));
  if (!dims.emplace(symbol, *value).second)
    throw UsageError(ErrorCode::kBadOption, shown + ": " + symbol + " was given already");
}

}  // namespace fx::cli
