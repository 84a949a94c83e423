#include "fx/compile/fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "fx/analysis/alias.h"
#include "fx/analysis/effect_order.h"
#include "fx/compile/lower_node.h"
#include "fx/compile/unsupported.h"
#include "fx/graph/tensor_meta.h"

namespace fx::loops {
namespace {

// The loops that a node needs: all its sizes but 1, and which of them it reduces.
struct Domain {
  Dims dims;
  std::vector<bool> reduced;  // empty: none
};

bool is_call(const Node& node) {
  return node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod;
}

// Code for a kernel takes time that grows faster than the kernel. Many small numbers divide this
// one, so that parts of a long chain that repeats itself are often equal, and equal parts share
// their code.
constexpr std::size_t kMaxGroupSize = 120;

const std::vector<NestedTensorMeta>* item_metas(const Node& node) {
  const auto* meta = node.meta().get<NestedTensorMeta>("tensor_meta");
  return meta ? meta->items() : nullptr;
}

class FusionPlanner {
 public:
  explicit FusionPlanner(GraphModule& module)
      : graph_(module.graph()), aliases_(graph_), effects_(graph_) {}

  FusionPlan plan() {
    for (Node& node : graph_.nodes()) describe(node);
    for (Node& node : graph_.nodes()) assign(node);
    absorb_views();
    collect();
    return std::move(plan_);
  }

 private:
  static constexpr int kNone = -1;

  struct Info {
    bool supported = false;
    bool view = false;         // costs nothing: its argument read through other indices
    bool worthwhile = false;   // a kernel of this alone beats the operator
    bool has_windows = false;  // reads elements several times: who computes them keeps own loops
    bool scatters = false;     // ends its kernel: its result is whole only then
    bool joins_parts = false;  // puts its arguments together: each element comes from one of them
    Domain domain;
    int group = kNone;
  };
  struct Group {
    std::vector<Node*> nodes;
    Domain domain;
    bool closed = false;  // nothing joins any more
    int merged_into = kNone;
  };

  Dims canonical(const Dims& dims) const {
    Dims out;
    for (Dim dim : dims)
      if (const Dim found = lowering_.program().shapes().find(dim); found != kOne)
        out.push_back(found);
    return out;
  }

  // Lowers the node, or makes what it gives an input of the program.
  void describe(Node& node) {
    Info& info = infos_[&node];
    if (node.is_output()) return;
    if (is_call(node)) {
      const std::size_t first = lowering_.program().size();
      try {
        if (writes(node)) throw Unsupported("memory that it reads or makes is written to");
        const NodeExpr& expr = lowering_.lower(node);
        check(node, expr);
        info.supported = true;
        inspect(node, expr, first, info);
        return;
      } catch (const Unsupported& e) {
        plan_.reasons[&node] = e.what();
      }
    } else if (node.op() == Opcode::kCallModule) {
      plan_.reasons[&node] = "the call of a module";
    }
    add_opaque(node);
  }

  // A node whose memory others may write to keeps its place among them.
  bool writes(const Node& node) const {
    if (!aliases_.has_writes()) return false;
    if (aliases_.is_written(node)) return true;
    for (const Node* input : node.all_input_nodes())
      if (aliases_.is_written(*input)) return true;
    return false;
  }

  void check(const Node& node, const NodeExpr& expr) const {
    const auto same = [&](const TensorMeta* known, const Tensor& tensor) {
      if (!known || known->dtype != tensor.type || known->dim() != tensor.dim() ||
          known->device.type() != c10::DeviceType::CPU || known->layout != c10::Layout::Strided)
        throw Unsupported("the example gave a result of another type");
      for (std::size_t d = 0; d < tensor.dims.size(); ++d)
        if (known->shape[d] != lowering_.program().shapes().example(tensor.dims[d]))
          throw Unsupported("the example gave a result of another size");
    };
    if (!expr.is_tuple) return same(tensor_meta(node), expr.tensors[0]);
    const auto* items = item_metas(node);
    if (!items || items->size() != expr.tensors.size())
      throw Unsupported("the example gave another number of results");
    for (std::size_t i = 0; i < items->size(); ++i) same((*items)[i].tensor(), expr.tensors[i]);
  }

