#include "fx/graph/argument.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/node.h"

namespace fx {
namespace detail {

struct ArgumentBox {
  mutable std::atomic<std::uint32_t> references{1};
  bool has_nodes = false;
  std::uint8_t depth = 0;
  std::string text;
  std::complex<double> complex;
  std::vector<Argument> items;
  std::vector<DictItem> dict;
};

}  // namespace detail

using detail::ArgumentBox;
using Kind = Argument::Kind;

namespace {

[[noreturn]] void wrong_kind(const Argument& found, std::string_view wanted) {
  throw GraphError(ErrorCode::kWrongArgumentKind, "argument " + repr(found) + " is a " +
                                                      std::string(kind_name(found.kind())) +
                                                      ", wanted a " + std::string(wanted));
}

std::uint8_t checked_depth(int depth) {
  static_assert(Argument::kMaxDepth <= 255);
  if (depth > Argument::kMaxDepth)
    throw GraphError(ErrorCode::kTooDeep, "an argument nests " + std::to_string(depth) +
                                              " levels of lists, tuples and dicts; the limit is " +
                                              std::to_string(Argument::kMaxDepth));
  return static_cast<std::uint8_t>(depth);
}

std::string_view layout_name(c10::Layout layout) {
  switch (layout) {
    case c10::kStrided:
      return "torch.strided";
    case c10::kSparse:
      return "torch.sparse_coo";
    case c10::kSparseCsr:
      return "torch.sparse_csr";
    case c10::kMkldnn:
      return "torch._mkldnn";
    case c10::kSparseCsc:
      return "torch.sparse_csc";
    case c10::kSparseBsr:
      return "torch.sparse_bsr";
    case c10::kSparseBsc:
      return "torch.sparse_bsc";
    case c10::kJagged:
      return "torch.jagged";
    default:
      return "torch.unknown_layout";
  }
}

std::string_view memory_format_name(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous:
      return "torch.contiguous_format";
    case c10::MemoryFormat::Preserve:
      return "torch.preserve_format";
    case c10::MemoryFormat::ChannelsLast:
      return "torch.channels_last";
    case c10::MemoryFormat::ChannelsLast3d:
      return "torch.channels_last_3d";
    default:
      return "torch.unknown_format";
  }
}

}  // namespace

Argument::Argument(c10::Device value) noexcept
    : int_((static_cast<std::int64_t>(value.type()) << 16) |
           static_cast<std::uint8_t>(value.index())),
      kind_(Kind::kDevice) {}

Argument::Argument(std::string_view text) : int_(0), kind_(Kind::kNone) {
  auto* box = new ArgumentBox;
  box->text = text;
  box_ = box;
  kind_ = Kind::kString;
}

Argument::Argument(std::complex<double> value) : int_(0), kind_(Kind::kNone) {
  auto* box = new ArgumentBox;
  box->complex = value;
  box_ = box;
  kind_ = Kind::kComplex;
}

Argument Argument::list(std::vector<Argument> items) {
  bool nodes = false;
  int deepest = 0;
  for (const Argument& item : items) {
    nodes |= item.has_nodes();
    deepest = std::max(deepest, item.depth());
  }
  auto* box = new ArgumentBox;
  Argument made(Kind::kList, box);
  box->has_nodes = nodes;
  box->depth = checked_depth(deepest + 1);
  box->items = std::move(items);
  return made;
}

Argument Argument::tuple(std::vector<Argument> items) {
  Argument made = list(std::move(items));
  made.kind_ = Kind::kTuple;
  return made;
}

Argument Argument::dict(std::vector<DictItem> items) {
  auto* box = new ArgumentBox;
  Argument made(Kind::kDict, box);
  int deepest = 0;
  for (const DictItem& item : items) {
    deepest = std::max({deepest, item.first.depth(), item.second.depth()});
    if (item.first.has_nodes())
      throw GraphError(
          ErrorCode::kWrongArgumentKind,
          "Keys for dictionaries used as an argument cannot contain a Node. Got key: " +
              repr(item.first));
    box->has_nodes |= item.second.has_nodes();
  }
  box->depth = checked_depth(deepest + 1);
  box->dict = std::move(items);
  return made;
}

