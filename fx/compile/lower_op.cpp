#include "fx/compile/lower_op.h"

#include <algorithm>

#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

constexpr Lowering kLowerings[] = {
#define FX_LOWER(name, function) {name, lower_##function},
#include "fx/compile/lower_table.def"
#undef FX_LOWER
};

constexpr bool less(const Lowering& a, const Lowering& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kLowerings), std::end(kLowerings), less),
              "lower_table.def is not sorted");

}  // namespace

std::span<const Lowering> lowerings() { return kLowerings; }

const Lowering* find_lowering(std::string_view name) {
  const auto* row =
      std::lower_bound(std::begin(kLowerings), std::end(kLowerings), name,
                       [](const Lowering& a, std::string_view b) { return a.name < b; });
  return row != std::end(kLowerings) && row->name == name ? row : nullptr;
}

bool has_lowering(const Overload& overload) { return find_lowering(name_of(overload)) != nullptr; }

std::vector<Tensor> lower_operator(TensorProgram& program, const Overload& overload,
                                   std::span<const LowerArg> args) {
  const Call call(program, overload, args);
  const Lowering* row = find_lowering(call.name());
  if (row == nullptr) throw Unsupported(call.name() + " is not lowered");
  return row->lower(call);
}

}  // namespace fx::loops