  void add_opaque(const Node& node) {
    const auto input = [&](const TensorMeta* tensor) -> std::optional<Tensor> {
      if (!tensor || !is_loop_type(tensor->dtype) ||
          tensor->device.type() != c10::DeviceType::CPU || tensor->layout != c10::Layout::Strided)
        return std::nullopt;
      return lowering_.program().input(tensor->dtype, tensor->shape);
    };
    NodeExpr expr;
    if (const auto* items = item_metas(node)) {
      expr.is_tuple = true;
      for (const NestedTensorMeta& item : *items) {
        const std::optional<Tensor> tensor = input(item.tensor());
        if (!tensor) return;
        expr.tensors.push_back(*tensor);
      }
    } else if (const std::optional<Tensor> tensor = input(tensor_meta(node))) {
      expr.tensors.push_back(*tensor);
    } else if (const auto type = number_type(node)) {
      lowering_.add_number(node, *type);
      return;
    } else {
      return;
    }
    lowering_.set(node, std::move(expr));
  }

  // The domain of the expressions that the node added to the program.
  void inspect(const Node& node, const NodeExpr& expr, std::size_t first, Info& info) {
    const TensorProgram& program = lowering_.program();
    if (node.calls("operator.getitem")) {
      info.view = infos_.at(&node.arg(0).node()).view;
      return;
    }
    std::size_t operations = 0;
    std::size_t conversions = 0;       // of them
    std::vector<const Dims*> divided;  // where something is divided, or a root taken
    bool expensive = false;
    bool faster = false;  // than the operator: in vectors, not element by element
    bool as_good = false;
    bool repeats = false;         // computed elements, as interpolation does
    std::map<ExprId, int> reads;  // through other indices
    std::optional<Domain> reducing;
    for (std::size_t id = first; id < program.size(); ++id) {
      const Expr& e = program[static_cast<ExprId>(id)];
      if (e.kind == Expr::Kind::kPointwise) {
        ++operations;
        conversions += e.op == Op::kCast ? 1 : 0;
        expensive |= e.op >= Op::kExp;
        if (e.op == Op::kDiv || e.op == Op::kSqrt) divided.push_back(&e.dims);
      }
      if (e.kind == Expr::Kind::kPad || e.kind == Expr::Kind::kGather) ++operations;
      if (e.kind == Expr::Kind::kPad || e.kind == Expr::Kind::kView) ++reads[e.args[0]];
      repeats |= e.kind == Expr::Kind::kGather && program[e.args[0]].kind != Expr::Kind::kInput &&
                 elements_of(e) >= 2 * elements_of(program[e.args[0]]);
      info.joins_parts |= e.kind == Expr::Kind::kPad;
      if (e.kind == Expr::Kind::kScan) {
        if (e.in_order && e.reduced.back()) {
          info.supported = false;
          plan_.reasons[&node] = "a scan in order along the innermost dimension";
          return;
        }
        // Sums of adjacent elements take as long as eager's.
        const bool better =
            !e.reduced.back() || (e.reduce != Reduce::kSum && e.reduce != Reduce::kProd);
        faster |= better;
        as_good |= !better;
      }
      const bool is_scatter = e.kind == Expr::Kind::kScatter;
      if (e.kind != Expr::Kind::kReduce && e.kind != Expr::Kind::kScan && !is_scatter) continue;
      ++operations;
      const Expr& arg = program[e.args[is_scatter ? 1 : 0]];
      Domain domain;
      std::vector<bool> reduced = e.reduced;
      if (is_scatter) {
        reduced.assign(arg.dims.size(), true);
        for (const Affine& at : e.at)
          for (const Affine::Term& term : at.terms)
            reduced[static_cast<std::size_t>(term.axis)] = false;
        info.scatters = true;
        // Slices at computed places eager adds and copies in vectors, too.
        for (std::size_t i = 2; i < e.args.size(); ++i)
          if (const Dims& dims = program[e.args[i]].dims; !dims.empty())
            faster |= program.shapes().find(dims.back()) != kOne;
      }
      for (std::size_t d = 0; d < arg.dims.size(); ++d)
        if (const Dim dim = program.shapes().find(arg.dims[d]); dim != kOne) {
          domain.dims.push_back(dim);
          domain.reduced.push_back(reduced[d]);
        }
      if (is_scatter && (domain.reduced.empty() || domain.reduced.back())) {
        info.supported = false;
        plan_.reasons[&node] = "places that may be equal in the innermost dimension";
        return;
      }
      if (reducing && (reducing->dims != domain.dims || reducing->reduced != domain.reduced)) {
        info.supported = false;
        plan_.reasons[&node] = "reductions over different dimensions";
        return;
      }
      reducing = std::move(domain);
    }
    info.has_windows =
        repeats || (operations > 0 && std::any_of(reads.begin(), reads.end(), [](const auto& read) {
                      return read.second > 2;
                    }));
    info.joins_parts &= !info.has_windows;
    // Nothing is computed: a view, a copy, a constant. It is read where it is used, and never a
    // result of a kernel, since it may have to share memory with its argument.
    info.view = operations == 0;
    const UserRange users = node.users();
    if (expr.tensors.empty() ||
        (expr.is_tuple && !std::all_of(users.begin(), users.end(), [](const Node* user) {
           return user->calls("operator.getitem");
         }))) {
      info.supported = false;
      plan_.reasons[&node] = "its results are used as a tuple";
    } else if (reducing) {
      info.domain = *std::move(reducing);
    } else {
      for (const Tensor& tensor : expr.tensors)
        if (Dims dims = canonical(tensor.dims); dims.size() >= info.domain.dims.size())
          info.domain.dims = std::move(dims);
    }
    // What the operator does once is done for each row where the lanes run along it.
    for (const Dims* dims : divided) {
      const Dims few = canonical(*dims);
      as_good |= !few.empty() && few.size() < info.domain.dims.size() &&
                 few.back() == program.shapes().find(info.domain.dims.back());
    }
    as_good |= is_as_good(node);
    // Where all tensors have one dtype the operator converts in vectors, too.
    const std::size_t arithmetic = operations - (has_one_type(node) ? conversions : 0);
    info.worthwhile = faster || (!info.joins_parts && !as_good &&
                                 (arithmetic >= 3 || (expensive && operations >= 2)));
  }

