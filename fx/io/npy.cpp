#include "fx/io/npy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "fx/base/error.h"
#include "fx/io/atomic_file.h"
#include "fx/io/file_format.h"
#include "fx/io/mapped_file.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kMaxHeader = 64 * 1024;
constexpr std::size_t kMaxDims = 64;
constexpr std::size_t kAlignment = 64;

struct DtypeRow {
  std::string_view code;  // kind and item size, as in '<f4'
  at::ScalarType type;
};

constexpr std::array kDtypes = {
    DtypeRow{"b1", at::kBool},         DtypeRow{"i1", at::kChar},
    DtypeRow{"u1", at::kByte},         DtypeRow{"i2", at::kShort},
    DtypeRow{"u2", at::kUInt16},       DtypeRow{"i4", at::kInt},
    DtypeRow{"u4", at::kUInt32},       DtypeRow{"i8", at::kLong},
    DtypeRow{"u8", at::kUInt64},       DtypeRow{"f2", at::kHalf},
    DtypeRow{"f4", at::kFloat},        DtypeRow{"f8", at::kDouble},
    DtypeRow{"c8", at::kComplexFloat}, DtypeRow{"c16", at::kComplexDouble},
    DtypeRow{"V2", at::kBFloat16},
};

/// What the header of an array says.
struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the header: a Python dict literal with exactly three keys, of the form NumPy writes.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& label) : text_(text), label_(label) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      auto first = [&](bool& seen) {
        if (seen) fail("the key " + shown(key) + " twice");
        seen = true;
      };
      if (key == "descr") {
        first(has_descr);
        if (peek() == '[') fail_dtype("a structured type");
        header.descr = string();
      } else if (key == "fortran_order") {
        first(has_order);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        first(has_shape);
        header.shape = tuple();
      } else {
        fail("an unknown key " + shown(key));
      }
      if (!accept(',') && peek() != '}') fail("no comma after the value of " + shown(key));
    }
    if (peek() != '\0') fail("text after the dict");
    if (!has_descr || !has_order || !has_shape) fail("not all of descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ImportError(ErrorCode::kBadNpy, label_ + ": the header of the array has " + what);
  }
  [[noreturn]] void fail_dtype(const std::string& what) const {
    throw ImportError(ErrorCode::kNpyDtype, label_ + ": the array has " + what + " as elements");
  }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("no '") + c + "' at byte " + std::to_string(at_));
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail("no string at byte " + std::to_string(at_));
    std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string without end");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    if (value.find('\\') != std::string::npos) fail("an escape in a string");
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    peek();
    for (auto [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("a fortran_order that is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) fail("a shape with something else than 64-bit integers");
      if (value < 0) fail("a negative size in its shape");
      values.push_back(value);
      if (values.size() > kMaxDims) fail("more than " + std::to_string(kMaxDims) + " dimensions");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (!accept(',') && peek() != ')') fail("no comma in its shape");
    }
    return values;
  }

  std::string_view text_;
  const std::string& label_;
  std::size_t at_ = 0;
};

at::ScalarType dtype_of(const std::string& descr, const std::string& label) {
  auto fail = [&](const std::string& what) {
    throw ImportError(ErrorCode::kNpyDtype, label + ": the elements are " + what + " (" +
                                                shown(descr) + "), which is no type of torch's");
  };
  char order = descr.empty() ? '\0' : descr[0];
  if (order != '<' && order != '|' && order != '=' && order != '>') fail("of an unknown type");
  std::string_view code = std::string_view(descr).substr(1);
  if (code.starts_with('O')) fail("pickled Python objects");
  auto row = std::ranges::find(kDtypes, code, &DtypeRow::code);
  if (row == kDtypes.end()) {
    if (code.starts_with('U') || code.starts_with('S')) fail("strings");
    if (code.starts_with('M') || code.starts_with('m')) fail("dates");
    fail("of an unknown type");
  }
  if (order == '>' && at::elementSize(row->type) > 1)
    throw ImportError(
        ErrorCode::kNpyDtype,
        label + ": the elements are big endian (" + shown(descr) +
            "), little endian is wanted: array.astype(array.dtype.newbyteorder('<'))");
  return row->type;
}