Argument Argument::slice(Argument start, Argument stop, Argument step) {
  Argument made = list({std::move(start), std::move(stop), std::move(step)});
  made.kind_ = Kind::kSlice;
  return made;
}

Argument Argument::ellipsis() noexcept {
  Argument made;
  made.kind_ = Kind::kEllipsis;
  return made;
}

void Argument::retain_box() const noexcept {
  box_->references.fetch_add(1, std::memory_order_relaxed);
}

void Argument::release() noexcept {
  if (box_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete box_;
}

bool Argument::has_nodes() const noexcept {
  return kind_ == Kind::kNode || (is_aggregate() && box_->has_nodes);
}

int Argument::depth() const noexcept { return is_aggregate() ? box_->depth : 0; }

Node& Argument::node() const {
  if (kind_ != Kind::kNode) wrong_kind(*this, "node");
  return *node_;
}

bool Argument::to_bool() const {
  if (kind_ != Kind::kBool) wrong_kind(*this, "bool");
  return int_ != 0;
}

std::int64_t Argument::to_int() const {
  if (kind_ != Kind::kInt) wrong_kind(*this, "int");
  return int_;
}

double Argument::to_double() const {
  if (kind_ == Kind::kInt) return static_cast<double>(int_);
  if (kind_ != Kind::kFloat) wrong_kind(*this, "float");
  return float_;
}

std::complex<double> Argument::to_complex() const {
  if (kind_ != Kind::kComplex) wrong_kind(*this, "complex");
  return box_->complex;
}

const std::string& Argument::to_string() const {
  if (kind_ != Kind::kString) wrong_kind(*this, "string");
  return box_->text;
}

c10::ScalarType Argument::to_dtype() const {
  if (kind_ != Kind::kDtype) wrong_kind(*this, "dtype");
  return static_cast<c10::ScalarType>(int_);
}

c10::Device Argument::to_device() const {
  if (kind_ != Kind::kDevice) wrong_kind(*this, "device");
  return c10::Device(static_cast<c10::DeviceType>(int_ >> 16),
                     static_cast<c10::DeviceIndex>(static_cast<std::int8_t>(int_ & 0xff)));
}

c10::Layout Argument::to_layout() const {
  if (kind_ != Kind::kLayout) wrong_kind(*this, "layout");
  return static_cast<c10::Layout>(int_);
}

c10::MemoryFormat Argument::to_memory_format() const {
  if (kind_ != Kind::kMemoryFormat) wrong_kind(*this, "memory format");
  return static_cast<c10::MemoryFormat>(int_);
}

std::span<const Argument> Argument::items() const {
  if (kind_ != Kind::kList && kind_ != Kind::kTuple && kind_ != Kind::kSlice)
    wrong_kind(*this, "list, tuple or slice");
  return box_->items;
}

std::span<const DictItem> Argument::dict_items() const {
  if (kind_ != Kind::kDict) wrong_kind(*this, "dict");
  return box_->dict;
}

const Argument* Argument::find(std::string_view key) const {
  for (const DictItem& item : dict_items())
    if (item.first.kind() == Kind::kString && item.first.to_string() == key) return &item.second;
  return nullptr;
}

bool operator==(const Argument& a, const Argument& b) noexcept {
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::kNone:
    case Kind::kEllipsis:
      return true;
    case Kind::kString:
      return a.box_ == b.box_ || a.box_->text == b.box_->text;
    case Kind::kComplex:
      return std::bit_cast<std::array<std::uint64_t, 2>>(a.box_->complex) ==
             std::bit_cast<std::array<std::uint64_t, 2>>(b.box_->complex);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSlice:
      return a.box_ == b.box_ || a.box_->items == b.box_->items;
    case Kind::kDict:
      return a.box_ == b.box_ || a.box_->dict == b.box_->dict;
    default:
      return a.int_ == b.int_;
  }
}