  // In the example.
  std::int64_t elements_of(const Expr& expr) const {
    std::int64_t count = 1;
    for (Dim dim : expr.dims) count *= lowering_.program().shapes().example(dim);
    return count;
  }

  // Operators that `make bench-ops` finds as fast as their kernels, or faster.
  static bool is_as_good(const Node& node) {
    static constexpr std::string_view kNames[] = {"lerp", "round", "special_round", "tril", "triu"};
    std::string_view name = node.target().str();
    if (const std::size_t space = name.find("::"); space != std::string_view::npos)
      name = name.substr(space + 2, name.find('.', space) - space - 2);
    else
      name.remove_prefix(name.rfind('.') + 1);
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
    // Halves that are gathered along short rows.
    const TensorMeta* meta = tensor_meta(node);
    return name.find("upsample") != std::string_view::npos && meta && meta->dim() > 0 &&
           c10::elementSize(meta->dtype) == 2 && meta->stride.back() == 1;
  }

  // Of the node and all tensors that it reads.
  bool has_one_type(const Node& node) const {
    const TensorMeta* result = tensor_meta(node);
    if (!result) return false;
    const std::vector<Node*> inputs = node.all_input_nodes();
    return std::all_of(inputs.begin(), inputs.end(), [&](const Node* input) {
      const TensorMeta* meta = tensor_meta(*input);
      return meta && meta->dtype == result->dtype;
    });
  }

