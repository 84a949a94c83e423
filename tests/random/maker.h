#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fx/ops/rng_guard.h"
#include "tests/random/program.h"

/// How random programs are made; for the rules alone.
namespace fx::fuzz {

/// A tensor of the program that is being made: the node, and its value in the eager run that goes
/// along. Rules look at dtype, shape and strides, never at the elements.
struct Item {
  Node* node = nullptr;
  at::Tensor tensor;

  std::int64_t dim() const { return tensor.dim(); }
  std::int64_t size(std::int64_t d) const { return tensor.size(d); }
  at::ScalarType dtype() const { return tensor.scalar_type(); }
  bool is_float() const { return tensor.is_floating_point(); }
  bool is_bool() const { return dtype() == at::kBool; }
  bool is_int() const { return at::isIntegralType(dtype(), /*includeBool=*/false); }
  operator Argument() const { return Argument(*node); }
};

using Shape = std::vector<std::int64_t>;
using Wanted = std::function<bool(const Item&)>;
using Eager = std::function<at::Tensor()>;
using EagerList = std::function<std::vector<at::Tensor>()>;
/// Names of one operation: "aten::add.Tensor", "torch.add", "operator.add", ".add" for a method.
using Forms = std::initializer_list<const char*>;

class Maker {
 public:
  Maker(Choices& from, const ProgramOptions& wishes)
      : choices(from), options(wishes), graph_(std::make_shared<Graph>()) {
    module_ = std::make_shared<GraphModule>(graph_);
    module_->eval();
  }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  Program make();

  Choices& choices;
  const ProgramOptions& options;

  // --- operands ---------------------------------------------------------------------------------
  /// One of the later values for which `wanted` holds. Values that are exact only up to rounding
  /// (behind a normalisation that a pass may merge) are given to `inexact` callers alone.
  std::optional<Item> pick(const Wanted& wanted = {}, bool inexact = false);
  bool is_inexact(const Node& node) const { return inexact_.contains(&node); }
  void mark_inexact(const Item& item) { inexact_.insert(item.node); }
  /// An int node with its value.
  std::optional<std::pair<Node*, std::int64_t>> pick_int();
  /// Whether an in-place operator may write to the value.
  bool writable(const Item& item) const;
  /// Keeps in-place operators away from the memory of a value: of an index or a divisor, which must
  /// stay what they are when the operator that needs them is repeated.
  void protect(const Item& item) {
    protected_.insert(item.tensor.storage().unsafeGetStorageImpl());
  }
  at::ScalarType pick_dtype() { return choices.pick(options.dtypes); }
  Shape pick_shape(std::size_t max_dim = 4);
  bool fits(std::int64_t numel) const { return numel <= options.max_numel; }
  /// Random elements, now and then special ones.
  at::Tensor values(at::ScalarType dtype, const Shape& shape, bool special = true);
  /// Weights that 8-bit integers with a scale a channel hold exactly: storing them that way changes
  /// no bit of a result.
  at::Tensor weight(at::ScalarType dtype, const Shape& shape);

  // --- nodes ------------------------------------------------------------------------------------
  /// A call by one of `forms`; `eager` gives its value.
  Item call(Forms forms, Args args, Kwargs kwargs, Eager eager);
  Item call(Forms forms, Args args, Eager eager) {
    return call(forms, std::move(args), {}, std::move(eager));
  }
  /// A call that gives several tensors: getitem nodes for some of them. @param all for all.
  std::vector<Item> call_list(Forms forms, Args args, EagerList eager, bool all = false);
  /// A call that gives an int.
  void call_int(Forms forms, Args args, std::int64_t value);
  /// The same for modules; `module` belongs to the program from now on.
  Item call_module(const std::string& path, const Item& input, Eager eager);
  Item get_attr(const std::string& path, const at::Tensor& tensor);

  // --- attributes of the module that is being made --------------------------------------------
  enum class Kind { kParameter, kBuffer, kConstant };
  /// A new attribute. @return its path
  std::string add_attribute(Kind kind, const at::Tensor& tensor);
  /// Makes a module with parameters by `weight` and buffers of its own, in eval mode.
  template <typename Module, typename Options>
  std::pair<std::string, std::shared_ptr<Module>> add_module(const Options& module_options,
                                                             at::ScalarType dtype) {
    std::shared_ptr<Module> module;
    {
      // What constructors of modules draw must not show in what the program draws.
      const RngGuard guard;
      module = std::make_shared<Module>(module_options);
    }
    return {add_made_module(module, dtype), module};
  }
  std::string add_made_module(std::shared_ptr<torch::nn::Module> module, at::ScalarType dtype);
  /// Tensors by path that get_attr may read.
  const std::vector<std::pair<std::string, at::Tensor>>& attributes() const { return attributes_; }

  /// A call of a GraphModule that is made by rules as well, on `inputs`.
  bool call_nested(const std::vector<Item>& inputs);

  bool writing() const { return writing_; }
  bool drawing() const { return drawing_; }
  bool has_written() const { return program_.writes; }
  void note_write() { program_.writes = true; }
  void note_draw() { program_.draws = true; }
  void note_active_dropout() { program_.active_dropout = program_.draws = true; }

 private:
  struct Repeat {
    Node* node;
    Eager eager;
  };

  Node& emit(Forms forms, Args args, Kwargs kwargs);
  Item add(Node& node, at::Tensor tensor);
  void remember(at::Tensor tensor);
  void add_inputs();
  void apply_rules(int operations);
  bool apply_rule();
  bool repeat();
  Argument results(bool nested);
  Value value_of(const Argument& argument) const;
  void finish();

  // Of the graph that is being made.
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<GraphModule> module_;
  std::vector<Item> items_;
  std::vector<std::pair<Node*, std::int64_t>> ints_;
  std::vector<Repeat> repeats_;
  std::vector<std::pair<std::string, at::Tensor>> attributes_;
  int depth_ = 0;

  // Of the whole program.
  Program program_;
  Values eager_inputs_;                                       // what the eager run works on
  std::vector<std::pair<at::Tensor, at::Tensor>> originals_;  // attributes, and what they held
  std::unordered_set<const Node*> inexact_;
  std::unordered_set<const void*> protected_;
  std::vector<std::int64_t> sizes_;  // of this program
  int counter_ = 0;
  bool writing_ = false;
  bool drawing_ = false;
  const char* rule_ = "";
};

/// A way to go on: adds one or a few nodes, or returns false when nothing fits, adding nothing.
struct Rule {
  const char* name;
  int weight;
  bool (*apply)(Maker&);
};

std::span<const Rule> elementwise_rules();
std::span<const Rule> view_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> module_rules();
std::span<const Rule> factory_rules();
std::span<const Rule> noop_rules();
std::span<const Rule> write_rules();

/// The shape both broadcast to, or nothing.
std::optional<Shape> broadcast(at::IntArrayRef a, at::IntArrayRef b);
std::int64_t numel_of(at::IntArrayRef shape);
inline Argument ints(at::IntArrayRef values) {
  return Argument(std::vector<std::int64_t>(values.begin(), values.end()));
}

}  // namespace fx::fuzz
