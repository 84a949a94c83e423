#pragma once

#include <c10/core/Device.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#include <torch/headeronly/core/ScalarType.h>

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/base/symbol.h"

namespace fx {

class Argument;
class Node;

namespace detail {
struct ArgumentBox;  // shared, immutable payload of a string, complex number or aggregate
}

/// A key and a value of a dict argument. Keys hold no nodes.
using DictItem = std::pair<Argument, Argument>;

/// One argument of a node: a compact (16 bytes) immutable value, torch.fx's `Argument`.
///
/// Aggregates nest. They are shared between copies and never change: an edit builds a new value
/// (torch.fx's immutable_list and immutable_dict). Copying is O(1).
/// A tensor is never an argument: it is an attribute of the module, read by a get_attr node.
class Argument {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kDtype,
    kDevice,
    kLayout,
    kMemoryFormat,
    kEllipsis,
    kNode,
    // From here on the payload is a shared box.
    kString,
    kComplex,
    kList,
    kTuple,
    kDict,
    kSlice,
  };

  Argument() noexcept : int_(0), kind_(Kind::kNone) {}
  Argument(std::nullptr_t) noexcept : Argument() {}
  /// Only a bool itself: a pointer must not become True.
  template <std::same_as<bool> T>
  Argument(T value) noexcept : int_(value), kind_(Kind::kBool) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Argument(T value) noexcept : int_(static_cast<std::int64_t>(value)), kind_(Kind::kInt) {}
  template <std::floating_point T>
  Argument(T value) noexcept : float_(static_cast<double>(value)), kind_(Kind::kFloat) {}
  Argument(c10::ScalarType value) noexcept
      : int_(static_cast<std::int64_t>(value)), kind_(Kind::kDtype) {}
  Argument(c10::Layout value) noexcept
      : int_(static_cast<std::int64_t>(value)), kind_(Kind::kLayout) {}
  Argument(c10::MemoryFormat value) noexcept
      : int_(static_cast<std::int64_t>(value)), kind_(Kind::kMemoryFormat) {}
  Argument(c10::Device value) noexcept;
  Argument(Node& node) noexcept : node_(&node), kind_(Kind::kNode) {}
  Argument(Node* node) noexcept : node_(node), kind_(node ? Kind::kNode : Kind::kNone) {}
  Argument(const char* text) : Argument(std::string_view(text)) {}
  Argument(std::string_view text);
  Argument(const std::string& text) : Argument(std::string_view(text)) {}
  Argument(std::complex<double> value);
  /// A list of values that convert to Argument.
  template <typename T>
    requires std::constructible_from<Argument, const T&>
  Argument(const std::vector<T>& items) : Argument(list({items.begin(), items.end()})) {}

