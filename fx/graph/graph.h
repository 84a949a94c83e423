#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/graph/node.h"

/// Semantics contract of a graph
///
/// 1. Node order is execution order. A node may be moved or deleted only if no observable effect
///    changes.
/// 2. Effects come from the operator schema (alias annotations, nondeterministic_seeded), never
/// from
///    name lists. Mutation of a value anybody can still see is an effect; so is a write through a
///    view, `out=`, a list argument, or a mutated buffer. call_module and nested graphs are as
///    impure as what is inside them.
/// 3. Placeholders are a prefix of the graph; exactly one output, last. A graph that breaks a rule
/// is
///    caught by lint, each rule with its own error code.
/// 4. All iteration orders that a user can see are deterministic: insertion order, never hash or
///    pointer order.
/// 5. Float freedom: by default eager's results within the published tolerance per dtype;
///    reassociation only where a mode says so.
/// 6. Text round trip: print -> parse -> print is the identity, for every graph.
namespace fx {

class Namespace;

/// What a graph asks of the module that owns it; GraphModule implements it.
class GraphOwner {
 public:
  enum class AttrKind : std::uint8_t { kMissing, kModule, kParameter, kBuffer, kConstant };

  virtual ~GraphOwner() = default;
  /// What stands at a dotted path.
  virtual AttrKind attr_kind(std::string_view path) const = 0;
  /// Whether calling the submodule could have an effect (Node::is_impure).
  virtual bool module_is_impure(std::string_view path, bool impure_random) const = 0;
  /// The graph of a nested GraphModule at that path, or null.
  virtual Graph* nested_graph(std::string_view path) const = 0;
  /// Why the arguments of a call_module node do not fit the module it calls; empty if they do, or
  /// if that is not known.
  virtual std::string call_problem(const Node& node) const;
};

/// The nodes of a graph in execution order: a live, bidirectional view.
/// Inserting and erasing while iterating is safe, also erasing the current node: iteration goes on
/// with what followed it. A node inserted right after the current one is visited, one before is
/// not.
class NodeRange {
 public:
  template <bool kReverse>
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using pointer = Node*;
    using reference = Node&;

