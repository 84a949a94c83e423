#include "fx/graph/tensor_type.h"

#include <algorithm>

namespace fx {

std::string TensorType::to_string() const {
  if (is_dyn()) return "Dyn";
  std::string out = "TensorType[";
  for (std::size_t i = 0; i < dims_->size(); ++i) {
    const Dim& dim = (*dims_)[i];
    out += (i ? ", " : "") + (dim ? std::to_string(*dim) : std::string("Dyn"));
  }
  return out + "]";
}

bool is_consistent(const TensorType& a, const TensorType& b) {
  if (a.is_dyn() || b.is_dyn()) return true;
  return std::ranges::equal(
      a.dims(), b.dims(),
      [](const TensorType::Dim& x, const TensorType::Dim& y) { return !x || !y || *x == *y; });
}

bool is_more_precise(const TensorType& a, const TensorType& b) {
  if (b.is_dyn()) return true;
  if (a.is_dyn()) return false;
  return std::ranges::equal(
      a.dims(), b.dims(),
      [](const TensorType::Dim& x, const TensorType::Dim& y) { return !y || x == y; });
}

std::pair<TensorType, TensorType> broadcast_types(const TensorType& a, const TensorType& b) {
  if (a.is_dyn() || b.is_dyn()) return {a, b};
  std::vector<TensorType::Dim> left = a.dims(), right = b.dims();
  auto& shorter = left.size() < right.size() ? left : right;
  shorter.insert(shorter.begin(), std::max(left.size(), right.size()) - shorter.size(), 1);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 1)
      left[i] = right[i];
    else if (right[i] == 1)
      right[i] = left[i];
  }
  return {TensorType::of(std::move(left)), TensorType::of(std::move(right))};
}

}  // namespace fx
