#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/compile/eager_check.h"
#include "tests/random/choices.h"

/// Random arguments for any operator of the table of lowerings.
namespace fx::loops {

class ArgMaker {
 public:
  /// @param elements of a tensor, about; 0: a few, of which some are special values.
  explicit ArgMaker(std::uint64_t seed, std::int64_t elements = 0)
      : choices_(seed), elements_(elements) {}

  /// All arguments of the schema. Most calls are valid, some are not: eager says so then.
  Stack make(const Overload& overload);

  /// Random elements, a part of them special values.
  at::Tensor tensor(c10::ScalarType type, const std::vector<std::int64_t>& sizes);

 private:
  using Sizes = std::vector<std::int64_t>;

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(choices_.below(static_cast<std::size_t>(n)));
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(choices_.bits() >> 11) * 0x1p-53; }
  bool chance(double p) { return uniform() < p; }
  /// About normal: a sum of twelve.
  double normal(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return deviation * sum;
  }
  void shuffle(std::vector<std::int64_t>& values) {
    for (std::size_t n = values.size(); n > 1; --n)
      std::swap(values[n - 1], values[choices_.below(n)]);
  }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

  c10::ScalarType dtype();
  Sizes base_sizes();
  /// Of about `elements_` elements.
  Sizes large_sizes();
  /// What broadcasts to `sizes_`.
  Sizes part_of_sizes();
  c10::IValue number(bool floats);
  c10::IValue argument(const ArgRule& rule);
  c10::IValue named(const std::string& name, Conversion conversion, bool& known);
  c10::IValue dim_list();
  /// Of operators that read elements elsewhere; None for what they have not.
  c10::IValue of_index(const std::string& name, Conversion conversion);
  /// Of interpolation.
  c10::IValue of_upsample(const std::string& name, bool& known);
  c10::IValue tensor_list(bool optional);
  at::Tensor indices(std::int64_t size, const Sizes& sizes);
  c10::IValue new_sizes(const std::string& op);
  at::Tensor tensor_argument(const ArgRule& rule);
  at::Tensor value_of_type(c10::ScalarType type, const Sizes& sizes);
  at::Tensor probabilities(c10::ScalarType type, const Sizes& sizes);
  Sizes parameter_sizes() const;

  fuzz::Choices choices_;
  std::int64_t elements_;
  // The call that is being made.
  std::string op_;  // "add"
  c10::ScalarType type_ = c10::ScalarType::Float;
  Sizes sizes_;
  at::Tensor first_;      // the first tensor argument
  Sizes source_;          // of movedim
  Sizes index_sizes_;     // of an index, or of what it chooses
  std::int64_t dim_ = 0;  // the last one made
  std::int64_t normalized_ = 1;
  double factor_ = 1;       // of an interpolation, whose result has other sizes
  bool by_scales_ = false;  // which are all that is given
  bool tame_ = false;       // no special values
  bool no_lowest_ = false;  // of integers
};

}  // namespace fx::loops
