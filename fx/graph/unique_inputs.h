#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "fx/graph/argument.h"

namespace fx::detail {

/// The nodes in the arguments of a node, each once, in order of first use: positional arguments
/// first, nested ones depth first. O(arguments).
class UniqueInputs {
 public:
  UniqueInputs(std::span<const Argument> args, std::span<const KwArg> kwargs) {
    auto add = [this](Node& input) { this->add(input); };
    for (const Argument& arg : args) arg.for_each_node(add);
    for (const KwArg& kwarg : kwargs) kwarg.value.for_each_node(add);
  }

  std::span<Node* const> view() const {
    return many_ ? std::span<Node* const>(many_->nodes) : std::span<Node* const>(few_, count_);
  }

 private:
  void add(Node& input) {
    // Nearly all nodes have few inputs: those are compared one by one, without memory.
    if (!many_) {
      if (std::find(few_, few_ + count_, &input) != few_ + count_) return;
      if (count_ < kFew) {
        few_[count_++] = &input;
        return;
      }
      many_ = std::make_unique<Many>();
      many_->nodes.assign(few_, few_ + count_);
      many_->seen.insert(few_, few_ + count_);
    }
    if (many_->seen.insert(&input).second) many_->nodes.push_back(&input);
  }

  struct Many {
    std::vector<Node*> nodes;
    std::unordered_set<Node*> seen;
  };

  static constexpr std::size_t kFew = 16;
  Node* few_[kFew];
  std::size_t count_ = 0;
  std::unique_ptr<Many> many_;
};

}  // namespace fx::detail
