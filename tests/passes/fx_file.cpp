#include "tests/passes/fx_file.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "fx/graph/text.h"

namespace fx {
namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  std::string item;
  std::istringstream in(text);
  while (std::getline(in, item, ','))
    if (!trimmed(item).empty()) numbers.push_back(std::stod(item));
  return numbers;
}

// "f32[2, 3]" random, "[1.0, 2.0]" as written (ints make an i64 tensor).
at::Tensor tensor_of(const std::string& spec) {
  const auto open = spec.find('[');
  const auto close = spec.rfind(']');
  const std::string inside = spec.substr(open + 1, close - open - 1);
  const std::string kind = trimmed(spec.substr(0, open));
  if (kind.empty()) {
    const at::Tensor values = torch::tensor(numbers_in(inside), at::kDouble);
    return values.to(inside.find('.') == std::string::npos ? at::kLong : at::kFloat);
  }
  std::vector<std::int64_t> sizes;
  for (double size : numbers_in(inside)) sizes.push_back(static_cast<std::int64_t>(size));
  static const std::map<std::string, at::ScalarType> kDtypes = {
      {"f32", at::kFloat}, {"f64", at::kDouble}, {"f16", at::kHalf}, {"bf16", at::kBFloat16},
      {"i64", at::kLong},  {"i32", at::kInt},    {"bool", at::kBool}};
  const at::ScalarType dtype = kDtypes.at(kind);
  if (dtype == at::kBool) return torch::randint(0, 2, sizes).to(dtype);
  if (at::isIntegralType(dtype, false)) return torch::randint(0, 4, sizes).to(dtype);
  return torch::randn(sizes, at::kFloat).to(dtype);
}

template <typename BatchNorm, typename Options>
std::shared_ptr<torch::nn::Module> batch_norm(const std::vector<std::string>& args) {
  auto options = Options(std::stoll(args.at(0)));
  for (const std::string& arg : args) {
    if (arg == "affine=False") options.affine(false);
    if (arg == "track_running_stats=False") options.track_running_stats(false);
  }
  auto bn = std::make_shared<BatchNorm>(options);
  torch::NoGradGuard no_grad;
  if (bn->running_mean.defined()) {
    bn->running_mean.normal_();
    bn->running_var.uniform_(0.5, 2.0);
  }
  if (bn->weight.defined()) {
    bn->weight.normal_();
    bn->bias.normal_();
  }
  return bn;
}

template <std::size_t D>
torch::nn::ConvOptions<D> conv_options(const std::vector<std::string>& args) {
  torch::nn::ConvOptions<D> options(std::stoll(args.at(0)), std::stoll(args.at(1)),
                                    std::stoll(args.at(2)));
  for (const std::string& arg : args) {
    if (arg == "bias=False") options.bias(false);
    if (arg.starts_with("groups=")) options.groups(std::stoll(arg.substr(7)));
    if (arg.starts_with("stride=")) options.stride(std::stoll(arg.substr(7)));
    if (arg.starts_with("padding=")) options.padding(std::stoll(arg.substr(8)));
  }
  return options;
}

std::shared_ptr<torch::nn::Module> module_of(const std::string& spec) {
  const auto open = spec.find('(');
  const auto close = spec.rfind(')');
  const std::string name = trimmed(spec.substr(0, open));
  std::vector<std::string> args;
  std::string item;
  std::istringstream in(spec.substr(open + 1, close - open - 1));
  while (std::getline(in, item, ',')) args.push_back(trimmed(item));
  std::shared_ptr<torch::nn::Module> made;
  using namespace torch::nn;  // NOLINT
  if (name == "Conv1d")
    made = std::make_shared<Conv1dImpl>(conv_options<1>(args));
  else if (name == "Conv2d")
    made = std::make_shared<Conv2dImpl>(conv_options<2>(args));
  else if (name == "Conv3d")
    made = std::make_shared<Conv3dImpl>(conv_options<3>(args));
  else if (name == "BatchNorm1d")
    made = batch_norm<BatchNorm1dImpl, BatchNormOptions>(args);
  else if (name == "BatchNorm2d")
    made = batch_norm<BatchNorm2dImpl, BatchNormOptions>(args);
  else if (name == "BatchNorm3d")
    made = batch_norm<BatchNorm3dImpl, BatchNormOptions>(args);
  else if (name == "Linear")
    made = std::make_shared<LinearImpl>(std::stoll(args.at(0)), std::stoll(args.at(1)));
  else if (name == "Dropout")
    made = std::make_shared<DropoutImpl>(std::stod(args.at(0)));
  else if (name == "ReLU")
    made = std::make_shared<ReLUImpl>(ReLUOptions(!args.empty()));
  else if (name == "Flatten")
    made = std::make_shared<FlattenImpl>();
  else if (name == "Identity")
    made = std::make_shared<IdentityImpl>();
  else
    throw std::runtime_error("unknown module " + name);
  made->train(trimmed(spec.substr(close + 1)) == "train");
  return made;
}

}  // namespace

FxFile FxFile::read(const std::string& text) {
  torch::manual_seed(0);
  FxFile file;
  file.module = std::make_shared<GraphModule>(parse_text(text));
  GraphModule& module = *file.module;
  module.eval();
  std::vector<std::pair<std::string, std::string>> aliases;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("# ")) continue;
    if (line.starts_with("# CHECK")) {
      file.checks += line + "\n";
      continue;
    }
    const std::string word = line.substr(2, line.find_first_of(": ", 2) - 2);
    const auto colon = line.find(": ");
    const std::string rest = colon == std::string::npos ? "" : trimmed(line.substr(colon + 2));
    const auto equals = rest.find(" = ");
    const std::string name = rest.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : rest.substr(equals + 3);
    if (word == "RUN")
      file.pipeline = rest;
    else if (word == "INPUT")
      file.inputs.emplace_back(tensor_of(value));
    else if (word == "PARAM") {
      at::Tensor tensor = tensor_of(value);
      module.set_parameter(name, tensor.set_requires_grad(tensor.is_floating_point()));
    } else if (word == "BUFFER")
      module.set_buffer(name, tensor_of(value));
    else if (word == "CONST")
      module.set_constant(name, tensor_of(value));
    else if (word == "ALIAS")
      aliases.emplace_back(name, value);
    else if (word == "MODULE")
      module.set_submodule(name, module_of(value));
    else if (word == "TRAIN")
      module.train();
    else if (word == "UNCHANGED")
      file.unchanged = true;
    else if (word == "NOT-IDEMPOTENT")
      file.idempotent = false;
    else if (word == "RESULTS-DIFFER")
      file.compare_results = false;
    else if (word == "ERROR")
      file.error = rest;
  }
  for (const auto& [name, of] : aliases) {
    if (const auto child = module.find_submodule(of))
      module.set_submodule(name, child);
    else
      module.set_buffer(name, module.find_tensor(of));
  }
  module.recompile();
  return file;
}

std::string text_of(const GraphModule& module) {
  std::string out = to_text(module.graph()) + "# attributes:";
  std::set<std::string> names;
  for (const auto& item : module.named_parameters()) names.insert(item.key());
  for (const auto& item : module.named_buffers()) names.insert(item.key());
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kGetAttr) names.insert(node.target().str());
  for (const std::string& name : names) out += " " + name;
  return out + "\n";
}

}  // namespace fx
