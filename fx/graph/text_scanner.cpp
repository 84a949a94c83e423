#include "fx/graph/text_scanner.h"

#include <bit>
#include <charconv>
#include <limits>

#include "fx/base/text.h"
#include "fx/graph/text_literals.h"

namespace fx::text {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// --- lines
// -----------------------------------------------------------------------------------------

void Scanner::set_line(std::size_t start) {
  start_ = at_ = start;
  const std::size_t feed = text_.find('\n', start);
  end_ = feed == std::string_view::npos ? text_.size() : feed;
}

bool Scanner::next_line() {
  for (;;) {
    if (!fresh_) {
      if (end_ >= text_.size()) {
        at_ = end_;
        return false;
      }
      ++line_;
      set_line(end_ + 1);
    }
    fresh_ = false;
    if (!at_end()) return true;
  }
}

void Scanner::seek(std::size_t line_number, std::size_t line_start, std::size_t position) {
  line_ = line_number;
  set_line(line_start);
  at_ = position;
}

// --- tokens
// ----------------------------------------------------------------------------------------

void Scanner::skip_blanks() {
  while (at_ < end_ && is_blank(text_[at_])) ++at_;
}

bool Scanner::at_end() {
  skip_blanks();
  return at_ == end_ || text_[at_] == '#';
}

bool Scanner::peek(char c) {
  skip_blanks();
  return at_ < end_ && text_[at_] == c;
}

bool Scanner::take(char c) {
  if (!peek(c)) return false;
  ++at_;
  return true;
}

bool Scanner::take(std::string_view word) {
  skip_blanks();
  if (!text_.substr(at_, end_ - at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

void Scanner::expect(char c, std::string_view what) {
  if (!take(c)) fail_wanted("'" + std::string(1, c) + "' " + std::string(what));
}

std::string_view Scanner::identifier() {
  skip_blanks();
  if (at_ == end_ || !is_letter(text_[at_])) return {};
  return run([](char c) { return is_letter(c) || is_digit(c); });
}

std::string Scanner::quoted() {
  skip_blanks();
  const std::size_t from = at_;
  if (at_ == end_ || (text_[at_] != '\'' && text_[at_] != '"')) fail_wanted("a quoted string");
  const char quote = text_[at_++];
  std::string out;
  for (;;) {
    if (at_ == end_)
      fail(ErrorCode::kParseSyntax, "this string has no closing " + std::string(1, quote), from);
    const char c = text_[at_++];
    if (c == quote) return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char kind = at_ < end_ ? text_[at_++] : '\0';
    switch (kind) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case '\\':
      case '\'':
      case '"':
        out += kind;
        break;
      case 'x': {
        const int high = at_ < end_ ? hex_digit(text_[at_]) : -1;
        const int low = at_ + 1 < end_ ? hex_digit(text_[at_ + 1]) : -1;
        if (high < 0 || low < 0)
          fail(ErrorCode::kParseSyntax, "wanted two hexadecimal digits after \\x", at_);
        out += static_cast<char>(high * 16 + low);
        at_ += 2;
        break;
      }
      default:
        fail(ErrorCode::kParseSyntax, "unknown escape, wanted \\n \\r \\t \\\\ \\' \\\" or \\xNN",
             at_ - (kind ? 2 : 1));
    }
  }
}

// --- literals
// --------------------------------------------------------------------------------------

Argument Scanner::value(NodeResolver* nodes, int depth) {
  skip_blanks();
  if (at_ == end_) fail_wanted("a value");
  const char c = text_[at_];
  if (c == '%') {
    const std::size_t from = at_++;
    const std::string_view name = identifier();
    if (name.empty()) fail_wanted("the name of a node after '%'");
    if (!nodes) fail(ErrorCode::kParseSyntax, "no node may stand here, wanted a literal", from);
    const std::size_t after = at_;
    at_ = from;  // where the resolver reports errors
    Node& node = nodes->resolve(name);
    at_ = after;
    return node;
  }
  if (c == '\'' || c == '"') return Argument(quoted());
  if (c == '[' || c == '(' || c == '{') {
    if (depth >= Argument::kMaxDepth)
      fail(ErrorCode::kParseTooDeep,
           "values nest at most " + std::to_string(Argument::kMaxDepth) + " levels", at_);
    ++at_;
    if (c == '{') return dict(nodes, depth + 1);
    if (c == '[') return Argument::list(items(']', nodes, depth + 1, nullptr));
    const std::size_t from = at_ - 1;
    bool trailing_comma = false;
    std::vector<Argument> made = items(')', nodes, depth + 1, &trailing_comma);
    if (made.size() == 1 && !trailing_comma)
      fail(ErrorCode::kParseSyntax, "a tuple of one value is written with a comma, (a,)", from);
    return Argument::tuple(std::move(made));
  }
  if (is_digit(c) || c == '-' || c == '+' || c == '.') return number();
  if (is_letter(c)) return word(nodes, depth);
  fail_wanted("a value");
}

std::vector<Argument> Scanner::items(char close, NodeResolver* nodes, int depth,
                                     bool* trailing_comma) {
  std::vector<Argument> out;
  while (!take(close)) {
    out.push_back(value(nodes, depth));
    const bool comma = take(',');
    if (trailing_comma) *trailing_comma = comma;
    if (!comma && !peek(close)) fail_wanted("',' or '" + std::string(1, close) + "'");
  }
  return out;
}

Argument Scanner::dict(NodeResolver* nodes, int depth) {
  std::vector<DictItem> made;
  while (!take('}')) {
    Argument key = value(nullptr, depth);
    expect(':', "after the key");
    made.emplace_back(std::move(key), value(nodes, depth));
    if (!take(',') && !peek('}')) fail_wanted("',' or '}'");
  }
  return Argument::dict(std::move(made));
}

Argument Scanner::number() {
  const std::size_t from = at_;
  bool integral = true;
  ++at_;
  while (at_ < end_) {
    const char c = text_[at_];
    const bool exponent_sign = (c == '-' || c == '+') && (text_[at_ - 1] | 0x20) == 'e';
    if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent_sign) break;
    ++at_;
  }
  std::string_view token = text_.substr(from, at_ - from);
  if (token.starts_with('+')) token.remove_prefix(1);
  const std::string_view magnitude = token.substr(token.starts_with('-'));
  if (magnitude == "inf") {
    const double inf = std::numeric_limits<double>::infinity();
    return token.starts_with('-') ? -inf : inf;
  }
  bool well_formed = !magnitude.empty() && (is_digit(magnitude[0]) || magnitude[0] == '.');
  for (char c : magnitude) integral &= is_digit(c);
  std::errc error{};
  const char* stop = token.data();
  Argument out;
  if (well_formed && integral) {
    std::int64_t number = 0;
    auto result = std::from_chars(token.data(), token.data() + token.size(), number);
    error = result.ec;
    stop = result.ptr;
    out = number;
  } else if (well_formed) {
    double number = 0;
    auto result = std::from_chars(token.data(), token.data() + token.size(), number);
    error = result.ec;
    stop = result.ptr;
    out = number;
  }
  if (!well_formed || error == std::errc::invalid_argument || stop != token.data() + token.size())
    fail(ErrorCode::kParseSyntax, "this is no number", from);
  if (error == std::errc::result_out_of_range)
    fail(ErrorCode::kParseSyntax,
         integral ? "this integer does not fit in 64 bits" : "this number does not fit in a double",
         from);
  return out;
}

double Scanner::float_literal() {
  skip_blanks();
  const std::size_t from = at_;
  if (at_ == end_ || std::string_view("[({").find(text_[at_]) != std::string_view::npos)
    fail_wanted("a number");
  const Argument read = value(nullptr, Argument::kMaxDepth);
  if (read.kind() != Argument::Kind::kFloat && read.kind() != Argument::Kind::kInt)
    fail(ErrorCode::kParseSyntax, "wanted a number", from);
  return read.to_double();
}

Argument Scanner::word(NodeResolver* nodes, int depth) {
  const std::size_t from = at_;
  const std::string_view name = run([](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
  if (name == "None") return {};
  if (name == "True") return true;
  if (name == "False") return false;
  if (name == "Ellipsis") return Argument::ellipsis();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") {
    if (!take('(')) return std::numeric_limits<double>::quiet_NaN();
    std::uint64_t bits = 0;
    if (!take("0x")) fail_wanted("the bits of a double, nan(0x...)");
    const char* begin = text_.data() + at_;
    auto result = std::from_chars(begin, text_.data() + end_, bits, 16);
    at_ += static_cast<std::size_t>(result.ptr - begin);
    const double read = std::bit_cast<double>(bits);
    if (result.ec != std::errc{} || read == read)
      fail(ErrorCode::kParseSyntax, "these are not the bits of a NaN", from);
    expect(')', "after the bits");
    return read;
  }
  if (name == "complex") {
    expect('(', "after complex");
    const double real = float_literal();
    expect(',', "between real and imaginary part");
    const double imaginary = float_literal();
    expect(')', "after the imaginary part");
    return std::complex<double>(real, imaginary);
  }
  if (name == "slice") {
    if (depth >= Argument::kMaxDepth)
      fail(ErrorCode::kParseTooDeep,
           "values nest at most " + std::to_string(Argument::kMaxDepth) + " levels", from);
    expect('(', "after slice");
    std::vector<Argument> parts = items(')', nodes, depth + 1, nullptr);
    if (parts.size() != 3) fail(ErrorCode::kParseSyntax, "wanted slice(start, stop, step)", from);
    return Argument::slice(parts[0], parts[1], parts[2]);
  }
  if (name == "device") return device();
  if (const Argument* constant = find_torch_constant(name)) return *constant;
  fail(ErrorCode::kParseSyntax,
       "wanted a value, found " + str_repr(name) + " (a string is quoted, a node is %" +
           std::string(name.substr(0, name.find('.'))) + ")",
       from);
}

// device(type='cuda', index=0)
Argument Scanner::device() {
  expect('(', "after device");
  if (!take("type")) fail_wanted("type='cpu'");
  expect('=', "after type");
  skip_blanks();
  const std::size_t from = at_;
  const std::string name = quoted();
  std::optional<c10::DeviceType> type = find_device_type(name);
  if (!type) fail(ErrorCode::kParseSyntax, "there is no device type " + str_repr(name), from);
  std::int64_t index = -1;
  if (take(',')) {
    if (!take("index")) fail_wanted("index=0");
    expect('=', "after index");
    skip_blanks();
    const std::string_view digits = run(is_digit);
    auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (digits.empty() || result.ec != std::errc{} || !is_device_index(*type, index))
      fail(ErrorCode::kParseSyntax, "wanted a device index from 0 to 127, 0 for the CPU",
           at_ - digits.size());
  }
  expect(')', "after the device");
  return c10::Device(*type, static_cast<c10::DeviceIndex>(index));
}

// --- errors
// ----------------------------------------------------------------------------------------

std::string Scanner::found() const {
  if (at_ >= end_ || text_[at_] == '#') return "the end of the line";
  std::size_t stop = at_;
  while (stop < end_ && (is_letter(text_[stop]) || is_digit(text_[stop]))) ++stop;
  stop = std::max(stop, at_ + 1);
  return str_repr(text_.substr(at_, std::min<std::size_t>(stop - at_, 40)));
}

void Scanner::fail_wanted(std::string_view what) const {
  fail(ErrorCode::kParseSyntax, "wanted " + std::string(what) + ", found " + found(), at_);
}

void Scanner::fail(ErrorCode code, std::string_view message, std::size_t position) const {
  // A window of the line: lines can be very long.
  constexpr std::size_t kBefore = 60, kAfter = 40;
  const std::size_t from = position - start_ > kBefore ? position - kBefore : start_;
  const std::size_t to = std::min(end_, position + kAfter);
  std::string shown, mark;
  for (std::size_t i = from; i < to; ++i) {
    const auto c = static_cast<unsigned char>(text_[i]);
    shown += c < 0x20 || c == 0x7f ? ' ' : text_[i];
    if (i < position && (c & 0xc0) != 0x80) mark += ' ';
  }
  const std::size_t column = position - start_ + 1;
  throw ParseError(code,
                   "line " + std::to_string(line_) + ", column " + std::to_string(column) + ": " +
                       std::string(message) + "\n    " + shown + "\n    " + mark + "^\n",
                   line_, column);
}

}  // namespace fx::text
