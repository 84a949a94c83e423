#include "fx/compile/expand_modules.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <functional>
#include <typeindex>
#include <unordered_map>

#include "fx/passes/inline_module.h"

namespace fx::loops {
namespace {

namespace nn = torch::nn;

// One call of a module on its way to a call of an operator.
class Call {
 public:
  Call(Graph& graph, Node& node, const nn::Module& module)
      : graph_(graph), node_(node), module_(module) {}

  // The single argument of forward, or null.
  Node* input() const {
    if (node_.num_args() == 1 && node_.kwargs().empty()) return node_.arg(0).node_or_null();
    const Argument* named = node_.find_kwarg("input");
    return node_.num_args() == 0 && node_.kwargs().size() == 1 && named ? named->node_or_null()
                                                                        : nullptr;
  }

  // The parameter or buffer `name` of the module, or None when it has none.
  Argument attribute(const char* name) {
    const bool has = has_defined(module_.named_parameters(false), name) ||
                     has_defined(module_.named_buffers(false), name);
    if (!has) return {};
    return graph_.get_attr(node_.target().str() + "." + name);
  }

  void replace(const char* target, Args args) {
    Node& made = graph_.call_function(target, std::move(args));
    replace(made);
  }
  void replace(Node& made) {
    if (made.meta().empty()) made.meta() = node_.meta();
    node_.replace_all_uses_with(made);
    graph_.erase_node(node_);
  }

 private:
  template <typename Tensors>
  static bool has_defined(const Tensors& tensors, const char* name) {
    const at::Tensor* found = tensors.find(name);
    return found && found->defined();
  }

