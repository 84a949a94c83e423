#include "fx/passes/reinplace.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <unordered_map>

#include "fx/analysis/alias.h"
#include "fx/graph/argument_value.h"
#include "fx/ops/call.h"
#include "fx/ops/op_info.h"
#include "fx/passes/named_arguments.h"
#include "fx/passes/tensor_geometry.h"

namespace fx {
namespace {

// Operators that copy a tensor and write into a view of the copy, and what makes that view.
constexpr std::pair<std::string_view, std::string_view> kScatters[] = {
    {"aten::select_scatter", "aten::select.int"},
    {"aten::slice_scatter", "aten::slice.Tensor"},
    {"aten::diagonal_scatter", "aten::diagonal"},
    {"aten::as_strided_scatter", "aten::as_strided"}};

const Function* view_of_scatter(const Node& node) {
  if (node.op() != Opcode::kCallFunction) return nullptr;
  for (const auto& [scatter, view] : kScatters)
    if (node.target() == scatter) return Function::get(view);
  return nullptr;
}

// The one overload that an operator node means, or null.
const Overload* overload_of(const Node& node) {
  if (node.op() != Opcode::kCallFunction) return nullptr;
  const Function& function = *node.target().function();
  if (function.kind() != FunctionKind::kOperator) return nullptr;
  const OpInfo& info = OpInfo::of(function);
  return info.overloads.size() == 1 ? &info.overloads[0] : nullptr;
}

bool has_aliases(const c10::FunctionSchema& schema) {
  auto any = [](const std::vector<c10::Argument>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(),
                       [](const c10::Argument& argument) { return argument.alias_info(); });
  };
  return any(schema.arguments()) || any(schema.returns());
}

// Whether `inplace` takes what `schema` takes, and writes to its first argument and nothing else.
bool is_twin(const c10::FunctionSchema& schema, const c10::FunctionSchema& inplace) {
  const auto& a = schema.arguments();
  const auto& b = inplace.arguments();
  if (a.empty() || a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (*a[i].type() != *b[i].type() || a[i].kwarg_only() != b[i].kwarg_only()) return false;
    if (a[i].kwarg_only() && a[i].name() != b[i].name()) return false;
    const bool is_written = b[i].alias_info() && b[i].alias_info()->isWrite();
    if (is_written != (i == 0) || (i > 0 && b[i].alias_info())) return false;
  }
  return inplace.returns().size() == 1;
}

// The operator that does in place what `overload` does, or null.
const Function* inplace_twin(const Function& function, const Overload& overload) {
  const c10::FunctionSchema& schema = overload.handle.schema();
  if (has_aliases(schema) || schema.returns().size() != 1 ||
      schema.arguments()[0].type()->kind() != c10::TypeKind::TensorType)
    return nullptr;
  const Function* found = nullptr;
  auto consider = [&](const c10::OperatorHandle& candidate) {
    // Not those that give the tensor another shape or memory instead of writing to it.
    if (!is_twin(schema, candidate.schema()) || candidate.hasTag(at::Tag::inplace_view)) return;
    const std::string& name = candidate.schema().overload_name();
    const Function* twin =
        Function::get(candidate.schema().name() + (name.empty() ? "" : "." + name));
    // The overload of the same name first.
    if (!found || name == schema.overload_name()) found = twin;
  };
  const std::string base = schema.name() + "_";
  if (const auto same = c10::Dispatcher::singleton().findSchema({base, schema.overload_name()}))
    consider(*same);
  if (!found)
    for (const Overload& candidate :
         OpInfo::of_method(std::string(function.base_name()) + "_").overloads)
      if (candidate.handle.schema().name() == base) consider(candidate.handle);
  return found;
}

class Reinplacer {
 public:
  Reinplacer(GraphModule& module, const Values& inputs, const ReinplaceOptions& options)
      : graph_(module.graph()), options_(options), aliases_(graph_) {
    {
      // Outside training nobody asks for gradients of what is computed.
      const at::AutoGradMode grad(at::GradMode::is_enabled() && module.is_training());
      geometry_ = record_geometry(module, inputs);
    }
    parent_.resize(aliases_.num_sets());
    std::iota(parent_.begin(), parent_.end(), 0);
    is_foreign_.resize(aliases_.num_sets());
    members_.resize(aliases_.num_sets());
    for (Node& node : graph_.nodes()) {
      if (node.is_output()) continue;
      const AliasAnalysis::Set set = aliases_.set_of(node);
      members_[set].push_back(&node);
      if (aliases_.is_external(node) || may_keep_its_result(node)) is_foreign_[set] = true;
    }
  }

  PassResult run() {
    PassResult result;
    for (Node* node : graph_.nodes().to_vector())
      if (scatter(*node) || in_place(*node)) ++result.rewrites;
    result.changed = result.rewrites > 0;
    return result;
  }

 private:
  using Set = AliasAnalysis::Set;

