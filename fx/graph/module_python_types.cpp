#include <torch/nn/modules.h>

#include <cmath>
#include <unordered_map>

#include "fx/base/text.h"
#include "fx/graph/module_python.h"

namespace fx::python {
namespace {

// Options of torch::nn as Python source. Declared first: the templates call each other.
template <typename T>
std::string source(const std::optional<T>& value);
template <typename T>
std::string source(const std::vector<T>& items);
template <std::size_t D, typename T>
std::string source(const torch::ExpandingArray<D, T>& items);
template <typename... Choices>
std::string source(const std::variant<Choices...>& choice);
std::string source(bool value) { return value ? "True" : "False"; }
std::string source(std::int64_t value) { return std::to_string(value); }
std::string source(double value) {
  return std::isfinite(value) ? float_repr(value) : "float('" + float_repr(value) + "')";
}
std::string source(const std::string& value) { return string_literal(value); }

template <typename T>
std::string source(const std::optional<T>& value) {
  return value ? source(*value) : "None";
}

template <typename Range>
std::string tuple_source(const Range& items) {
  std::string out = "(";
  std::size_t count = 0;
  for (const auto& item : items) out += (count++ ? ", " : "") + source(item);
  return out + (count == 1 ? ",)" : ")");
}
template <typename T>
std::string source(const std::vector<T>& items) {
  return tuple_source(items);
}
template <std::size_t D, typename T>
std::string source(const torch::ExpandingArray<D, T>& items) {
  return tuple_source(*items);
}

// torch::kZeros is 'zeros' in Python, and so are all of these.
template <typename... Choices>
std::string source(const std::variant<Choices...>& choice) {
  return std::visit(
      [](const auto& chosen) -> std::string {
        if constexpr (requires { torch::enumtype::_compute_enum_name{}(chosen); }) {
          std::string name = torch::enumtype::_compute_enum_name{}(chosen).substr(1);
          for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
          return string_literal(name);
        } else {
          return source(chosen);
        }
      },
      choice);
}

using Writer = std::string (*)(const torch::nn::Module&);

const std::unordered_map<std::type_index, Writer>& writers() {
  static const auto* table = [] {
    auto* made = new std::unordered_map<std::type_index, Writer>;
    // The options follow one another, each with a comma that the first drops.
#define OPTION(name) AS(name, name)
#define AS(python, cpp) arguments += ", " #python "=" + source(impl.options.cpp());
#define FX_PYTHON_MODULE(Class, options)                                                     \
  made->emplace(typeid(torch::nn::Class##Impl), [](const torch::nn::Module& module) {        \
    [[maybe_unused]] const auto& impl = dynamic_cast<const torch::nn::Class##Impl&>(module); \
    std::string arguments;                                                                   \
    options;                                                                                 \
    return "torch.nn." #Class "(" + arguments.substr(arguments.empty() ? 0 : 2) + ")";       \
  });
#include "fx/graph/module_python_types.def"
#undef FX_PYTHON_MODULE
#undef AS
#undef OPTION
    const Writer containers[] = {
        [](const torch::nn::Module&) { return std::string("torch.nn.Sequential()"); },
        [](const torch::nn::Module&) { return std::string("torch.nn.ModuleList()"); },
        [](const torch::nn::Module&) { return std::string("torch.nn.ModuleDict()"); },
        [](const torch::nn::Module&) { return std::string("torch.nn.Module()"); }};
    made->emplace(typeid(torch::nn::SequentialImpl), containers[0]);
    made->emplace(typeid(torch::nn::ModuleListImpl), containers[1]);
    made->emplace(typeid(torch::nn::ModuleDictImpl), containers[2]);
    made->emplace(typeid(torch::nn::Module), containers[3]);
    return made;
  }();
  return *table;
}

}  // namespace

std::optional<std::string> constructor_call(const torch::nn::Module& module) {
  auto found = writers().find(typeid(module));
  if (found == writers().end()) return std::nullopt;
  return found->second(module);
}

}  // namespace fx::python
