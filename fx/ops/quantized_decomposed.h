#pragma once

/// The operators `quantized_decomposed::*` that quantised programs of PT2E call. LibTorch does not
/// have them: Python's torch registers them from Python (torch.ao.quantization.fx._decomposed).
/// Here they are compositions of ATen operators with the same results to the bit.
namespace fx {

/// Registers those that this process does not have yet, for LibTorch as a whole; a process that has
/// Python's keeps them. Called when an operator of that namespace is first looked up. Thread safe;
/// O(1) after the first call.
void register_quantized_decomposed();

}  // namespace fx