std::string_view kind_name(Kind kind) {
  constexpr std::string_view kNames[] = {
      "none",     "bool", "int",    "float",   "dtype", "device", "layout", "memory format",
      "ellipsis", "node", "string", "complex", "list",  "tuple",  "dict",   "slice"};
  return kNames[static_cast<int>(kind)];
}

std::string dtype_repr(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Byte:
      return "torch.uint8";
    case c10::ScalarType::Char:
      return "torch.int8";
    case c10::ScalarType::Short:
      return "torch.int16";
    case c10::ScalarType::Int:
      return "torch.int32";
    case c10::ScalarType::Long:
      return "torch.int64";
    case c10::ScalarType::Half:
      return "torch.float16";
    case c10::ScalarType::Float:
      return "torch.float32";
    case c10::ScalarType::Double:
      return "torch.float64";
    case c10::ScalarType::ComplexHalf:
      return "torch.complex32";
    case c10::ScalarType::ComplexFloat:
      return "torch.complex64";
    case c10::ScalarType::ComplexDouble:
      return "torch.complex128";
    case c10::ScalarType::Bool:
      return "torch.bool";
    case c10::ScalarType::BFloat16:
      return "torch.bfloat16";
    default: {
      // Every other dtype's Python name is its C++ name in lower case (float8_e5m2, uint16, ...).
      std::string name = "torch.";
      for (const char* c = c10::toString(dtype); *c; ++c)
        name += static_cast<char>(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
      return name;
    }
  }
}

void append_repr(std::string& out, const Argument& argument, std::string_view node_prefix) {
  auto append_items = [&](std::span<const Argument> items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      append_repr(out, items[i], node_prefix);
    }
  };
  switch (argument.kind()) {
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kBool:
      out += argument.to_bool() ? "True" : "False";
      break;
    case Kind::kInt:
      out += std::to_string(argument.to_int());
      break;
    case Kind::kFloat:
      out += float_repr(argument.to_double());
      break;
    case Kind::kDtype:
      out += dtype_repr(argument.to_dtype());
      break;
    case Kind::kDevice: {
      c10::Device device = argument.to_device();
      out += "device(type='" + c10::DeviceTypeName(device.type(), /*lower_case=*/true) + "'";
      if (device.has_index()) out += ", index=" + std::to_string(device.index());
      out += ")";
      break;
    }
    case Kind::kLayout:
      out += layout_name(argument.to_layout());
      break;
    case Kind::kMemoryFormat:
      out += memory_format_name(argument.to_memory_format());
      break;
    case Kind::kEllipsis:
      out += "Ellipsis";
      break;
    case Kind::kNode:
      out += node_prefix;
      out += argument.node().name();
      break;
    case Kind::kString:
      out += str_repr(argument.to_string());
      break;
    case Kind::kComplex:
      out += complex_repr(argument.to_complex());
      break;
    case Kind::kList:
      out += '[';
      append_items(argument.items());
      out += ']';
      break;
    case Kind::kTuple:
      out += repr(argument.items(), node_prefix);
      break;
    case Kind::kDict: {
      out += '{';
      bool first = true;
      for (const DictItem& item : argument.dict_items()) {
        if (!first) out += ", ";
        first = false;
        append_repr(out, item.first, node_prefix);
        out += ": ";
        append_repr(out, item.second, node_prefix);
      }
      out += '}';
      break;
    }
    case Kind::kSlice:
      out += "slice(";
      append_items(argument.items());
      out += ')';
      break;
  }
}

std::string repr(const Argument& argument, std::string_view node_prefix) {
  std::string out;
  append_repr(out, argument, node_prefix);
  return out;
}

std::string repr(std::span<const Argument> args, std::string_view node_prefix) {
  std::string out = "(";
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i) out += ", ";
    append_repr(out, args[i], node_prefix);
  }
  out += args.size() == 1 ? ",)" : ")";
  return out;
}

std::string repr(std::span<const KwArg> kwargs, std::string_view node_prefix) {
  std::string out = "{";
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (i) out += ", ";
    out += str_repr(kwargs[i].key.str()) + ": ";
    append_repr(out, kwargs[i].value, node_prefix);
  }
  return out + "}";
}

}  // namespace fx
