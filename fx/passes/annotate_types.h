#pragma once

#include <string>

#include "fx/passes/pass.h"

namespace fx {

/// Whether a node is known to give one tensor: by what shape_prop saw, its type, the attribute it
/// reads, the schemas it may mean, or the class of the module that it calls.
bool is_known_tensor(const GraphModule& module, const Node& node);

/// The type of a node's value as Python writes it ("torch.Tensor", "int",
/// "Tuple[torch.Tensor, List[int]]"), as far as schemas, attributes and classes of modules tell;
/// empty if they do not.
std::string schema_type(const GraphModule& module, const Node& node);

struct AnnotateTypesOptions {
  bool annotate_functionals = true;
  bool annotate_modules = true;
  bool annotate_get_attrs = true;
};

/// Gives nodes without a type the one that schema_type knows
/// (torch.fx.experimental.schema_type_annotation.AnnotateTypesWithSchema; that knows Python's
/// annotations, this knows operators too). rewrites: nodes that got a type.
PassResult annotate_types(GraphModule& module, const AnnotateTypesOptions& options = {});

/// Gives each operator.getitem of a node whose type is a Tuple or List the type of that element
/// (torch.fx.passes.annotate_getitem_nodes). Returns how many nodes got one.
/// @throws PassError kBadExtract for an index that a Tuple type has not.
std::int64_t annotate_getitem_nodes(Graph& graph);

}  // namespace fx