  Graph& graph_;
  Node& node_;
  const nn::Module& module_;
};

// Whether the call was replaced.
using Expand = std::function<bool(Call&, const nn::Module&, Node& input)>;

template <typename Impl, typename Fn>
std::pair<std::type_index, Expand> row(Fn fn) {
  return {typeid(Impl), [fn](Call& call, const nn::Module& module, Node& input) {
            return fn(call, dynamic_cast<const Impl&>(module), input);
          }};
}

template <typename Impl>
std::pair<std::type_index, Expand> simple(const char* target) {
  return row<Impl>([target](Call& call, const Impl&, Node& input) {
    call.replace(target, {input});
    return true;
  });
}

template <typename Impl>
std::pair<std::type_index, Expand> dropout() {
  return row<Impl>([](Call& call, const Impl& module, Node& input) {
    if (module.is_training()) return false;
    call.replace(input);
    return true;
  });
}

template <typename Impl>
std::pair<std::type_index, Expand> batch_norm() {
  return row<Impl>([](Call& call, const Impl& module, Node& input) {
    if (module.is_training() || !module.running_mean.defined()) return false;
    const Argument weight = call.attribute("weight");
    const Argument bias = call.attribute("bias");
    const Argument mean = call.attribute("running_mean");
    const Argument var = call.attribute("running_var");
    call.replace("aten::batch_norm",
                 {input, weight, bias, mean, var, false, module.options.momentum().value_or(0.0),
                  module.options.eps(), false});
    return true;
  });
}

const std::unordered_map<std::type_index, Expand>& table() {
  static const std::unordered_map<std::type_index, Expand> rows{
      simple<nn::SigmoidImpl>("aten::sigmoid"),
      simple<nn::TanhImpl>("aten::tanh"),
      simple<nn::SiLUImpl>("aten::silu"),
      simple<nn::MishImpl>("aten::mish"),
      simple<nn::LogSigmoidImpl>("aten::log_sigmoid"),
      row<nn::ReLUImpl>([](Call& call, const nn::ReLUImpl& module, Node& input) {
        if (module.options.inplace()) return false;
        call.replace("aten::relu", {input});
        return true;
      }),
      row<nn::ReLU6Impl>([](Call& call, const nn::ReLU6Impl& module, Node& input) {
        if (module.options.inplace()) return false;
        call.replace("aten::hardtanh", {input, 0.0, 6.0});
        return true;
      }),
      row<nn::HardtanhImpl>([](Call& call, const nn::HardtanhImpl& module, Node& input) {
        if (module.options.inplace()) return false;
        call.replace("aten::hardtanh", {input, module.options.min_val(), module.options.max_val()});
        return true;
      }),
      row<nn::LeakyReLUImpl>([](Call& call, const nn::LeakyReLUImpl& module, Node& input) {
        if (module.options.inplace()) return false;
        call.replace("aten::leaky_relu", {input, module.options.negative_slope()});
        return true;
      }),
      row<nn::ELUImpl>([](Call& call, const nn::ELUImpl& module, Node& input) {
        if (module.options.inplace()) return false;
        call.replace("aten::elu", {input, module.options.alpha()});
        return true;
      }),
      row<nn::SoftplusImpl>([](Call& call, const nn::SoftplusImpl& module, Node& input) {
        call.replace("aten::softplus", {input, module.options.beta(), module.options.threshold()});
        return true;
      }),
      row<nn::GELUImpl>([](Call& call, const nn::GELUImpl& module, Node& input) {
        Args args{input};
        Node& made = input.graph().call_function("aten::gelu", std::move(args),
                                                 {{"approximate", module.options.approximate()}});
        call.replace(made);
        return true;
      }),
      row<nn::SoftmaxImpl>([](Call& call, const nn::SoftmaxImpl& module, Node& input) {
        call.replace("aten::softmax.int", {input, module.options.dim()});
        return true;
      }),
      row<nn::LogSoftmaxImpl>([](Call& call, const nn::LogSoftmaxImpl& module, Node& input) {
        call.replace("aten::log_softmax.int", {input, module.options.dim()});
        return true;
      }),
      row<nn::LinearImpl>([](Call& call, const nn::LinearImpl&, Node& input) {
        const Argument weight = call.attribute("weight");
        const Argument bias = call.attribute("bias");
        call.replace("aten::linear", {input, weight, bias});
        return true;
      }),
      row<nn::LayerNormImpl>([](Call& call, const nn::LayerNormImpl& module, Node& input) {
        const Argument weight = call.attribute("weight");
        const Argument bias = call.attribute("bias");
        call.replace("aten::layer_norm", {input, Argument(module.options.normalized_shape()),
                                          weight, bias, module.options.eps()});
        return true;
      }),
      row<nn::GroupNormImpl>([](Call& call, const nn::GroupNormImpl& module, Node& input) {
        const Argument weight = call.attribute("weight");
        const Argument bias = call.attribute("bias");
        call.replace("aten::group_norm",
                     {input, module.options.num_groups(), weight, bias, module.options.eps()});
        return true;
      }),
      batch_norm<nn::BatchNorm1dImpl>(),
      batch_norm<nn::BatchNorm2dImpl>(),
      batch_norm<nn::BatchNorm3dImpl>(),
      dropout<nn::DropoutImpl>(),
      dropout<nn::Dropout2dImpl>(),
      dropout<nn::Dropout3dImpl>(),
      dropout<nn::AlphaDropoutImpl>(),
  };
  return rows;
}

}  // namespace

bool expand_modules(GraphModule& module) {
  bool changed = false;
  // Again and again, since what is inlined may call modules.
  for (bool more = true; more;) {
    more = false;
    std::vector<Node*> calls;
    for (Node& node : module.graph().nodes())
      if (node.op() == Opcode::kCallModule) calls.push_back(&node);
    for (Node* node : calls) {
      const auto submodule = module.find_submodule(node->target().str());
      if (!submodule) continue;
      if (std::dynamic_pointer_cast<GraphModule>(submodule)) {
        inline_module(module, *node);
        more = changed = true;
        continue;
      }
      const nn::Module& callee = *submodule;
      const auto found = table().find(typeid(callee));
      if (found == table().end()) continue;
      Call call(module.graph(), *node, callee);
      Node* input = call.input();
      if (!input) continue;
      const auto at = module.graph().inserting_before(*node);
      changed |= found->second(call, callee, *input);
    }
  }
  return changed;
}

}  // namespace fx::loops