    Iterator() = default;
    explicit Iterator(Node* node) : node_(node) {}
    Node& operator*() const { return *node_; }
    Node* operator->() const { return node_; }
    Iterator& operator++() {
      node_ = kReverse ? before(node_) : after(node_);
      return *this;
    }
    Iterator& operator--() {
      node_ = kReverse ? after(node_) : before(node_);
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    Iterator operator--(int) {
      Iterator old = *this;
      --*this;
      return old;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    Node* node_ = nullptr;
  };
  using iterator = Iterator<false>;
  using reverse_iterator = Iterator<true>;

  NodeRange(Node* root, std::size_t size) : root_(root), size_(size) {}
  iterator begin() const { return iterator(after(root_)); }
  iterator end() const { return iterator(root_); }
  reverse_iterator rbegin() const { return reverse_iterator(before(root_)); }
  reverse_iterator rend() const { return reverse_iterator(root_); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Node& front() const { return *after(root_); }
  Node& back() const { return *before(root_); }
  std::vector<Node*> to_vector() const;

 private:
  // The links of erased nodes stay, so that an iterator standing on one finds its way back.
  static Node* after(Node* node) {
    do node = node->next_;
    while (node->erased_);
    return node;
  }
  static Node* before(Node* node) {
    do node = node->prev_;
    while (node->erased_);
    return node;
  }

  Node* root_;
  std::size_t size_;
};

/// Restores the insertion point of a graph when it goes out of scope, also on an exception.
class [[nodiscard]] InsertPointGuard {
 public:
  InsertPointGuard(InsertPointGuard&& other) noexcept;
  InsertPointGuard& operator=(InsertPointGuard&&) = delete;
  ~InsertPointGuard();

 private:
  friend class Graph;
  InsertPointGuard(Graph& graph, Node* previous, bool previous_after)
      : graph_(&graph), previous_(previous), previous_after_(previous_after) {}

  Graph* graph_;
  Node* previous_;
  bool previous_after_;
};

/// The languages that a graph can be written in.
enum class CodeLanguage : std::uint8_t { kCpp, kPython };

/// Rewrites the lines of a generated function body: one statement each, without indentation.
using CodeTransformer =
    std::function<std::vector<std::string>(std::vector<std::string> body, CodeLanguage language)>;

/// Restores the code transformer of a graph when it goes out of scope, unless keep() was called.
class [[nodiscard]] CodeTransformerGuard {
 public:
  CodeTransformerGuard(CodeTransformerGuard&& other) noexcept;
  CodeTransformerGuard& operator=(CodeTransformerGuard&&) = delete;
  ~CodeTransformerGuard();

  /// Leaves the new transformer in place for good.
  void keep() noexcept { graph_ = nullptr; }

 private:
  friend class Graph;
  CodeTransformerGuard(Graph& graph, CodeTransformer previous)
      : graph_(&graph), previous_(std::move(previous)) {}

  Graph* graph_;
  CodeTransformer previous_;
};

/// From nodes of a source graph to arguments in the destination.
using ValueMap = std::unordered_map<const Node*, Argument>;

struct LintOptions {
  /// Also the rules that torch.fx does not check: placeholders are a prefix with distinct targets,
  /// exactly one output ends the graph, and modules are called with arguments that they take.
  bool strict = false;
};

/// A program: a list of nodes in execution order (torch.fx.Graph). See the contract above.
///
/// Not copyable or movable, since nodes point to their graph: keep it in a shared_ptr (GraphModule
/// does) and copy with clone(). Not synchronised: many threads may read a graph that nobody edits.
/// Memory of erased nodes is kept until the graph is destroyed; clone() compacts.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  NodeRange nodes() const noexcept { return {root_, size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  // --- building, at the insertion point (torch.fx names) ----------------------------------------
  /// Creates a node. The name is derived from `name`, or from the target when that is empty, and
  /// made unique. Amortised O(arguments). Strong guarantee: on error nothing changed. Arguments of
  /// another graph and erased ones are stored; lint reports them.
  /// @throws GraphError kBadTarget when the target's kind does not fit the opcode, kDuplicateKwarg.
  Node& create_node(Opcode op, Target target, Args args = {}, Kwargs kwargs = {},
                    std::string_view name = {}, std::string_view type = {});
  /// By names, as in torch.fx: `create_node("call_function", "torch.add", {a, b})`.
  /// @throws GraphError kBadOpcode
  Node& create_node(std::string_view op, std::string_view target, Args args = {},
                    Kwargs kwargs = {}, std::string_view name = {}, std::string_view type = {});

  Node& placeholder(std::string_view name, std::string_view type = {});
  /// With a default value; a default of None differs from no default.
  Node& placeholder_with_default(std::string_view name, Argument default_value,
                                 std::string_view type = {});
  /// @throws GraphError kMissingAttribute when the graph has an owner without that attribute.
  Node& get_attr(std::string_view path, std::string_view type = {});
  Node& call_function(Target function, Args args = {}, Kwargs kwargs = {},
                      std::string_view name = {}, std::string_view type = {});
  Node& call_function(std::string_view function, Args args = {}, Kwargs kwargs = {},
                      std::string_view name = {}, std::string_view type = {}) {
    return call_function(Target::function(function), std::move(args), std::move(kwargs), name,
                         type);
  }
  /// args[0] is the object.
  Node& call_method(std::string_view method, Args args, Kwargs kwargs = {},
                    std::string_view type = {});
  /// @throws GraphError kMissingAttribute when the graph has an owner without that submodule.
  Node& call_module(std::string_view path, Args args = {}, Kwargs kwargs = {},
                    std::string_view type = {});
  Node& output(Argument result, std::string_view type = {});

  /// Sets where new nodes go, until the guard dies. Several nodes made under one guard keep their
  /// order before `node`, and come out reversed after it (each goes right after `node`), as in
  /// torch.fx.
  /// @throws GraphError kForeignNode for a node of another graph, kErasedNode for an erased one.
  InsertPointGuard inserting_before(Node& node);
  InsertPointGuard inserting_after(Node& node);
  /// The start (end) of the graph. Several nodes made under one inserting_at_start come out
  /// reversed.
  InsertPointGuard inserting_at_start();
  InsertPointGuard inserting_at_end();

  /// Copies `node` of this or another graph to the insertion point; arguments go through `map`.
  /// Without a map, arguments are kept as they are (lint reports foreign ones).
  Node& node_copy(const Node& node, const std::function<Argument(Node&)>& map = {});
  /// Copies all nodes of `source` up to its first output, except those already in `map`, and fills
  /// `map`. Returns the mapped output value, or none when `source` has no output. O(nodes).
  /// @throws GraphError kCopyUnmapped when `source` is not topologically ordered.
  Argument graph_copy(const Graph& source, ValueMap& map);
  /// A deep copy: same names, order, types and meta; no owner. O(nodes).
  std::shared_ptr<Graph> clone(ValueMap* map = nullptr) const;

  // --- editing ----------------------------------------------------------------------------------
  /// Removes a node that has no users.
  /// @throws GraphError kEraseWithUsers with the users, kForeignNode, kErasedNode on a second
  /// erase.
  void erase_node(Node& node);
  /// Removes nodes without users and without effects, from the end; also in nested graphs. The node
  /// is kept when `is_impure` (default: Node::is_impure) says so. Lints first. Whether anything
  /// changed.
  bool eliminate_dead_code(const std::function<bool(const Node&)>& is_impure = {});

  // --- asking -----------------------------------------------------------------------------------
  /// Checks the contract; each rule has its own code (kLint...). O(nodes + arguments).
  /// @throws LintError
  void lint(const LintOptions& options = {}) const;
  /// The last node. @throws GraphError kNoOutput if that is no output.
  Node& output_node() const;
  /// Nodes of that opcode (and target) in graph order. O(nodes).
  std::vector<Node*> find_nodes(Opcode op, std::optional<Target> target = {}) const;
  /// call_function nodes for which Node::calls(name). O(nodes).
  std::vector<Node*> find_calls(std::string_view name) const;
  /// The node of that name, or null. O(1).
  Node* find_node(std::string_view name) const noexcept;
  /// The placeholders, in order.
  std::vector<Node*> placeholders() const;
  /// More than the id of every node made so far: the size of a table that is indexed by Node::id().
  std::uint32_t id_bound() const noexcept { return next_id_; }

  /// The module that resolves attribute paths; null if none.
  GraphOwner* owner() const noexcept { return owner_; }
  void set_owner(GraphOwner* owner) noexcept { owner_ = owner; }

  // --- text -------------------------------------------------------------------------------------
  /// torch.fx's str(graph): "graph():" and one format_node line a node.
  std::string str() const;
  /// torch.fx's print_tabular: opcode, name, target, args, kwargs.
  std::string tabular() const;
  void print_tabular() const;
  void print_tabular(std::ostream& out) const;

  /// Has `make_transformer(current)` rewrite the body of every function that is generated from this
  /// graph, in C++ and in Python, until the guard dies; `current` is the transformer so far, empty
  /// if none, for the new one to call. Copies of the graph keep it. GraphModules run the graph, not
  /// its code, so that this changes what is printed and written to files only.
  CodeTransformerGuard on_generate_code(
      const std::function<CodeTransformer(CodeTransformer current)>& make_transformer);
  /// The lines as the code transformer wants them.
  std::vector<std::string> transformed_body(std::vector<std::string> lines,
                                            CodeLanguage language) const;

  /// Structural equality: same nodes in the same order with equal opcode, target, arguments and
  /// type, nodes compared by position. Names and meta do not count. O(nodes + arguments).
  bool same_structure(const Graph& other) const;
  /// A hash that agrees with same_structure; the same in every process. O(nodes + arguments).
  std::uint64_t structural_hash() const;

  /// Counts edits (nodes created, erased, moved; arguments, targets and names set). A GraphModule
  /// compares it to know whether it must be recompiled.
  std::uint64_t version() const noexcept { return version_; }

 private:
  friend class Node;
  friend class InsertPointGuard;
  friend class CodeTransformerGuard;
  friend class GraphSnapshot;
  friend class GraphTestAccess;

  Node* allocate();
  void append_copy(const Node& node, const std::vector<Node*>& copies);
  void insert_before(Node& position, Node& node) noexcept;
  void unlink(Node& node) noexcept;
  InsertPointGuard set_insert_point(Node* node, bool after);
  void check_member(const Node& node, std::string_view what) const;

  struct Slab;
  Node* root_ = nullptr;  // sentinel: root_->next_ is the first node, root_->prev_ the last
  std::size_t size_ = 0;
  std::uint64_t version_ = 0;
  // New nodes go before insert_point_, or right after it when insert_after_.
  Node* insert_point_ = nullptr;
  bool insert_after_ = false;
  GraphOwner* owner_ = nullptr;
  CodeTransformer code_transformer_;
  std::unique_ptr<Namespace> names_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::size_t slab_used_ = 0;
  std::uint32_t next_id_ = 0;
  bool foreign_edges_ = false;  // some edge joins a node of this graph with one of another
};

std::ostream& operator<<(std::ostream& out, const Graph& graph);
std::ostream& operator<<(std::ostream& out, const Node& node);

}  // namespace fx
