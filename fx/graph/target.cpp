#include "fx/graph/target.h"

#include <array>

namespace fx {
namespace {
constexpr std::array<std::string_view, 6> kOpcodeNames = {
#define FX_OPCODE(enumerator, name) #name,
#include "fx/graph/opcodes.def"
#undef FX_OPCODE
};
}  // namespace

std::string_view opcode_name(Opcode op) {
  auto index = static_cast<std::size_t>(op);
  return index < kOpcodeNames.size() ? kOpcodeNames[index] : "<illegal opcode>";
}

std::optional<Opcode> opcode_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kOpcodeNames.size(); ++i)
    if (kOpcodeNames[i] == name) return static_cast<Opcode>(i);
  return std::nullopt;
}

}  // namespace fx