  // --- groups
  // --------------------------------------------------------------------------------------

  int root(int group) const {
    while (group != kNone && groups_[static_cast<std::size_t>(group)].merged_into != kNone)
      group = groups_[static_cast<std::size_t>(group)].merged_into;
    return group;
  }
  int group_of(const Node& node) const { return root(infos_.at(&node).group); }

  // Whether each of the sizes `few` is a product of neighbours in `many`, by the example: a kernel
  // checks it.
  bool merges(const Dims& many, const Dims& few) const {
    const Shapes& shapes = lowering_.program().shapes();
    if (few.size() >= many.size()) return false;
    std::size_t at = 0;
    for (Dim dim : few) {
      std::int64_t product = 1;
      while (product < shapes.example(dim) && at < many.size())
        product *= shapes.example(many[at++]);
      if (product != shapes.example(dim)) return false;
    }
    return at == many.size();
  }

  // The domain of both, or nothing when they do not fit one nest.
  std::optional<Domain> joint(const Domain& a, const Domain& b) const {
    const Shapes& shapes = lowering_.program().shapes();
    const auto kept = [](const Domain& d) {
      Dims out;
      for (std::size_t i = 0; i < d.dims.size(); ++i)
        if (!d.reduced[i]) out.push_back(d.dims[i]);
      return out;
    };
    if (shapes.same(a.dims, b.dims)) {
      if (a.reduced.empty()) return b;
      if (b.reduced.empty() || a.reduced == b.reduced) return a;
      return std::nullopt;
    }
    if (!a.reduced.empty() && b.reduced.empty() && merges(a.dims, b.dims)) return a;
    if (!b.reduced.empty() && a.reduced.empty() && merges(b.dims, a.dims)) return b;
    // Code for one row beside code for its elements.
    if (!a.reduced.empty() && b.reduced.empty() && shapes.same(kept(a), b.dims)) return a;
    if (!b.reduced.empty() && a.reduced.empty() && shapes.same(kept(b), a.dims)) return b;
    return std::nullopt;
  }

  // A group that computes nothing but parts of the result of `node`, each element at most once: it
  // can be computed in the loops of the result.
  bool is_part(int candidate, const Node& node) const {
    return infos_.at(&node).joins_parts && is_only_for(candidate, node);
  }

  // Whether nothing but `node` needs what a group without reductions computes.
  bool is_only_for(int candidate, const Node& node) const {
    const Group& group = groups_[static_cast<std::size_t>(candidate)];
    if (!group.domain.reduced.empty()) return false;
    return std::all_of(group.nodes.begin(), group.nodes.end(), [&](const Node* member) {
      const UserRange users = member->users();
      return std::all_of(users.begin(), users.end(), [&](const Node* user) {
        return user == &node || group_of(*user) == candidate;
      });
    });
  }

  // What must run before `node`: inputs, through views into what they are views of, and effects.
  template <typename Fn>
  void for_each_predecessor(const Node& node, Fn fn) const {
    for (const Node* input : node.all_input_nodes()) fn(*input);
    for (const Node* earlier : effects_.before(node)) fn(*earlier);
  }

  // Whether a path leads from group `target` to one of `starts` (nodes outside of it).
  bool reaches(int target, std::vector<const Node*> starts) const {
    std::unordered_set<const Node*> seen;
    const Node* earliest = groups_[static_cast<std::size_t>(target)].nodes.front();
    while (!starts.empty()) {
      const Node* node = starts.back();
      starts.pop_back();
      if (node->comes_before(*earliest) || !seen.insert(node).second) continue;
      const int group = group_of(*node);
      if (group == target) return true;
      if (group == kNone) {
        for_each_predecessor(*node, [&](const Node& p) { starts.push_back(&p); });
      } else {
        for (const Node* member : groups_[static_cast<std::size_t>(group)].nodes)
          if (seen.insert(member).second || member == node)
            for_each_predecessor(*member, [&](const Node& p) {
              if (group_of(p) != group) starts.push_back(&p);
            });
      }
    }
    return false;
  }

