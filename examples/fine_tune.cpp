// Fine-tuning a program of torch.export: the digits classifier learns to read white on black as
// well as black on white. Arguments: the file to write (default: in the temporary folder).

#include <fx/fx.h>
#include <torch/torch.h>

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>

namespace {

// [right]
/// How many images the program reads right.
std::int64_t right(fx::GraphModule& net, const at::Tensor& images, const at::Tensor& labels) {
  const torch::NoGradGuard no_grad;
  return net(images).toTensor().argmax(1).eq(labels).sum().item<std::int64_t>();
}
// [end]

// [train]
/// Trains the parameters that want gradients; gives the loss before the first and the last step.
std::pair<double, double> train(fx::GraphModule& net, const at::Tensor& images,
                                const at::Tensor& labels, double rate, int steps) {
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : net.parameters())
    if (parameter.requires_grad()) parameters.push_back(parameter);
  torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(rate));
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(net(images).toTensor(), labels);
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  return {first, last};
}
// [end]

}  // namespace

int main(int argc, char** argv) {
  const std::string models = FXCPP_MODELS_DIR;
  const std::string tuned =
      argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "fxcpp_tuned.pt2").string();
  std::cout << std::fixed << std::setprecision(1) << "== run\n";

  // [data]
  const at::Tensor images = 1 - fx::io::read_npy(models + "/digits_test_x.npy");
  const at::Tensor labels = fx::io::read_npy(models + "/digits_test_y.npy");
  const at::Tensor seen = images.narrow(0, 0, 300), seen_labels = labels.narrow(0, 0, 300);
  const at::Tensor fresh = images.narrow(0, 300, 100), fresh_labels = labels.narrow(0, 300, 100);
  // [end]

  // [head]
  auto net = fx::load(models + "/digits.pt2");
  const std::int64_t before = right(*net, fresh, fresh_labels);
  for (auto& parameter : net->named_parameters())
    parameter.value().set_requires_grad(parameter.key().starts_with("fc."));
  const auto [head_first, head_last] = train(*net, seen, seen_labels, 0.05, 60);
  // [end]
  std::cout << before << " of 100 right before\n"
            << "head: loss " << head_first << ", then " << head_last << "; "
            << right(*net, fresh, fresh_labels) << " of 100 right\n";

  // [whole]
  for (at::Tensor& parameter : net->parameters()) parameter.set_requires_grad(true);
  const auto [first, last] = train(*net, seen, seen_labels, 0.003, 60);
  // [end]
  const std::int64_t after = right(*net, fresh, fresh_labels);
  std::cout << "whole net: loss " << first << ", then " << last << "; " << after
            << " of 100 right\n";

  // [save]
  fx::save_pt2(*net, tuned);
  auto again = fx::load(tuned);
  const bool is_kept = right(*again, fresh, fresh_labels) == after;
  // [end]

  // What holds on every machine, whatever the last digits are.
  std::cout << std::boolalpha << "== checks\n"
            << "the head alone more than halves the loss: " << (head_last < head_first / 2) << "\n"
            << "the whole net brings it below a tenth: " << (last < head_first / 10) << "\n"
            << "from less than 40 of 100 right to more than 80: " << (before < 40 && after > 80)
            << "\n"
            << "the file holds what was trained: " << is_kept << "\n";
}
