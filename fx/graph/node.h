#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/argument.h"
#include "fx/graph/meta.h"
#include "fx/graph/target.h"

namespace fx {

class Graph;
class GraphModule;
class Node;
class Namespace;
class InsertPointGuard;
class GraphSnapshot;

namespace detail {
struct NameEntry;
struct NodeLinks;  // gives order_list.h access to the links of a node

/// One unique (producer, user) pair. It is owned by the user and linked into the producer's list of
/// users, which keeps that list insertion ordered with O(1) insertion and removal.
struct UseEdge {
  Node* producer = nullptr;
  Node* user = nullptr;
  UseEdge* prev = nullptr;
  UseEdge* next = nullptr;
};
}  // namespace detail

/// The users of a node: unique, ordered by the time of their first use; a live view.
/// Editing the current user while iterating may skip or repeat; copy with to_vector() before
/// editing.
class UserRange {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    using pointer = Node* const*;
    using reference = Node*;

    explicit iterator(const detail::UseEdge* edge = nullptr) : edge_(edge) {}
    Node* operator*() const { return edge_->user; }
    iterator& operator++() {
      edge_ = edge_->next;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      edge_ = edge_->next;
      return old;
    }
    friend bool operator==(iterator, iterator) = default;

   private:
    const detail::UseEdge* edge_;
  };

  UserRange(const detail::UseEdge* first, std::size_t count) : first_(first), count_(count) {}
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool contains(const Node& node) const;
  std::vector<Node*> to_vector() const {
    std::vector<Node*> out;
    out.reserve(count_);
    for (Node* user : *this) out.push_back(user);
    return out;
  }

 private:
  const detail::UseEdge* first_;
  std::size_t count_;
};

