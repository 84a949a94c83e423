#include "fx/graph/mutations.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/graph_module.h"

namespace fx {
namespace {

// A tensor of a call, with the bytes of its storage from the first to the last that it uses.
struct Used {
  const void* storage;
  std::int64_t begin, end;
  const std::string* name;
  bool is_input, is_written;
};

class CallMemory {
 public:
  void add(const at::Tensor& tensor, const std::string& name, bool is_input, bool is_written) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return;
    std::int64_t last = 0;
    for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    const auto size = static_cast<std::int64_t>(tensor.element_size());
    const std::int64_t begin = tensor.storage_offset() * size;
    used_.push_back({tensor.storage().unsafeGetStorageImpl(), begin, begin + (last + 1) * size,
                     &name, is_input, is_written});
  }

  void check() {
    std::ranges::sort(used_, [](const Used& a, const Used& b) {
      if (a.storage != b.storage) return std::less<>()(a.storage, b.storage);
      return a.begin < b.begin;
    });
    for (auto first = used_.begin(); first != used_.end(); ++first)
      for (auto other = first + 1;
           other != used_.end() && other->storage == first->storage && other->begin < first->end;
           ++other)
        if ((first->is_written || other->is_written) && (first->is_input || other->is_input))
          fail(*first, *other);
  }

 private:
  [[noreturn]] static void fail(const Used& first, const Used& other) {
    const Used& written = first.is_written ? first : other;
    const Used& reader = first.is_written ? other : first;
    const auto what = [](const Used& used) {
      return (used.is_input ? "input " : "attribute ") + str_repr(*used.name);
    };
    throw RunError(ErrorCode::kSharedMemory,
                   what(written) + " and " + what(reader) +
                       " share memory; found a call of a functional graph, which writes the one at "
                       "its end and reads the other as it came in; wanted tensors of their own");
  }

  std::vector<Used> used_;
};

}  // namespace

void check_mutations(const GraphModule& module, const std::vector<std::string>& names,
                     const Values& args, const KwValues& kwargs) {
  const std::vector<std::string>& written = module.mutations();
  const auto is_written = [&](std::string_view name) {
    return std::ranges::find(written, name) != written.end();
  };
  CallMemory memory;
  bool writes_input = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value* value = find(kwargs, names[i]);
    if (!value && i < args.size()) value = &args[i];
    if (!value || !value->isTensor()) continue;
    const bool writes = is_written(names[i]);
    writes_input |= writes;
    memory.add(value->toTensor(), names[i], /*is_input=*/true, writes);
  }
  for (const std::string& name : written)
    if (std::ranges::find(names, name) == names.end())
      memory.add(module.find_tensor(name), name, /*is_input=*/false, /*is_written=*/true);
  if (writes_input)
    for (const Node& node : module.graph().nodes())
      if (node.op() == Opcode::kGetAttr && !is_written(node.target().str()))
        memory.add(module.find_tensor(node.target().str()), node.target().str(),
                   /*is_input=*/false, /*is_written=*/false);
  memory.check();
}

}  // namespace fx
