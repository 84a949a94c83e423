#pragma once

#include <string>

#include "fx/graph/graph_module.h"

namespace fx {

/// Writes a small CMake project that does what the module does, on LibTorch alone
/// (torch.fx's GraphModule.to_folder, in C++): `name`.h with the code of cpp_code, weights.bin with
/// the bytes of all parameters, buffers and constants and weights.h that reads them, main.cpp that
/// runs the function on .npy files or on ones, CMakeLists.txt and README.md. The folder is made if
/// it is missing; files of these names are replaced, each as a whole.
/// @param name an identifier: of the header, the namespace and the program.
/// @throws GraphError kBadName, and kNotExpressible or kUnknownModuleType as cpp_code does, before
///   anything is written; ImportError kNotSavable, kWriteFailed.
void to_folder(const GraphModule& module, const std::string& folder,
               const std::string& name = "FxModule");

}  // namespace fx
