#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fx/io/safetensors.h"
#include "fx/ops/value.h"

/// Samples of PyTorch's operator database, as scripts/export_opinfo.py writes them.
namespace fx::opinfo {

/// The tensors of a file of samples.
class Storages {
 public:
  explicit Storages(const std::string& path);
  /// Tensors with the values and strides that the file has, in memory of their own; those that
  /// shared some in Python do so again.
  Values make(const nlohmann::json& items) const;

 private:
  std::map<std::string, at::Tensor> bytes_;
};

/// One call of an operator: graphs for it, and what goes in and comes out.
struct Sample {
  Sample(const nlohmann::json& line, const Storages& storages);

  Values inputs() const { return storages->make(input_items); }

  std::string op;                             ///< "nn.functional.relu"
  std::int64_t number;                        ///< in the database's order
  bool judge_values;                          ///< else shape and dtype
  std::map<std::string, std::string> graphs;  ///< in the .fx form; "operators" is always there
  std::string error;                          ///< not empty: the call is refused with this message
  nlohmann::json input_items;
  Values outputs;  ///< the flat tuple that each graph returns
  const Storages* storages;
};

struct Judge {
  bool values = true;            ///< else only kind, dtype, sizes
  bool strides = true;           ///< of dimensions that have some
  const Value* truth = nullptr;  ///< the result in double: as near to it as `wanted` is right, too
  /// Other ways to the same numbers may also be so many times as far from the truth as the number
  /// of `wanted` that is farthest from it.
  double times_as_far = 0;
};

/// Empty, or how a result differs: kind, dtype, sizes, strides, then values: integers exactly, the
/// others within the tolerance of torch.testing.assert_close for the dtype. NaN equals NaN.
std::string difference(const Value& actual, const Value& wanted, const Judge& judge);

}  // namespace fx::opinfo
