#include "fx/ops/hidden_aliases.h"

#include <algorithm>
#include <iterator>

namespace fx {
namespace {

constexpr std::string_view kHiddenAliases[] = {
#define FX_HIDDEN_ALIAS(name) name,
#include "fx/ops/hidden_aliases.def"
#undef FX_HIDDEN_ALIAS
};
static_assert(std::is_sorted(std::begin(kHiddenAliases), std::end(kHiddenAliases)));

}  // namespace

bool has_hidden_alias(std::string_view operator_name) {
  return std::binary_search(std::begin(kHiddenAliases), std::end(kHiddenAliases), operator_name);
}

}  // namespace fx
