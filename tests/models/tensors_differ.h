#pragma once

#include <torch/torch.h>

#include <sstream>
#include <string>
#include <vector>

#include "fx/ops/value.h"

namespace fx::zoo {

/// Whether two tensors are the same in dtype, layout, shape and values: within `tolerance`
/// (relative, and 1/100 of it absolute), or, for 0, in value; nan equals nan.
inline bool same(const at::Tensor& a, const at::Tensor& b, double tolerance = 0) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype() || a.layout() != b.layout()) return false;
  const at::Tensor x = a.detach(), y = b.detach();
  if (a.layout() != at::kStrided) return torch::equal(x.to_dense(), y.to_dense());
  return a.numel() == 0 || at::isclose(x, y, tolerance, tolerance / 100, true).all().item<bool>();
}

/// "outputs 1 differ: ... and ..., by up to 0.5", of the first that do; empty if none does.
inline std::string difference(const char* what, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& found, double tolerance = 0) {
  std::ostringstream text;
  if (expected.size() != found.size()) {
    text << "the number of " << what << " is " << found.size() << ", not " << expected.size();
    return text.str();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (same(expected[i], found[i], tolerance)) continue;
    text << what << " " << i << " differ: " << describe(expected[i]) << " and "
         << describe(found[i]);
    if (expected[i].defined() && found[i].defined() && expected[i].sizes() == found[i].sizes() &&
        expected[i].layout() == at::kStrided)
      text << ", by up to "
           << (expected[i].detach().to(at::kDouble) - found[i].detach().to(at::kDouble))
                  .abs()
                  .max()
                  .item<double>();
    return text.str();
  }
  return {};
}

}  // namespace fx::zoo