/// Bytes of an array of that shape; nothing if that overflows, also where a size of 0 hides it.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape,
                                      std::uint64_t element) {
  std::uint64_t all = element, non_empty = element;
  for (std::int64_t size : shape) {
    auto n = static_cast<std::uint64_t>(size);
    if (__builtin_mul_overflow(non_empty, std::max<std::uint64_t>(n, 1), &non_empty)) return {};
    all *= n;
  }
  if (non_empty > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
  return all;
}

std::string_view code_of(at::ScalarType type) {
  auto row = std::ranges::find(kDtypes, type, &DtypeRow::type);
  return row == kDtypes.end() ? std::string_view() : row->code;
}

}  // namespace

at::Tensor read_npy(std::span<const std::byte> bytes, const std::string& label) {
  auto fail = [&](const std::string& what) {
    throw ImportError(ErrorCode::kBadNpy, label + ": " + what);
  };
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic))
    fail("it is " + guess_format(bytes).name + ", a .npy file is wanted");
  if (text.size() < 10) fail("it ends inside its header");
  const auto major = static_cast<unsigned char>(text[6]),
             minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail("it has format version " + std::to_string(major) + "." + std::to_string(minor) +
         ", 1.0, 2.0 and 3.0 are known");
  const std::size_t length_bytes = major == 1 ? 2 : 4, prefix = 8 + length_bytes;
  if (text.size() < prefix) fail("it ends inside its header");
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(text[8 + i]);
  if (length > kMaxHeader)
    fail("its header has " + std::to_string(length) + " bytes, at most " +
         std::to_string(kMaxHeader) + " are read");
  if (text.size() - prefix < length) fail("it ends inside its header");

  Header header = HeaderParser(text.substr(prefix, length), label).parse();
  at::ScalarType type = dtype_of(header.descr, label);
  std::optional<std::uint64_t> wanted = bytes_of(header.shape, at::elementSize(type));
  std::span<const std::byte> data = bytes.subspan(prefix + length);
  if (!wanted || *wanted != data.size())
    fail("it has " + std::to_string(data.size()) + " bytes of data, its shape wants " +
         (wanted ? std::to_string(*wanted) : "more than 2^63"));
  if (type == at::kBool && std::ranges::any_of(data, [](std::byte b) { return b > std::byte{1}; }))
    fail("it holds bools that are neither 0 nor 1");

  if (header.fortran_order) std::ranges::reverse(header.shape);
  at::Tensor tensor = at::empty(header.shape, at::TensorOptions().dtype(type));
  if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
  if (!header.fortran_order) return tensor;
  std::vector<std::int64_t> order(header.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int64_t>(order.size() - 1 - i);
  return tensor.permute(order).contiguous();
}

at::Tensor read_npy(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_npy(file->bytes(), shown(path));
}

void write_npy(const std::string& path, const at::Tensor& tensor) {
  auto refuse = [&](const std::string& what) {
    throw ImportError(ErrorCode::kNpyDtype, "Cannot write " + shown(path) + ": " + what);
  };
  if (!tensor.defined()) refuse("the tensor is undefined");
  if (tensor.layout() != at::kStrided || tensor.is_quantized())
    refuse("the tensor is sparse or quantised, .npy holds dense arrays only");
  std::string_view code = code_of(tensor.scalar_type());
  if (code.empty())
    refuse(std::string("NumPy has no type for ") + at::toString(tensor.scalar_type()));

  at::Tensor values = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  const bool byte_sized = at::elementSize(values.scalar_type()) == 1;
  std::string header = "{'descr': '" + std::string(byte_sized ? "|" : "<") + std::string(code) +
                       "', 'fortran_order': False, 'shape': (";
  for (std::int64_t i = 0; i < values.dim(); ++i)
    header += (i > 0 ? ", " : "") + std::to_string(values.size(i));
  header += values.dim() == 1 ? ",), }" : "), }";
  constexpr std::size_t kPrefix = 10;
  std::size_t total = (kPrefix + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.append(total - kPrefix - header.size() - 1, ' ');
  header += '\n';

  std::string prefix(kMagic);
  prefix += {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  AtomicFile file(path);
  file.write(prefix + header);
  file.write({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  file.commit();
}

}  // namespace fx::io
