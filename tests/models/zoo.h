#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// A zoo of stock C++ code, nothing of it written for fx: the modules and functionals of torch::nn
/// with their options, and whole nets. check_case captures each and compares the graph with eager.
namespace fx::zoo {

using Tensors = std::vector<at::Tensor>;

/// The batch extent of an input: kBatch stands for 2 in a capture, for 1, 3 and 7 in calls with
/// other sizes.
constexpr std::int64_t kBatch = -1;

/// How an example input is made. Floats get the dtype of the check.
struct Input {
  enum class Kind : std::uint8_t {
    kNormal,
    kUniform,  ///< in (0, 1)
    kIndex,    ///< integers below `high`
    kSign,     ///< 1 and -1
    kMask,     ///< bool, the first of each row false
    kFixed,    ///< `value` itself
  };
  Kind kind = Kind::kNormal;
  std::vector<std::int64_t> sizes;
  std::int64_t high = 0;
  at::Tensor value;
  bool gradient = true;  ///< whether a float input gets a gradient in the checks

  at::Tensor make(at::ScalarType dtype, std::int64_t batch) const;
};
Input normal(std::vector<std::int64_t> sizes);
Input uniform(std::vector<std::int64_t> sizes);
Input indices(std::int64_t high, std::vector<std::int64_t> sizes);
Input signs(std::vector<std::int64_t> sizes);
Input mask(std::vector<std::int64_t> sizes);
Input fixed(at::Tensor value);
/// An input of which LibTorch has no gradient, like the class weights of a loss.
Input still(Input input);

/// One program of the zoo.
struct Case {
  std::string name;     ///< "Conv2d": a row of docs/captured.md
  std::string options;  ///< the constructor or call as it stands in the source
  std::vector<Input> inputs;
  std::function<Tensors(Tensors&)> run;
  std::shared_ptr<torch::nn::Module> module;  ///< null for functions
  /// What the error says where a capture is refused: always, or only while gradients are recorded.
  std::string refused = {};
  std::string refused_with_gradients = {};
  /// Reads a number that decides nothing: captured without a check of it, which would fail.
  bool reads_value = false;
};
using Cases = std::vector<Case>;

/// What was found out about a case. `fault` is empty when all is as eager.
struct Outcome {
  std::string fault;
  bool captured = false;
  std::string refusal;        ///< why it is not captured, or not with gradients
  std::size_t gradients = 0;  ///< inputs and parameters that got one
  bool differentiable = false;
  std::string baked;  ///< what holds for the sizes of the example only; empty if nothing
};

/// Captures `each` in float32 and float64, in train and eval mode, without and with gradients, and
/// compares outputs, inputs, buffers and gradients of eager, GraphModule and Interpreter, bit by
/// bit, on fresh inputs.
Outcome check_case(const Case& each);

/// The tensors in a value: lists and tuples flattened, everything else left out.
template <typename T>
void append(Tensors& out, const T& value) {
  if constexpr (std::is_convertible_v<T, at::Tensor>) {
    if (at::Tensor tensor = value; tensor.defined()) out.push_back(std::move(tensor));
  } else if constexpr (requires { value.begin(); }) {
    for (const auto& item : value) append(out, item);
  } else {
    std::apply([&](const auto&... items) { (append(out, items), ...); }, value);
  }
}
template <typename... T>
Tensors tensors(const T&... values) {
  Tensors out;
  (append(out, values), ...);
  return out;
}

/// A module that is called with all inputs; the options are the text of its constructor's
/// arguments.
Case module_case(std::string name, std::string options, std::vector<Input> inputs,
                 std::shared_ptr<torch::nn::Module> module);

/// FX_ZOO_MODULE(Conv2d, ({normal({kBatch, 3, 8, 8})}), nn::Conv2dOptions(3, 4, 3))
#define FX_ZOO_MODULE(Class, inputs, ...) \
  cases.push_back(                        \
      module_case(#Class, #__VA_ARGS__, FX_ZOO_UNPACK inputs, nn::Class(__VA_ARGS__).ptr()))
/// A call in terms of the inputs `in`.
#define FX_ZOO_CALL(name, inputs, ...)                                            \
  cases.push_back({#name, #__VA_ARGS__, std::vector<Input>(FX_ZOO_UNPACK inputs), \
                   +[](Tensors& in) -> Tensors { return tensors(__VA_ARGS__); }, nullptr})
#define FX_ZOO_UNPACK(...) __VA_ARGS__

void add_modules(Cases& cases);
void add_layers(Cases& cases);
void add_functionals(Cases& cases);
void add_losses(Cases& cases);
void add_nets(Cases& cases);

}  // namespace fx::zoo