  // The groups that give `node` its arguments, through views that only it reads.
  void producers(const Node& node, std::vector<int>& found,
                 std::vector<const Node*>& outside) const {
    for_each_predecessor(node, [&](const Node& p) {
      const Info& info = infos_.at(&p);
      if (info.supported && info.group == kNone &&
          (info.view ? p.users().size() == 1 : p.calls("operator.getitem")))
        producers(p, found, outside);
      else if (const int group = group_of(p); group != kNone)
        found.push_back(group);
      else
        outside.push_back(&p);
    });
  }

  // Whether group `from` computes what a window of group `to` reads.
  bool windows_between(int from, int to) const {
    const std::vector<Node*>& nodes = groups_[static_cast<std::size_t>(to)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      if (!infos_.at(node).has_windows) return false;
      std::vector<int> found;
      std::vector<const Node*> outside;
      producers(*node, found, outside);
      return std::find(found.begin(), found.end(), from) != found.end();
    });
  }

  void assign(Node& node) {
    Info& info = infos_.at(&node);
    if (!info.supported || info.view || node.calls("operator.getitem")) return;
    std::vector<int> candidates;
    std::vector<const Node*> outside;
    producers(node, candidates, outside);
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    int own = kNone;
    if (info.has_windows) candidates.clear();
    // The latest group first: it is the one whose values are still in cache.
    for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {
      const Group& group = groups_[static_cast<std::size_t>(*it)];
      if (group.closed || (info.scatters && !is_only_for(*it, node))) continue;
      const std::size_t size =
          own == kNone ? 1 : groups_[static_cast<std::size_t>(own)].nodes.size();
      if (group.nodes.size() + size > kMaxGroupSize) continue;
      const Domain& mine =
          own == kNone ? info.domain : groups_[static_cast<std::size_t>(own)].domain;
      std::optional<Domain> domain = joint(group.domain, mine);
      if (!domain && is_part(*it, node)) domain = mine;
      if (!domain || (own != kNone && (windows_between(*it, own) || windows_between(own, *it))))
        continue;
      // No way out of the joined groups and back.
      std::vector<const Node*> starts = outside;
      for (int other : candidates)
        if (root(other) != *it && root(other) != own)
          starts.push_back(groups_[static_cast<std::size_t>(root(other))].nodes.back());
      if (own != kNone) {
        for (const Node* member : groups_[static_cast<std::size_t>(own)].nodes)
          for_each_predecessor(*member, [&](const Node& p) {
            if (group_of(p) != own && group_of(p) != *it) starts.push_back(&p);
          });
        if (reaches(*it, starts)) continue;
        starts.clear();
        for (const Node* member : group.nodes)
          for_each_predecessor(*member, [&](const Node& p) {
            if (group_of(p) != own && group_of(p) != *it) starts.push_back(&p);
          });
        if (reaches(own, starts)) continue;
        join(*it, own, *std::move(domain));
      } else {
        if (reaches(*it, starts)) continue;
        own = *it;
        groups_[static_cast<std::size_t>(own)].domain = *std::move(domain);
        groups_[static_cast<std::size_t>(own)].nodes.push_back(&node);
        info.group = own;
      }
    }
    if (own == kNone) {
      info.group = static_cast<int>(groups_.size());
      groups_.push_back({.nodes = {&node}, .domain = info.domain});
    }
    groups_[static_cast<std::size_t>(info.group)].closed |= info.scatters;
  }

  void join(int from, int into, Domain domain) {
    Group& a = groups_[static_cast<std::size_t>(from)];
    Group& b = groups_[static_cast<std::size_t>(into)];
    std::vector<Node*> nodes;
    std::merge(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
               std::back_inserter(nodes),
               [](const Node* x, const Node* y) { return x->comes_before(*y); });
    b.nodes = std::move(nodes);
    b.domain = std::move(domain);
    a.merged_into = into;
  }