  Argument(const Argument& other) noexcept : int_(other.int_), kind_(other.kind_) { retain(); }
  Argument(Argument&& other) noexcept : int_(other.int_), kind_(other.kind_) {
    other.kind_ = Kind::kNone;
  }
  Argument& operator=(Argument other) noexcept {
    std::swap(int_, other.int_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~Argument() {
    if (boxed()) release();
  }

  /// Aggregates nest at most this deep, so that a recursive walk never overflows the stack.
  static constexpr int kMaxDepth = 200;

  /// @throws GraphError kTooDeep (list, tuple, dict, slice).
  static Argument list(std::vector<Argument> items);
  static Argument tuple(std::vector<Argument> items);
  /// @throws GraphError kWrongArgumentKind if a key holds a node (torch.fx forbids it).
  static Argument dict(std::vector<DictItem> items);
  static Argument slice(Argument start, Argument stop, Argument step = {});
  static Argument ellipsis() noexcept;

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::kNone; }
  bool is_node() const noexcept { return kind_ == Kind::kNode; }
  /// list, tuple, dict or slice.
  bool is_aggregate() const noexcept { return kind_ >= Kind::kList; }
  /// Whether a node occurs here or anywhere inside. O(1).
  bool has_nodes() const noexcept;
  /// Levels of aggregates: 0 for a leaf, 1 for a list of leaves. O(1).
  int depth() const noexcept;

  // Typed access. @throws GraphError kWrongArgumentKind naming both kinds.
  Node& node() const;
  /// The node, or null for any other kind.
  Node* node_or_null() const noexcept { return is_node() ? node_ : nullptr; }
  bool to_bool() const;
  std::int64_t to_int() const;
  /// Also accepts an int.
  double to_double() const;
  std::complex<double> to_complex() const;
  const std::string& to_string() const;
  c10::ScalarType to_dtype() const;
  c10::Device to_device() const;
  c10::Layout to_layout() const;
  c10::MemoryFormat to_memory_format() const;
  /// Items of a list or tuple; start, stop and step of a slice.
  std::span<const Argument> items() const;
  std::span<const DictItem> dict_items() const;
  /// The value under a string key of a dict, or null. O(items).
  const Argument* find(std::string_view key) const;

  /// Structural equality; nodes by identity, floats by bits (so nan equals itself and 0.0 is not
  /// -0.0).
  friend bool operator==(const Argument& a, const Argument& b) noexcept;

  /// Calls `fn(Node&)` for every node inside, depth first in order, duplicates included.
  template <typename Fn>
  void for_each_node(Fn&& fn) const {
    if (kind_ == Kind::kNode) return fn(*node_);
    if (!is_aggregate() || !has_nodes()) return;
    if (kind_ == Kind::kDict) {
      for (const DictItem& item : dict_items()) item.second.for_each_node(fn);
    } else {
      for (const Argument& item : items()) item.for_each_node(fn);
    }
  }

  /// The same structure with every node replaced by `fn(Node&) -> Argument`; torch.fx's map_arg.
  /// Parts without nodes are shared, not copied.
  template <typename Fn>
  Argument map_nodes(Fn&& fn) const;

  /// The same structure with every leaf (also none, also inside slices) replaced by
  /// `fn(const Argument&) -> Argument`; torch.fx's map_aggregate. Dict keys stay.
  template <typename Fn>
  Argument map_leaves(Fn&& fn) const;

 private:
  friend struct detail::ArgumentBox;
  explicit Argument(Kind kind, const detail::ArgumentBox* box) noexcept : box_(box), kind_(kind) {}

  bool boxed() const noexcept { return kind_ >= Kind::kString; }
  void retain() const noexcept {
    if (boxed()) retain_box();
  }
  void retain_box() const noexcept;
  void release() noexcept;

  union {
    std::int64_t int_;
    double float_;
    Node* node_;
    const detail::ArgumentBox* box_;
  };
  Kind kind_;
};
static_assert(sizeof(Argument) == 16);

/// Name of a kind as messages show it ("int", "list", ...).
std::string_view kind_name(Argument::Kind kind);

/// A keyword argument of a node.
struct KwArg {
  KwArg(std::string_view key_text, Argument v) : key(key_text), value(std::move(v)) {}
  KwArg(Symbol key_symbol, Argument v) : key(key_symbol), value(std::move(v)) {}

  Symbol key;
  Argument value;

  friend bool operator==(const KwArg&, const KwArg&) = default;
};

using Args = std::vector<Argument>;
using Kwargs = std::vector<KwArg>;

/// Python's repr of an argument. Nodes print as `name` (print_tabular) or `%name` (graph text).
std::string repr(const Argument& argument, std::string_view node_prefix = "");
void append_repr(std::string& out, const Argument& argument, std::string_view node_prefix = "");
/// "(a, 1)", "(a,)", "()".
std::string repr(std::span<const Argument> args, std::string_view node_prefix = "");
/// "{'min': 0.0}".
std::string repr(std::span<const KwArg> kwargs, std::string_view node_prefix = "");
/// "torch.float32".
std::string dtype_repr(c10::ScalarType dtype);

template <typename Fn>
Argument Argument::map_nodes(Fn&& fn) const {
  if (kind_ == Kind::kNode) return fn(*node_);
  if (!is_aggregate() || !has_nodes()) return *this;
  if (kind_ == Kind::kDict) {
    std::vector<DictItem> mapped;
    mapped.reserve(dict_items().size());
    for (const DictItem& item : dict_items())
      mapped.emplace_back(item.first, item.second.map_nodes(fn));
    return dict(std::move(mapped));
  }
  std::vector<Argument> mapped;
  mapped.reserve(items().size());
  for (const Argument& item : items()) mapped.push_back(item.map_nodes(fn));
  if (kind_ == Kind::kList) return list(std::move(mapped));
  if (kind_ == Kind::kTuple) return tuple(std::move(mapped));
  return slice(mapped[0], mapped[1], mapped[2]);
}

template <typename Fn>
Argument Argument::map_leaves(Fn&& fn) const {
  if (!is_aggregate()) return fn(*this);
  if (kind_ == Kind::kDict) {
    std::vector<DictItem> mapped;
    for (const DictItem& item : dict_items())
      mapped.emplace_back(item.first, item.second.map_leaves(fn));
    return dict(std::move(mapped));
  }
  std::vector<Argument> mapped;
  for (const Argument& item : items()) mapped.push_back(item.map_leaves(fn));
  if (kind_ == Kind::kList) return list(std::move(mapped));
  if (kind_ == Kind::kTuple) return tuple(std::move(mapped));
  return slice(mapped[0], mapped[1], mapped[2]);
}

}  // namespace fx
