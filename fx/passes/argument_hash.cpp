#include "fx/passes/argument_hash.h"

#include <bit>

#include "fx/base/hash.h"

namespace fx {
namespace {

void add(Hasher& hash, const Argument& argument) {
  using Kind = Argument::Kind;
  hash.add(static_cast<std::uint64_t>(argument.kind()));
  switch (argument.kind()) {
    case Kind::kNone:
    case Kind::kEllipsis:
      return;
    case Kind::kBool:
      return hash.add(std::uint64_t{argument.to_bool()});
    case Kind::kInt:
      return hash.add(static_cast<std::uint64_t>(argument.to_int()));
    case Kind::kFloat:
      return hash.add(std::bit_cast<std::uint64_t>(argument.to_double()));
    case Kind::kDtype:
      return hash.add(static_cast<std::uint64_t>(argument.to_dtype()));
    case Kind::kLayout:
      return hash.add(static_cast<std::uint64_t>(argument.to_layout()));
    case Kind::kMemoryFormat:
      return hash.add(static_cast<std::uint64_t>(argument.to_memory_format()));
    case Kind::kNode:
      return hash.add(std::bit_cast<std::uintptr_t>(&argument.node()));
    case Kind::kString:
      return hash.add(std::string_view(argument.to_string()));
    case Kind::kDevice:
    case Kind::kComplex:
      return hash.add(std::string_view(repr(argument)));
    case Kind::kDict:
      for (const DictItem& item : argument.dict_items()) {
        add(hash, item.first);
        add(hash, item.second);
      }
      return hash.add(std::uint64_t{argument.dict_items().size()});
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSlice:
      for (const Argument& item : argument.items()) add(hash, item);
      return hash.add(std::uint64_t{argument.items().size()});
  }
}

}  // namespace

std::uint64_t argument_hash(const Argument& argument) {
  Hasher hash;
  add(hash, argument);
  return hash.value();
}

}  // namespace fx
