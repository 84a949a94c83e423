#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/compile/eager_check.h"

// Calls of operators on special values, with the answers of Python's eager mode
// (scripts/export_special_values.py): through the Interpreter, the plan, a compiled graph, and a
// compiled graph in which other operators stand around it; alone and 67 of them, contiguous, with
// gaps, and with one element for all.
namespace fx {
namespace {

using nlohmann::json;
using Tensors = std::vector<at::Tensor>;

c10::ScalarType dtype_of(const std::string& name) {
  static const std::map<std::string, c10::ScalarType> types = {
      {"float32", at::kFloat},     {"float64", at::kDouble}, {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16}, {"int64", at::kLong},     {"int32", at::kInt},
      {"int16", at::kShort},       {"int8", at::kChar},      {"uint8", at::kByte},
      {"bool", at::kBool}};
  return types.at(name);
}

at::Tensor tensor_of(const json& value) {
  const auto sizes = value.at("sizes").get<std::vector<std::int64_t>>();
  const auto hex = value.at("hex").get<std::string>();
  at::Tensor out = at::empty(sizes, dtype_of(value.at("t").get<std::string>()));
  auto* bytes = static_cast<std::uint8_t*>(out.data_ptr());
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes[i / 2] = static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// One call, its tensors as placeholders.
struct Case {
  json line;
  Tensors inputs;
  std::optional<Tensors> results;  // nothing: an error

  explicit Case(json text) : line(std::move(text)) {
    for (const json& arg : line.at("args")) collect(arg);
    for (const auto& [key, arg] : line.at("kwargs").items()) collect(arg);
    if (!line.contains("results")) return;
    results.emplace();
    for (const json& result : line.at("results"))
      if (result.contains("t")) results->push_back(tensor_of(result));
  }
  void collect(const json& arg) {
    if (arg.contains("t")) inputs.push_back(tensor_of(arg));
    if (arg.contains("l"))
      for (const json& item : arg.at("l")) collect(item);
  }
  std::string op() const { return line.at("op").get<std::string>(); }
  std::string name() const { return line.at("expression").get<std::string>() + ": " + op(); }
};

Argument argument(const json& arg, const std::vector<Node*>& inputs, std::size_t& at) {
  if (arg.contains("t")) return *inputs[at++];
  if (arg.contains("l")) {
    std::vector<Argument> items;
    for (const json& item : arg.at("l")) items.push_back(argument(item, inputs, at));
    return Argument::list(std::move(items));
  }
  if (arg.contains("f")) return std::strtod(arg.at("f").get<std::string>().c_str(), nullptr);
  if (arg.contains("dtype")) return dtype_of(arg.at("dtype").get<std::string>());
  const json& value = arg.at("v");
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string()) return value.get<std::string>();
  return {};
}

// The call as a graph; `wrapped` with operators around it that change nothing.
std::shared_ptr<GraphModule> graph_of(const Case& c, bool wrapped) {
  auto graph = std::make_shared<Graph>();
  std::vector<Node*> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(&graph->placeholder("x" + std::to_string(i)));
  if (wrapped)
    for (std::size_t i = 0; i < c.inputs.size(); ++i)
      if (c.inputs[i].scalar_type() != at::kBool)
        inputs[i] = &graph->call_function("aten::mul.Scalar", {*inputs[i], 1});
  Args args;
  Kwargs kwargs;
  std::size_t at = 0;
  for (const json& arg : c.line.at("args")) args.push_back(argument(arg, inputs, at));
  for (const auto& [key, value] : c.line.at("kwargs").items())
    kwargs.push_back({Symbol(key), argument(value, inputs, at)});
  Node& call = graph->call_function(c.op(), std::move(args), std::move(kwargs));
  if (wrapped && c.results && c.results->size() == 1 && !c.line.at("results")[0].contains("l") &&
      c.results->at(0).is_floating_point()) {
    Node& wide = graph->call_function("aten::to.dtype", {call, at::kDouble});
    graph->output(graph->call_function("aten::to.dtype", {wide, c.results->at(0).scalar_type()}));
  } else {
    graph->output(call);
  }
  return std::make_shared<GraphModule>(std::move(graph));
}

Tensors flat(const Value& value) {
  Tensors out;
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else {
    for (const Value& item : elements(value))
      if (item.isTensor()) out.push_back(item.toTensor());
  }
  return out;
}

Values values_of(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

// Every way of running the call on `inputs`.
using Way = std::pair<const char*, std::function<Value(const Tensors&)>>;
std::vector<Way> ways_of(const Case& c) {
  const auto plain = graph_of(c, false);
  const auto wrapped = graph_of(c, true);
  const Compiled alone = compile(plain);
  const Compiled fused = compile(wrapped);
  return {{"Interpreter", [=](const Tensors& x) { return Interpreter(plain).run(values_of(x)); }},
          {"plan", [=](const Tensors& x) { return plain->forward(values_of(x)); }},
          {"llvm", [=](const Tensors& x) { return alone(values_of(x)); }},
          {"llvm, first call in a fusion", [=](const Tensors& x) { return fused(values_of(x)); }},
          {"llvm in a fusion", [=](const Tensors& x) { return fused(values_of(x)); }}};
}

// Where eager's own answer depends on where an element lies: which of two zeros is the larger one.
// A sum may also be nearer to the exact one than eager's.
bool is_open(const Case& c, const Tensors& inputs, const at::Tensor& actual) {
  if (c.op() == "aten::maximum" || c.op() == "aten::minimum")
    return loops::difference(actual + 0.0, c.results->at(0) + 0.0, true).empty();
  return c.op() == "aten::sum" && inputs[0].is_floating_point() &&
         at::equal(actual.to(at::kDouble), inputs[0].to(at::kDouble).sum());
}

std::string compare(const Way& way, const Case& c, const Tensors& inputs, const Tensors& wanted) {
  const bool exact = loops::is_exact(loops::base_name(c.op()));
  Tensors actual;
  try {
    actual = flat(way.second(inputs));
  } catch (const std::exception& e) {
    return std::string("throws ") + e.what();
  }
  if (actual.size() != wanted.size()) return "number of results";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::string text = loops::difference(actual[i], wanted[i], exact);
    if (!text.empty() && !is_open(c, inputs, actual[i])) return text;
  }
  return {};
}

at::Tensor with_gaps(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes.back() *= 2;
  return at::zeros(sizes, tensor.options()).slice(-1, 0, sizes.back(), 2).copy_(tensor);
}

std::vector<Case> cases() {
  std::ifstream file(FXCPP_SOURCE_DIR "/tests/compile/special_values.jsonl");
  std::vector<Case> out;
  for (std::string line; std::getline(file, line);) out.emplace_back(json::parse(line));
  return out;
}

TEST(SpecialValues, HaveEagersAnswers) {
  torch::NoGradGuard no_grad;
  int checked = 0;
  for (const Case& c : cases()) {
    for (const Way& way : ways_of(c)) {
      ++checked;
      if (!c.results) {
        EXPECT_ANY_THROW(way.second(c.inputs)) << c.name() << ": " << way.first;
        continue;
      }
      EXPECT_EQ(compare(way, c, c.inputs, *c.results), "") << c.name() << ": " << way.first;
      Tensors gaps;
      for (const at::Tensor& input : c.inputs) gaps.push_back(with_gaps(input));
      EXPECT_EQ(compare(way, c, gaps, *c.results), "") << c.name() << ", gaps: " << way.first;
    }
  }
  EXPECT_GE(checked, 5 * 190);
}

// Elementwise operators: those for which eager gives 67 answers for 67 copies.
TEST(SpecialValues, InAllLanesAndLayouts) {
  torch::NoGradGuard no_grad;
  int elementwise = 0;
  for (const Case& c : cases()) {
    if (!c.results || c.results->size() != 1 || c.results->at(0).dim() != 1) continue;
    const std::int64_t size = c.results->at(0).size(0);
    const auto fits = [&](const at::Tensor& x) {
      return x.dim() == 0 || (x.dim() == 1 && x.size(0) == size);
    };
    if (size == 0 || !std::all_of(c.inputs.begin(), c.inputs.end(), fits)) continue;
    const auto each = [&](auto fn) {
      Tensors out;
      for (const at::Tensor& x : c.inputs) out.push_back(x.dim() == 0 ? x : fn(x));
      return out;
    };
    // Inputs with the answers for them: all repeated, with gaps, and each element for all.
    std::vector<std::pair<Tensors, Tensors>> forms;
    const Tensors repeated{c.results->at(0).repeat({67})};
    forms.emplace_back(each([](const at::Tensor& x) { return x.repeat({67}); }), repeated);
    forms.emplace_back(each([](const at::Tensor& x) { return with_gaps(x.repeat({67})); }),
                       repeated);
    for (std::int64_t i = 0; i < size; ++i)
      forms.emplace_back(each([&](const at::Tensor& x) { return x[i].expand({67}); }),
                         Tensors{c.results->at(0)[i].expand({67})});
    const std::vector<Way> ways = ways_of(c);
    // Others look at their neighbours.
    if (!std::all_of(forms.begin(), forms.end(), [&](const auto& form) {
          return compare(ways[0], c, form.first, form.second).empty();
        }))
      continue;
    ++elementwise;
    for (const Way& way : ways)
      for (std::size_t i = 0; i < forms.size(); ++i)
        EXPECT_EQ(compare(way, c, forms[i].first, forms[i].second), "")
            << c.name() << ", form " << i << ": " << way.first;
  }
  EXPECT_GE(elementwise, 80);
}

}  // namespace
}  // namespace fx
