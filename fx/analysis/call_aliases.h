#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/graph/node.h"

namespace fx {

/// What a call may do to its arguments, whatever their values are.
struct CallAliases {
  struct Arg {
    bool returned = false;  ///< the result may share memory with it
    bool written = false;
    /// Written only if a flag argument says so (running statistics of batch_norm in training).
    bool written_by_flag = false;
  };
  std::vector<Arg> positional;                     ///< by position; missing ones are neither
  std::vector<std::pair<std::string, Arg>> named;  ///< all arguments by name
  bool returns_any = false;      ///< the result may share memory with any argument
  bool writes_all = false;       ///< may write to anything: arguments, inputs, attributes
  bool returns_list = false;     ///< a list, or several values
  bool list_arithmetic = false;  ///< fresh for tensors, but `a + b` of lists shares their elements

  Arg at(std::size_t index) const noexcept {
    return index < positional.size() ? positional[index] : Arg();
  }
  Arg at(std::string_view name) const noexcept;
};

/// Answers for the targets of call_function and call_method nodes; each is worked out once.
class CallAliasTable {
 public:
  const CallAliases& of(const Node& call);

 private:
  std::unordered_map<const void*, CallAliases> known_;  // by Target::id
};

}  // namespace fx
