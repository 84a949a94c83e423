// The table of all passes, sorted by name: what parse_pipeline, the command line and the docs know.

#include <algorithm>
#include <iterator>

#include "fx/base/error.h"
#include "fx/passes/annotate_types.h"
#include "fx/passes/constant_fold.h"
#include "fx/passes/cse.h"
#include "fx/passes/dce.h"
#include "fx/passes/functionalize.h"
#include "fx/passes/fuse_conv_bn.h"
#include "fx/passes/merge_matmul.h"
#include "fx/passes/normalize.h"
#include "fx/passes/pass.h"
#include "fx/passes/quantize_weights.h"
#include "fx/passes/reinplace.h"
#include "fx/passes/remove_noops.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/simplify.h"

namespace fx {
namespace {

using Kind = PassOptionInfo::Kind;

constexpr PassOptionInfo kConstantFoldOptions[] = {
    {"max_bytes", Kind::kInt, "67108864", "largest tensor to make, in bytes"},
    {"fold_trainable", Kind::kBool, "false", "fold parameters with gradients in training mode too"},
    {"fold_outputs", Kind::kBool, "false", "fold returned values, which callers must not write to"},
    {"remove_unused_attributes", Kind::kBool, "false", "delete attributes that nothing reads now"},
};
constexpr PassOptionInfo kCseOptions[] = {
    {"share_outputs", Kind::kBool, "false",
     "merge returned values, which callers must not write to"},
};
constexpr PassOptionInfo kDceOptions[] = {
    {"impure_random", Kind::kBool, "true", "keep unused nodes that draw random numbers"},
};
constexpr PassOptionInfo kFunctionalizeOptions[] = {
    {"copy_back", Kind::kBool, "true", "write contents back at the end, instead of returning them"},
};
constexpr PassOptionInfo kFuseConvBnOptions[] = {
    {"assume_linear_2d", Kind::kBool, "false", "take inputs of linear layers as [N, C]"},
};
constexpr PassOptionInfo kNormalizeArgsOptions[] = {
    {"only_kwargs", Kind::kBool, "true", "make keywords of positional arguments too"},
};
constexpr PassOptionInfo kNormalizeOperatorsOptions[] = {
    {"inputs_are_tensors", Kind::kBool, "false", "take inputs of unknown type as tensors"},
};
constexpr PassOptionInfo kQuantizeWeightsOptions[] = {
    {"min_numel", Kind::kInt, "1024", "leave weights with fewer elements alone"},
};
constexpr PassOptionInfo kReinplaceOptions[] = {
    {"static_shapes", Kind::kBool, "false", "take the shapes of the inputs as those of every run"},
};
constexpr PassOptionInfo kRemoveDropoutOptions[] = {
    {"even_in_training", Kind::kBool, "false", "remove active dropout, which changes results"},
};
constexpr PassOptionInfo kRemoveNoopsOptions[] = {
    {"static_shapes", Kind::kBool, "false", "take the shapes of shape_prop as those of every run"},
};
constexpr PassOptionInfo kSimplifyOptions[] = {
    {"use_metadata", Kind::kBool, "true", "take what shape_prop has left as that of every run"},
};

// The inputs that a pass runs the module on.
const Values& inputs_for(std::string_view pass, const PassOptions& options) {
  if (options.example_inputs()) return *options.example_inputs();
  throw PassError(ErrorCode::kBadPassOption,
                  "the pass '" + std::string(pass) + "' needs example inputs to run the module on");
}

constexpr PassInfo kPasses[] = {
    {"annotate_types",
     "give nodes the types that schemas tell",
     {},
     [](GraphModule& module, const PassOptions&) { return annotate_types(module); }},
    {"constant_fold", "evaluate what depends on attributes and literals alone",
     kConstantFoldOptions,
     [](GraphModule& module, const PassOptions& options) {
       return constant_fold(
           module, {.max_bytes = options.get_int("max_bytes"),
                    .fold_trainable = options.get_bool("fold_trainable"),
                    .fold_outputs = options.get_bool("fold_outputs"),
                    .remove_unused_attributes = options.get_bool("remove_unused_attributes")});
     }},
    {"cse", "compute common subexpressions once", kCseOptions,
     [](GraphModule& module, const PassOptions& options) {
       return cse(module, {.share_outputs = options.get_bool("share_outputs")});
     }},
    {"dce", "remove unused nodes without effects", kDceOptions,
     [](GraphModule& module, const PassOptions& options) {
       return dce(module, {.impure_random = options.get_bool("impure_random")});
     }},
    {"functionalize", "make writes functional, but one at the end to each input and buffer",
     kFunctionalizeOptions,
     [](GraphModule& module, const PassOptions& options) {
       return functionalize(module, inputs_for("functionalize", options),
                            {.copy_back = options.get_bool("copy_back")});
     }},
    {"fuse_conv_bn", "merge batch normalisation into the convolution or linear layer before it",
     kFuseConvBnOptions,
     [](GraphModule& module, const PassOptions& options) {
       return fuse_conv_bn(module, {.assume_linear_2d = options.get_bool("assume_linear_2d")});
     }},
    {"merge_matmul",
     "merge matrix products with the same right-hand side",
     {},
     [](GraphModule& module, const PassOptions&) { return merge_matmul(module); }},
    {"normalize_args", "pass all arguments as keywords, defaults included", kNormalizeArgsOptions,
     [](GraphModule& module, const PassOptions& options) {
       return normalize_args(module, {.only_kwargs = options.get_bool("only_kwargs")});
     }},
    {"normalize_operators", "write torch functions of tensors as operators",
     kNormalizeOperatorsOptions,
     [](GraphModule& module, const PassOptions& options) {
       return normalize_operators(module,
                                  {.inputs_are_tensors = options.get_bool("inputs_are_tensors")});
     }},
    {"quantize_weights", "store weights of linear layers and convolutions as 8-bit integers",
     kQuantizeWeightsOptions,
     [](GraphModule& module, const PassOptions& options) {
       return quantize_weights(module, {.min_numel = options.get_int("min_numel")});
     }},
    {"reinplace", "let operators write over operands that nothing reads any more",
     kReinplaceOptions,
     [](GraphModule& module, const PassOptions& options) {
       return reinplace(module, inputs_for("reinplace", options),
                        {.static_shapes = options.get_bool("static_shapes")});
     }},
    {"remove_dropout", "remove dropout that does nothing", kRemoveDropoutOptions,
     [](GraphModule& module, const PassOptions& options) {
       return remove_dropout(module, {.even_in_training = options.get_bool("even_in_training")});
     }},
    {"remove_noops", "remove nodes that return their input as it is", kRemoveNoopsOptions,
     [](GraphModule& module, const PassOptions& options) {
       return remove_noops(module, {.static_shapes = options.get_bool("static_shapes")});
     }},
    {"shape_prop",
     "record dtypes and shapes by running on example inputs",
     {},
     [](GraphModule& module, const PassOptions& options) {
       return shape_prop(module, inputs_for("shape_prop", options));
     }},
    {"simplify", "rewrite calls of calls by exact rules", kSimplifyOptions,
     [](GraphModule& module, const PassOptions& options) {
       return simplify(module, {.use_metadata = options.get_bool("use_metadata")});
     }},
};
static_assert(std::is_sorted(std::begin(kPasses), std::end(kPasses),
                             [](const PassInfo& a, const PassInfo& b) { return a.name < b.name; }));

}  // namespace

std::span<const PassInfo> all_passes() { return kPasses; }

}  // namespace fx
