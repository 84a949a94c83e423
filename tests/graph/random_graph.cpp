#include "tests/graph/random_graph.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tests/random/choices.h"

namespace fx {
namespace {

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> make(int max_nodes) {
    const int count = below(max_nodes + 1);
    for (int i = 0; i < count; ++i) add_node();
    for (int i = below(4); i > 0; --i) erase_one();
    return graph_;
  }

 private:
  int below(int n) { return static_cast<int>(random_.below(static_cast<std::size_t>(n))); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

  std::string text() {
    const int kind = below(6);
    if (kind < 2) return pick({"x", "dim", "a.b.c", "Tensor", "weight_1", "for"});
    if (kind == 2)
      return pick({"", " ", "#", "%x", "a = b", "[target=x]", "'", "\"", "'\"", "\\", "π", "a\nb"});
    std::string out;
    for (int i = below(12); i > 0; --i)
      out += static_cast<char>(kind == 3 ? below(256) : 32 + below(95));
    return out;
  }

  std::string type() {
    if (chance(60)) return {};
    if (chance(60))
      return pick(
          {"Tensor", "torch.Tensor", "Dict[str, List[int]]", "Tuple[int, ...]", "T [num_users"});
    return text();
  }

  std::string function() {
    if (chance(70))
      return pick({"operator.add", "torch.add", "aten::add.Tensor", "aten::relu", "math.sqrt", "f",
                   "my::op.out", "torch.nn.functional.relu"});
    std::string name = text();
    std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) <= ' '; });
    return name.empty() ? "g" : name;
  }

  double number() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    if (chance(50))
      return pick({0.0, -0.0, 1.0, 0.1, 1e16, 1e-5, -2.5, kInf, -kInf, kNan, -kNan, 5e-324, 1e308});
    return std::bit_cast<double>(random_.bits());
  }

  Argument leaf() {
    switch (below(13)) {
      case 0:
        return {};
      case 1:
        return chance(50);
      case 2:
        return below(100) - 50;
      case 3:
        return pick(
            {INT64_MIN, INT64_MAX, std::int64_t{-1}, std::bit_cast<std::int64_t>(random_.bits())});
      case 4:
        return number();
      case 5:
        return std::complex<double>{number(), number()};
      case 6:
        return static_cast<c10::ScalarType>(below(static_cast<int>(c10::ScalarType::NumOptions)));
      case 7:
        return c10::Device(static_cast<c10::DeviceType>(below(21)),
                           static_cast<c10::DeviceIndex>(chance(50) ? -1 : 0));
      case 8:
        return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(below(128)));
      case 9:
        return static_cast<c10::Layout>(below(static_cast<int>(c10::Layout::NumOptions)));
      case 10:
        return static_cast<c10::MemoryFormat>(
            below(static_cast<int>(c10::MemoryFormat::NumOptions)));
      case 11:
        return Argument::ellipsis();
      default:
        return text();
    }
  }

  Argument value(bool nodes, int depth = 0) {
    if (nodes && !made_.empty() && chance(40)) return *random_.pick(made_);
    if (depth > 4 || chance(60)) return leaf();
    std::vector<Argument> items;
    for (int i = below(4); i > 0; --i) items.push_back(value(nodes, depth + 1));
    switch (below(4)) {
      case 0:
        return Argument::list(items);
      case 1:
        return Argument::tuple(items);
      case 2:
        items = {value(nodes, depth + 1), leaf(), leaf()};
        return Argument::slice(items[0], items[1], items[2]);
      default: {
        std::vector<DictItem> dict;
        for (Argument& item : items) dict.emplace_back(value(false, depth + 1), std::move(item));
        return Argument::dict(std::move(dict));
      }
    }
  }

  Args args() {
    Args out;
    for (int i = below(5); i > 0; --i) out.push_back(value(true));
    return out;
  }

  Kwargs kwargs() {
    Kwargs out;
    if (chance(60)) return out;
    for (int i = below(4); i > 0; --i) {
      Symbol key(text());
      if (std::ranges::none_of(out, [&](const KwArg& k) { return k.key == key; }))
        out.emplace_back(key, value(true));
    }
    return out;
  }

  void add_node() {
    const auto op = static_cast<Opcode>(below(6));
    const std::string name = chance(50) ? std::string() : text();
    // Each choice in a statement of its own: compilers evaluate arguments in their own order.
    const std::string label = text(), annotation = type();
    Args positional = args();
    Kwargs keywords = kwargs();
    Node* node;
    if (op == Opcode::kCallFunction)
      node = &graph_->call_function(function(), std::move(positional), std::move(keywords), name,
                                    annotation);
    else if (op == Opcode::kOutput && chance(70))
      node = &graph_->output(value(true), annotation);
    else if (op == Opcode::kPlaceholder && chance(70))
      node = chance(50) ? &graph_->placeholder(label, annotation)
                        : &graph_->placeholder_with_default(label, value(true), annotation);
    else
      node = &graph_->create_node(op, Target::string(label), std::move(positional),
                                  std::move(keywords), name, annotation);
    add_meta(*node);
    made_.push_back(node);
  }

  void add_meta(Node& node) {
    if (!chance(20)) return;
    for (int i = below(4); i > 0; --i) {
      const std::string key = text();
      switch (below(5)) {
        case 0:
          node.meta().set(key, text());
          break;
        case 1:
          node.meta().set(key, chance(50));
          break;
        case 2:
          node.meta().set(key, std::int64_t{below(9)});
          break;
        case 3:
          node.meta().set(key, number());
          break;
        default:
          node.meta().set(key, value(false));
      }
    }
  }

  void erase_one() {
    if (made_.empty()) return;
    Node& node = *random_.pick(made_);
    if (!node.is_erased() && node.num_users() == 0) graph_->erase_node(node);
  }

  fuzz::Choices random_;
  std::shared_ptr<Graph> graph_;
  std::vector<Node*> made_;
};

}  // namespace

std::shared_ptr<Graph> random_graph(std::uint64_t seed, int max_nodes) {
  return Maker(seed).make(max_nodes);
}

}  // namespace fx
