#include "fx/capture/program_isolation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "fx/graph/tensor_copies.h"

namespace fx {

namespace {

// False also where there is no memory to compare: this runs while errors are on their way.
bool has_contents(const at::Tensor& tensor, const at::Tensor& contents) {
  try {
    return tensor.sizes() == contents.sizes() && at::equal(tensor, contents);
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

ProgramIsolation::ProgramIsolation(const torch::nn::Module& root, Of what) {
  std::vector<c10::Device> devices;
  const auto save = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    // Of no data, or of a layout that has no comparison.
    if (tensor.is_meta() || tensor.layout() != at::kStrided) return;
    saved_.emplace_back(tensor, tensor.detach().clone());
    if (std::ranges::find(devices, tensor.device()) == devices.end())
      devices.push_back(tensor.device());
  };
  if (what == Of::kParametersAndBuffers)
    for (const at::Tensor& tensor : root.parameters()) save(tensor);
  for (const at::Tensor& tensor : root.buffers()) save(tensor);
  generators_.emplace(devices);
}

void ProgramIsolation::restore() {
  const at::NoGradGuard no_grad;
  // Compared by contents: batch_norm writes without counting a version. Nor does this: the contents
  // are what they were for a backward that waits.
  for (const auto& [tensor, contents] : saved_)
    if (!has_contents(tensor, contents)) tensor.variable_data().copy_(contents);
  generators_->restore();
}

std::vector<at::Tensor> copies_for_run(const std::vector<at::Tensor>& inputs) {
  TensorCopies copies;
  std::vector<at::Tensor> out;
  for (const at::Tensor& input : inputs) {
    at::Tensor copy = copies(input);
    out.push_back(input.requires_grad() && !input.is_leaf() ? copy.clone() : copy);
  }
  return out;
}

}  // namespace fx