/// One operation of a graph and, at the same time, the value it makes (torch.fx.Node).
///
/// | opcode        | target                        | args                         |
/// |---------------|-------------------------------|------------------------------|
/// | placeholder   | parameter name                | () or (default value,)       |
/// | get_attr      | attribute path "layer1.weight"| ()                           |
/// | call_function | function                      | as the function              |
/// | call_method   | method name                   | (self, ...)                  |
/// | call_module   | submodule path                | as the module's forward      |
/// | output        | "output"                      | (returned value,)            |
///
/// Nodes live in their graph's slabs: a Node* stays valid until the graph is destroyed, also after
/// erase_node (the erased node then has no arguments and is_erased()).
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Graph& graph() const noexcept { return *graph_; }
  Opcode op() const noexcept { return op_; }
  const Target& target() const noexcept { return target_; }
  /// Unique within the graph; valid as long as the graph.
  std::string_view name() const noexcept;
  bool is_erased() const noexcept { return erased_; }
  /// Number of the node within its graph, by creation, never given again; less than
  /// Graph::id_bound(). Index of dense side tables.
  std::uint32_t id() const noexcept { return id_; }

  /// Whether this is a call_function of `name`. A name without overload ("aten::add") matches every
  /// overload of that operator; "aten::add.Tensor" exactly one.
  bool calls(std::string_view name) const noexcept;
  bool is_placeholder() const noexcept { return op_ == Opcode::kPlaceholder; }
  bool is_output() const noexcept { return op_ == Opcode::kOutput; }

  /// @throws GraphError kBadTarget when the kind does not fit the opcode.
  void set_target(Target target);
  void set_target(std::string_view name);
  /// Changes opcode and target together (for example call_module to call_function).
  void set_op(Opcode op, Target target);

  // --- arguments -----------------------------------------------------------------------------
  std::span<const Argument> args() const noexcept { return args_.view(); }
  std::span<const KwArg> kwargs() const noexcept { return kwargs_; }
  std::size_t num_args() const noexcept { return args_.size(); }
  /// @throws GraphError kIndexOutOfRange naming node, index and size. Negative counts from the end.
  const Argument& arg(std::int64_t index) const;
  /// @throws GraphError kUnknownKwarg naming node and key.
  const Argument& kwarg(std::string_view key) const;
  /// Null when absent.
  const Argument* find_kwarg(std::string_view key) const noexcept;
  bool has_kwarg(std::string_view key) const noexcept { return find_kwarg(key) != nullptr; }

  /// Replace all positional (keyword) arguments; the users of old and new inputs follow, O(inputs).
  void set_args(Args args);
  /// @throws GraphError kDuplicateKwarg for a key that occurs twice; the node is unchanged then.
  void set_kwargs(Kwargs kwargs);
  void set_args_kwargs(Args args, Kwargs kwargs);
  /// Replaces the argument at `index` (negative: from the end). The node is unchanged on error.
  /// @throws GraphError kIndexOutOfRange
  void update_arg(std::int64_t index, Argument value);
  /// Extension of torch.fx: replaces an existing keyword argument.
  /// @throws GraphError kUnknownKwarg when the node has no such keyword.
  void update_arg(std::string_view key, Argument value);
  /// Inserts before position `index`, 0 <= index <= num_args().
  void insert_arg(std::int64_t index, Argument value);
  /// Sets or adds a keyword argument.
  void update_kwarg(std::string_view key, Argument value);

  // --- uses ----------------------------------------------------------------------------------
  UserRange users() const noexcept { return {first_use_, num_users_}; }
  std::size_t num_users() const noexcept { return num_users_; }
  /// Unique inputs in order of first use, positional arguments first, nested ones in depth order.
  std::vector<Node*> all_input_nodes() const;
  bool uses(const Node& producer) const noexcept;

  /// Makes every user read `replacement` instead of this node, nested uses included, and returns
  /// the users changed. Order is not checked; when `replacement` itself uses this node it ends up
  /// using itself: exclude it with the filter. O(total arguments of the users).
  /// @param filter called per user; false keeps that user as it is.
  /// @param propagate_meta copies this node's meta to `replacement`.
  /// @throws GraphError kMetaNotEmpty if propagate_meta and `replacement` has meta; kForeignNode
  /// for a
  ///   node of another graph.
  std::vector<Node*> replace_all_uses_with(Node& replacement,
                                           const std::function<bool(Node&)>& filter = {},
                                           bool propagate_meta = false);
  /// Replaces every occurrence of `old` in this node's arguments.
  void replace_input_with(Node& old, const Argument& replacement);

  // --- position ------------------------------------------------------------------------------
  /// Neighbours, or null at the ends.
  Node* next() const noexcept;
  Node* prev() const noexcept;
  /// Moves `node` right before (after) this one. Def-before-use is not checked; lint does.
  /// A node moved next to itself stays. @throws GraphError kForeignNode for another graph's node.
  void prepend(Node& node);
  void append(Node& node);
  /// Whether this node stands before `other` in the same graph. O(1).
  bool comes_before(const Node& other) const noexcept { return order_ < other.order_; }

  // --- the rest ------------------------------------------------------------------------------
  /// Optional type annotation, printed as ": T"; empty if none.
  const std::string& type() const noexcept { return type_.str(); }
  void set_type(std::string_view type);
  const Meta& meta() const noexcept;
  Meta& meta();
  /// meta()["stack_trace"], or empty.
  std::string stack_trace() const;
  void set_stack_trace(std::string_view text) { meta().set("stack_trace", std::string(text)); }

  /// Renames to `candidate`, made unique by the graph's namespace. Returns the new name.
  std::string_view rename(std::string_view candidate);

  /// Whether deleting this node when it has no users could change what anybody can observe: inputs
  /// and outputs, mutating or (if impure_random) random operators, calls of modules that are impure
  /// inside. From operator schemas (ops/effects.h), never from a list of node names.
  bool is_impure(bool impure_random = true) const;

  /// torch.fx's format_node: "%add : [num_users=1] = call_function[target=operator.add](args = (%x,
  /// 1), kwargs = {})". Never throws, also on a broken graph.
  std::string format_node() const;

 private:
  friend class Graph;
  friend class Namespace;
  friend class NodeRange;
  friend class InsertPointGuard;
  friend class GraphSnapshot;
  friend class GraphTestAccess;
  friend struct detail::NodeLinks;

  /// Argument storage with room for two inline, which covers most nodes.
  class ArgList {
   public:
    std::span<const Argument> view() const noexcept { return {data(), size_}; }
    std::span<Argument> mutable_view() noexcept { return {data(), size_}; }
    std::size_t size() const noexcept { return size_; }
    void assign(std::span<const Argument> items);
    void assign(Args&& items);
    /// Makes room for `size` arguments, all None, for the caller to fill.
    std::span<Argument> reset(std::size_t size) { return {reserve(size), size}; }
    void clear() noexcept;

   private:
    static constexpr std::size_t kInline = 2;
    const Argument* data() const noexcept { return heap_ ? heap_.get() : inline_; }
    Argument* data() noexcept { return heap_ ? heap_.get() : inline_; }
    Argument* reserve(std::size_t size);

    Argument inline_[kInline];
    std::unique_ptr<Argument[]> heap_;
    std::uint32_t size_ = 0;
  };

  Node() = default;
  ~Node() = default;

  /// @throws GraphError kDuplicateKwarg
  static void check_kwargs(std::span<const KwArg> kwargs);
  void link_inputs();
  void unlink_inputs() noexcept;
  // Whether all uses of `old` became uses of `replacement` by moving edges, which needs no memory:
  // not when `replacement` is an input already.
  bool move_uses(Node& old, Node& replacement) noexcept;
  void append_edge(detail::UseEdge& edge) noexcept;
  static void remove_edge(detail::UseEdge& edge) noexcept;
  // Puts the edges of these users to the end of the list of users, in this order.
  void order_users(std::span<Node* const> users) noexcept;
  std::span<detail::UseEdge> edges() noexcept {
    return {heap_edges_ ? heap_edges_.get() : inline_edges_, num_edges_};
  }
  std::span<const detail::UseEdge> edges() const noexcept {
    return {heap_edges_ ? heap_edges_.get() : inline_edges_, num_edges_};
  }

  static constexpr std::size_t kInlineEdges = 2;

  Graph* graph_ = nullptr;
  Node* prev_ = nullptr;
  Node* next_ = nullptr;
  std::uint64_t order_ = 0;  // position label, see order_list.h
  detail::NameEntry* name_ = nullptr;
  Target target_;
  Symbol type_;
  detail::UseEdge* first_use_ = nullptr;
  detail::UseEdge* last_use_ = nullptr;
  std::uint32_t num_users_ = 0;
  std::uint32_t num_edges_ = 0;
  Opcode op_ = Opcode::kPlaceholder;
  bool erased_ = false;
  std::uint32_t id_ = 0;
  ArgList args_;
  Kwargs kwargs_;
  detail::UseEdge inline_edges_[kInlineEdges];
  std::unique_ptr<detail::UseEdge[]> heap_edges_;
  std::unique_ptr<Meta> meta_;
};

}  // namespace fx