  // Whether somebody behind the graph's back may hold the memory of the result.
  static bool may_keep_its_result(const Node& node) {
    if (node.op() == Opcode::kCallModule) return true;
    return node.op() == Opcode::kCallFunction &&
           node.target().function()->kind() == FunctionKind::kWrapped;
  }

  Set find(Set set) {
    while (parent_[set] != set) set = parent_[set] = parent_[parent_[set]];
    return set;
  }
  Set set_of(const Node& node) { return find(aliases_.set_of(node)); }
  void unite(const Node& a, const Node& b) {
    const Set x = set_of(a);
    const Set y = set_of(b);
    if (x == y) return;
    parent_[y] = x;
    is_foreign_[x] = is_foreign_[x] || is_foreign_[y];
    members_[x].insert(members_[x].end(), members_[y].begin(), members_[y].end());
  }

  const TensorGeometry* geometry_of(const Node& node) const {
    const auto& geometry = geometry_[node.id()];
    return geometry ? &*geometry : nullptr;
  }

  // The node whose tensor this one returns after it was written to.
  const Node& same_tensor(const Node& node) const {
    const auto found = written_.find(&node);
    return found == written_.end() ? node : *found->second;
  }

  // Whether `view` makes the view of `base` that `scatter` would write to.
  bool is_view_of(const Node& view, const Node& base, const Node& scatter) const {
    if (view.op() == Opcode::kCallFunction &&
        view.target().function() == view_of_scatter(scatter) && view.num_args() > 0 &&
        view.args()[0].is_node() && &same_tensor(view.args()[0].node()) == &same_tensor(base)) {
      const auto a = NamedArguments::of(view);
      const auto b = NamedArguments::of(scatter);
      if (a && b &&
          std::equal(a->values().begin() + 1, a->values().end(), b->values().begin() + 2,
                     b->values().end()))
        return true;
    }
    if (!options_.static_shapes) return false;
    const auto wanted = view_geometry(base, scatter);
    const TensorGeometry* found = geometry_of(view);
    const TensorGeometry* of_base = geometry_of(base);
    return wanted && found && of_base && found->storage == of_base->storage &&
           found->offset == wanted->offset && found->sizes == wanted->sizes &&
           found->strides == wanted->strides && found->dtype == wanted->dtype;
  }

