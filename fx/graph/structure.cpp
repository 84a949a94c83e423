#include <string_view>
#include <unordered_map>

#include "fx/base/hash.h"
#include "fx/base/text.h"
#include "fx/graph/graph.h"

namespace fx {
namespace {

using Positions = std::unordered_map<const Node*, std::uint64_t>;

Positions positions(const Graph& graph) {
  Positions out;
  out.reserve(graph.size());
  for (const Node& node : graph.nodes()) out.emplace(&node, out.size());
  return out;
}

bool same(const Argument& a, const Argument& b, const Positions& in_a, const Positions& in_b) {
  if (a.kind() != b.kind()) return false;
  if (!a.has_nodes() && !b.has_nodes()) return a == b;
  auto all_same = [&](std::span<const Argument> x, std::span<const Argument> y) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!same(x[i], y[i], in_a, in_b)) return false;
    return true;
  };
  switch (a.kind()) {
    case Argument::Kind::kNode: {
      auto pa = in_a.find(&a.node()), pb = in_b.find(&b.node());
      return pa != in_a.end() && pb != in_b.end() && pa->second == pb->second;
    }
    case Argument::Kind::kDict: {
      auto x = a.dict_items(), y = b.dict_items();
      if (x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!(x[i].first == y[i].first) || !same(x[i].second, y[i].second, in_a, in_b))
          return false;
      return true;
    }
    default:
      return all_same(a.items(), b.items());
  }
}

// Nodes hash by position, everything else by its printed form, which is exact for every kind.
void hash_argument(Hasher& hash, const Argument& argument, const Positions& in) {
  hash.add(static_cast<std::uint64_t>(argument.kind()));
  if (!argument.has_nodes()) return hash.add(repr(argument));
  switch (argument.kind()) {
    case Argument::Kind::kNode: {
      auto found = in.find(&argument.node());
      return hash.add(found == in.end() ? ~std::uint64_t{0} : found->second);
    }
    case Argument::Kind::kDict:
      for (const DictItem& item : argument.dict_items()) {
        hash_argument(hash, item.first, in);
        hash_argument(hash, item.second, in);
      }
      return hash.add(argument.dict_items().size());
    default:
      for (const Argument& item : argument.items()) hash_argument(hash, item, in);
      return hash.add(argument.items().size());
  }
}

}  // namespace

bool Graph::same_structure(const Graph& other) const {
  if (size_ != other.size_) return false;
  const Positions mine = positions(*this);
  const Positions theirs = positions(other);
  auto b = other.nodes().begin();
  for (const Node& a : nodes()) {
    const Node& n = *b++;
    if (a.op() != n.op() || !(a.target() == n.target()) || a.type() != n.type() ||
        a.num_args() != n.num_args() || a.kwargs().size() != n.kwargs().size())
      return false;
    for (std::size_t i = 0; i < a.num_args(); ++i)
      if (!same(a.args()[i], n.args()[i], mine, theirs)) return false;
    for (std::size_t i = 0; i < a.kwargs().size(); ++i)
      if (!(a.kwargs()[i].key == n.kwargs()[i].key) ||
          !same(a.kwargs()[i].value, n.kwargs()[i].value, mine, theirs))
        return false;
  }
  return true;
}

std::uint64_t Graph::structural_hash() const {
  const Positions in = positions(*this);
  Hasher hash;
  for (const Node& node : nodes()) {
    hash.add(opcode_name(node.op()));
    hash.add(node.target().str());
    hash.add(node.type());
    hash.add(node.num_args());
    for (const Argument& arg : node.args()) hash_argument(hash, arg, in);
    hash.add(node.kwargs().size());
    for (const KwArg& kwarg : node.kwargs()) {
      hash.add(kwarg.key.str());
      hash_argument(hash, kwarg.value, in);
    }
  }
  return hash.value();
}

}  // namespace fx
