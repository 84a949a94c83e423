#pragma once

#include <functional>
#include <memory>

#include "fx/passes/pass.h"

namespace fx {

/// The module to take the place of `module`, or null to keep it.
using ModuleReplacement =
    std::function<std::shared_ptr<torch::nn::Module>(torch::nn::Module& module)>;

/// Replaces the modules that the graph calls. Each is asked about once, so that a module which is
/// called several times, or by several paths, stays one. New modules stand under the old paths, or
/// under paths of their own where those belong to a module that may be shared with the original
/// model. O(nodes). rewrites: modules replaced.
PassResult replace_modules(GraphModule& module, const ModuleReplacement& replacement);

/// Replaces all modules of class From: `replace_modules<torch::nn::ReLUImpl>(gm, [](auto&) {
/// return std::make_shared<torch::nn::GELUImpl>(); })`.
template <typename From, typename Make>
PassResult replace_modules(GraphModule& module, Make make) {
  return replace_modules(module,
                         [&make](torch::nn::Module& old) -> std::shared_ptr<torch::nn::Module> {
                           auto* found = dynamic_cast<From*>(&old);
                           return found ? make(*found) : nullptr;
                         });
}

}  // namespace fx