  // Where the view of `base` lies that `scatter` would write to; nothing if an argument is no
  // literal.
  std::optional<TensorGeometry> view_geometry(const Node& base, const Node& scatter) const {
    const TensorGeometry* of_base = geometry_of(base);
    if (!of_base) return std::nullopt;
    Values args{Value(of_base->meta_tensor())};
    for (std::size_t i = 2; i < scatter.num_args(); ++i) {
      if (scatter.args()[i].has_nodes()) return std::nullopt;
      args.push_back(value_of(scatter.args()[i]));
    }
    KwValues kwargs;
    for (const KwArg& kwarg : scatter.kwargs()) {
      if (kwarg.value.has_nodes()) return std::nullopt;
      kwargs.push_back({kwarg.key, value_of(kwarg.value)});
    }
    try {
      return TensorGeometry::of(
          call(*view_of_scatter(scatter), std::move(args), std::move(kwargs)));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  // Whether `user` copies `member` but for a part that the memory of `value` lies in: what is
  // written to `value` makes no difference to it.
  bool overwrites(const Node& user, const Node& member, const Node& value) const {
    if (!view_of_scatter(user) || user.num_args() < 2 || user.args()[0].node_or_null() != &member)
      return false;
    for (std::size_t i = 1; i < user.num_args(); ++i)
      if (user.args()[i].node_or_null() == &member) return false;
    // `value`, or what it is a part of.
    for (const Node* view = &same_tensor(value); view;) {
      if (is_view_of(*view, member, user)) return true;
      const Overload* overload = overload_of(*view);
      // as_strided may reach beyond what it is called on.
      if (!overload || view->calls("aten::as_strided") || view->num_args() == 0) return false;
      const c10::FunctionSchema& schema = overload->handle.schema();
      const c10::AliasInfo* alias =
          schema.arguments().empty() ? nullptr : schema.arguments()[0].alias_info();
      const Node* base = view->args()[0].node_or_null();
      if (!alias || alias->isWrite() || schema.returns().size() != 1 || !base) return false;
      view = &same_tensor(*base);
    }
    return false;
  }

  // Whether anything behind `node` could see what is written to the memory of `value`.
  bool is_read_behind(const Node& node, const Node& value) {
    const Set set = set_of(value);
    for (const Node* member : members_[set]) {
      if (member->is_erased()) continue;
      for (const Node* user : member->users()) {
        if (user == &node || !node.comes_before(*user)) continue;
        if (user->is_output()) return true;
        if (overwrites(*user, *member, value)) continue;
        // Another view alone reads nothing; who reads that is asked as well.
        if (set_of(*user) == set && aliases_.writes(*user).empty() && !view_of_scatter(*user))
          continue;
        return true;
      }
    }
    return false;
  }

  // A part of a list of views: autograd refuses to have it written to.
  bool is_one_of_several_views(const Node& node) const {
    const Node* list = node.num_args() > 0 ? node.args()[0].node_or_null() : nullptr;
    const TensorGeometry* own = geometry_of(node);
    if (!node.calls("operator.getitem") || !list || !own) return false;
    for (const Node* input : list->all_input_nodes())
      if (const TensorGeometry* geometry = geometry_of(*input);
          geometry && geometry->storage == own->storage)
        return true;
    return false;
  }

  // Whether anybody asks where in its storage the value of `node`, or a view of it, begins.
  bool is_offset_read(const Node& node) {
    for (const Node* member : members_[set_of(node)])
      for (const Node* user : member->users()) {
        const std::string& target = user->target().str();
        if (target.find("as_strided") != std::string::npos ||
            target.find("storage_offset") != std::string::npos)
          return true;
      }
    return false;
  }

  // Whether only the elements of the value of `node` count: it is copied into something else.
  static bool is_only_scattered(const Node& node) {
    return std::ranges::all_of(node.users(), [&](const Node* user) {
      if (!view_of_scatter(*user) || user->num_args() < 2) return false;
      return user->args()[0].node_or_null() != &node && user->args()[1].node_or_null() == &node;
    });
  }

  // Whether `node`, which gives a changed copy of `value`, may write to `value` instead.
  bool may_write(const Node& node, const Node& value) {
    const TensorGeometry* from = geometry_of(value);
    const TensorGeometry* to = geometry_of(node);
    if (!from || !to || !from->is_non_overlapping()) return false;
    if (from->dtype != to->dtype || from->device != to->device || from->sizes != to->sizes)
      return false;
    if (from->strides != to->strides && !is_only_scattered(node)) return false;
    if (from->requires_grad || to->requires_grad) return false;
    if (is_foreign_[set_of(value)] || set_of(node) == set_of(value)) return false;
    if (is_one_of_several_views(same_tensor(value))) return false;
    if (from->offset != to->offset && is_offset_read(node)) return false;
    return !is_read_behind(node, value);
  }

  bool shares_with_another_argument(const Node& node, const Node& value) {
    std::size_t count = 0;
    auto look = [&](const Node& input) { count += set_of(input) == set_of(value); };
    for (const Argument& arg : node.args()) arg.for_each_node(look);
    for (const KwArg& kwarg : node.kwargs()) kwarg.value.for_each_node(look);
    return count > 1;
  }

  bool in_place(Node& node) {
    const Overload* overload = overload_of(node);
    if (!overload || overload->mutates || node.num_users() == 0 || node.num_args() == 0)
      return false;
    const Node* value = node.args()[0].node_or_null();
    const Function* twin = value ? inplace_twin(*node.target().function(), *overload) : nullptr;
    if (!twin || shares_with_another_argument(node, *value) || !may_write(node, *value))
      return false;
    node.set_target(Target(twin));
    written_.emplace(&node, &same_tensor(*value));
    unite(*value, node);
    return true;
  }

  bool scatter(Node& node) {
    const Function* view = view_of_scatter(node);
    if (!view || node.num_users() == 0 || node.num_args() < 2) return false;
    Node* base = node.args()[0].node_or_null();
    Node* source = node.args()[1].node_or_null();
    if (!base || !source || !may_write(node, *base)) return false;
    if (!is_view_of(same_tensor(*source), *base, node)) {
      // Memory that overlaps must not be copied.
      const auto geometry = view_geometry(*base, node);
      if (set_of(*source) == set_of(*base) || !geometry || !geometry->is_non_overlapping())
        return false;
      const auto before = graph_.inserting_before(node);
      Args args(node.args().begin(), node.args().end());
      args.erase(args.begin() + 1);
      Node& slice = graph_.call_function(Target(view), std::move(args),
                                         Kwargs(node.kwargs().begin(), node.kwargs().end()));
      graph_.call_function("aten::copy_", {slice, *source});
    }
    unite(*base, node);
    node.replace_all_uses_with(*base);
    graph_.erase_node(node);
    return true;
  }

  Graph& graph_;
  const ReinplaceOptions& options_;
  const AliasAnalysis aliases_;
  std::vector<std::optional<TensorGeometry>> geometry_;  // by node id
  std::vector<Set> parent_;                              // union-find over sets of aliases_
  std::vector<bool> is_foreign_;                         // by set: may be held from outside
  std::vector<std::vector<Node*>> members_;              // by set
  // In-place calls and the node whose tensor they return.
  std::unordered_map<const Node*, const Node*> written_;
};

}  // namespace

PassResult reinplace(GraphModule& module, const Values& example_inputs,
                     const ReinplaceOptions& options) {
  // What an operator behind writes in place may be what kept one before from doing so.
  PassResult all;
  for (;;) {
    const PassResult round = Reinplacer(module, example_inputs, options).run();
    if (!round.changed) return all;
    all.changed = true;
    all.rewrites += round.rewrites;
  }
}

}  // namespace fx
