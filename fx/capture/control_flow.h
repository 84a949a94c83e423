#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

/// What `on_true` gives for `operands` if the predicate holds, else what `on_false` gives
/// (torch.cond). The graphs take as many inputs as there are operands and give as many results,
/// which are new tensors.
///
/// With real tensors the chosen graph runs at once. With proxies of a symbolic trace (they convert
/// to tensors) the call is recorded whole, as torch.ops.higher_order.cond; both graphs have to be
/// submodules of the traced root, and what they read besides has to be passed as operands:
///
///     struct Net : torch::nn::Module {
///       Net() {
///         large = register_module("large", fx::symbolic_trace([](auto x) { return x.cos(); }));
///         small = register_module("small", fx::symbolic_trace([](auto x) { return x.sin(); }));
///       }
///       at::Tensor forward(at::Tensor x) { return fx::cond(x.sum() > 0, large, small, {x})[0]; }
///       std::shared_ptr<fx::GraphModule> large, small;
///     };
///
/// make_fx records the operators of the branch that runs, and lists the predicate's value as an
/// assumption.
/// @param predicate one element.
/// @throws RunError kWrongType for results that share memory with operands, or for another
///   predicate; TraceError kUnknownModule for graphs that the root does not have.
std::vector<at::Tensor> cond(const at::Tensor& predicate,
                             const std::shared_ptr<GraphModule>& on_true,
                             const std::shared_ptr<GraphModule>& on_false,
                             const std::vector<at::Tensor>& operands);

/// Applies `body` to the carried tensors as long as `condition` gives true for them, and gives the
/// last ones, copies if there was no step (torch.while_loop). Both graphs take the carried tensors,
/// then the additional ones; `condition` gives one bool of rank 0, `body` as many new tensors as
/// are carried, of the same dtypes and ranks. Recorded as cond is.
/// @throws as cond; RunError kCancelled under a StopScope.
std::vector<at::Tensor> while_loop(const std::shared_ptr<GraphModule>& condition,
                                   const std::shared_ptr<GraphModule>& body,
                                   const std::vector<at::Tensor>& carried,
                                   const std::vector<at::Tensor>& additional = {});

}  // namespace fx