  // Getitems go with the call whose result they take, views with their one user.
  void absorb_views() {
    for (Node& node : graph_.nodes()) {
      Info& info = infos_.at(&node);
      if (!node.calls("operator.getitem") || !info.supported || info.view) continue;
      const Node& tuple = *node.all_input_nodes().front();
      if (const int group = group_of(tuple); group != kNone) add(node, group);
    }
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = *it;
      Info& info = infos_.at(&node);
      if (!info.view || !info.supported || info.group != kNone || node.users().size() != 1)
        continue;
      if (const int group = group_of(**node.users().begin()); group != kNone) add(node, group);
    }
  }

  void add(Node& node, int group) {
    infos_.at(&node).group = group;
    groups_[static_cast<std::size_t>(group)].nodes.push_back(&node);
  }

  void collect() {
    for (Group& group : groups_) {
      if (group.merged_into != kNone) continue;
      std::size_t calls = 0;
      bool worthwhile = false;
      for (const Node* node : group.nodes) {
        const Info& info = infos_.at(node);
        calls += !info.view && !node->calls("operator.getitem") ? 1 : 0;
        worthwhile |= info.worthwhile;
      }
      if (calls < 2 && !worthwhile) {
        for (const Node* node : group.nodes) plan_.reasons[node] = "alone; its operator is as good";
        continue;
      }
      std::sort(group.nodes.begin(), group.nodes.end(),
                [](const Node* a, const Node* b) { return a->comes_before(*b); });
      plan_.groups.push_back(std::move(group.nodes));
    }
  }

  Graph& graph_;
  AliasAnalysis aliases_;
  EffectOrder effects_;
  NodeLowering lowering_;
  std::unordered_map<const Node*, Info> infos_;
  std::vector<Group> groups_;
  FusionPlan plan_;
};

// A view of the first argument that is lowered to other indices, a list of such, or one of that
// list. By the schema: the result may be a view of an argument, and nothing is written.
bool is_lowered_view(const Node& node) {
  if (!is_call(node)) return false;
  if (node.calls("operator.getitem"))
    return node.arg(0).is_node() && !node.arg(0).node().calls("operator.getitem") &&
           is_lowered_view(node.arg(0).node());
  const OpInfo& info = node.op() == Opcode::kCallMethod ? OpInfo::of_method(node.target().str())
                                                        : OpInfo::of(*node.target().function());
  for (const Overload& overload : info.overloads) {
    const auto& returns = overload.handle.schema().returns();
    if (returns.size() == 1 && returns[0].alias_info() && !returns[0].alias_info()->isWrite() &&
        has_lowering(overload))
      return true;
  }
  return false;
}

// Not of memory that is written to: some views are copies, depending on the strides (flatten, to),
// and two copies would part.
void copy_views_for_each_user(Graph& graph) {
  const AliasAnalysis aliases(graph);
  // From the last one, so that chains of views are copied as chains.
  std::vector<Node*> nodes;
  for (Node& node : graph.nodes()) nodes.push_back(&node);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node& node = **it;
    if (node.users().size() < 2 || aliases.is_written(node) || !is_lowered_view(node)) continue;
    const std::vector<Node*> users = node.users().to_vector();
    // The original stays with the output, which wants the view itself, or else with its first user.
    const bool returned =
        std::any_of(users.begin(), users.end(), [](const Node* user) { return user->is_output(); });
    for (std::size_t i = returned ? 0 : 1; i < users.size(); ++i) {
      if (users[i]->is_output()) continue;
      const auto at = graph.inserting_before(*node.next());
      users[i]->replace_input_with(node, graph.node_copy(node));
    }
  }
}

}  // namespace

FusionPlan plan_fusion(GraphModule& module) {
  copy_views_for_each_user(module.graph());
  return FusionPlanner(module).plan();
}

}  // namespace fx::loops
