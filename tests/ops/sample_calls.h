#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fx/ops/function.h"
#include "fx/ops/op_info.h"
#include "fx/ops/schemas.h"
#include "fx/ops/value.h"

/// Calls of the operators of this process, for tests that go through all of them.
namespace fx {

/// A call that an operator may or may not accept.
struct SampleCall {
  std::string name;  ///< "aten::add.Tensor"
  const Overload* overload = nullptr;
  Values args;  ///< of the required arguments, all positional
};

/// A call for every public operator of ATen that returns tensors, changes none of its arguments and
/// requires nothing but tensors, lists of tensors, numbers and bools: tensors of shape [3, 3]. Not
/// those of other backends and of nested, sparse or quantised tensors.
inline std::vector<SampleCall> sample_calls() {
  std::vector<SampleCall> calls;
  const at::Tensor matrix = at::arange(9, at::kFloat).mul(0.1).add(0.25).view({3, 3});
  for (const std::string& name : registered_operators("aten")) {
    // Private operators, and such that are made for other tensors.
    if (name.find("::_") != std::string::npos || name.find("__") != std::string::npos) continue;
    const auto strange = {
        "cudnn",    "miopen",     "mkldnn",        "mps",      "xpu",         "quantize",
        "fbgemm",   "sparse",     "nested",        "fake_",    "int_repr",    "q_",
        "backward", "crow",       "col_indices",   "ccol",     "row_indices", "coalesce",
        "indices",  "values",     "dense_dim",     "rename",   "align_",      "refine_names",
        "to_",      "data_ptr",   "record_stream", "retain",   "resolve_",    "lift",
        "copy",     "sym_",       "thnn",          "segfault", "set_",        "fused",
        "qscheme",  "dequantize", "from_file"};
    if (std::ranges::any_of(strange,
                            [&](const char* word) { return name.find(word) != std::string::npos; }))
      continue;
    const OpInfo& info = OpInfo::of(*Function::get(name));
    if (info.overloads.size() != 1) continue;
    const Overload& overload = info.overloads[0];
    if (overload.mutates || overload.random) continue;
    const auto& returns = overload.handle.schema().returns();
    if (returns.empty() || std::ranges::any_of(returns, [](const c10::Argument& result) {
          return result.type()->kind() != c10::TypeKind::TensorType;
        }))
      continue;
    SampleCall call{name, &overload, {}};
    bool known = true, any_tensor = false;
    for (const ArgRule& rule : overload.rules) {
      if (rule.has_default) continue;
      known = known && !rule.keyword_only;
      switch (rule.conversion) {
        case Conversion::kTensor:
          call.args.emplace_back(matrix);
          any_tensor = true;
          break;
        case Conversion::kTensorList:
          call.args.emplace_back(c10::List<at::Tensor>({matrix, matrix}));
          any_tensor = true;
          break;
        case Conversion::kOptionalTensor:
          call.args.emplace_back();
          break;
        case Conversion::kInt:
          call.args.emplace_back(1);
          break;
        case Conversion::kScalar:
        case Conversion::kFloat:
          call.args.emplace_back(0.5);
          break;
        case Conversion::kBool:
          call.args.emplace_back(false);
          break;
        case Conversion::kIntList:
          call.args.emplace_back(c10::List<std::int64_t>({1}));
          break;
        default:
          known = false;
      }
    }
    if (known && any_tensor) calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace fx
