// torch.export.load reads what save_pt2 wrote and runs it to the same results (save_pt2.py). Needs
// FXCPP_PYTHON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/io/npy.h"
#include "fx/io/save_pt2.h"
#include "fx/passes/dce.h"
#include "fx/passes/fuse_conv_bn.h"
#include "tests/io/save_pt2_programs.h"

namespace fx {
namespace {

using nlohmann::json;
using namespace io::testing;
namespace nn = torch::nn;

struct ConvNetImpl : nn::Module {
  ConvNetImpl() : conv(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)), norm(8), head(8, 5) {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("head", head);
    norm->running_mean.uniform_(-1, 1);
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::relu(norm(conv(x)));
    x = torch::max_pool2d(x, 2);
    return torch::log_softmax(head(x.mean({2, 3})), 1);
  }
  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  nn::Linear head;
};
TORCH_MODULE(ConvNet);

struct CounterImpl : nn::Module {
  CounterImpl() {
    total = register_buffer("total", torch::zeros({3}));
    scale = register_parameter("scale", torch::full({3}, 2.0));
  }
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x) {
    total.add_(x.sum(0));
    return {x * scale, total.clone()};
  }
  at::Tensor total, scale;
};
TORCH_MODULE(Counter);

struct Job {
  std::string name;
  std::shared_ptr<GraphModule> module;
  std::vector<Values> calls;
  json expect = json::object();
  SavePt2Options options = {};
  bool decompose = false;
};

std::shared_ptr<GraphModule> attention() {
  return make_fx(
      [](at::Tensor q, at::Tensor k, at::Tensor v) {
        auto [values, indices] = torch::topk(torch::scaled_dot_product_attention(q, k, v), 3, -1);
        auto parts = torch::split(values, 2, 1);
        return std::make_tuple(torch::cat(parts, 0), indices.to(torch::kInt), parts[0]);
      },
      {torch::randn({2, 4, 6, 8}), torch::randn({2, 4, 6, 8}), torch::randn({2, 4, 6, 8})});
}

/// The classifier of models/ after some steps of training on images of the other polarity: the
/// head, then everything.
std::shared_ptr<GraphModule> fine_tuned() {
  const at::AutoGradMode gradients(true);
  auto net = load(source_path("models/digits.pt2"));
  const at::Tensor x = 1 - io::read_npy(source_path("models/digits_test_x.npy"));
  const at::Tensor y = io::read_npy(source_path("models/digits_test_y.npy"));
  for (const bool whole : {false, true}) {
    for (auto& item : net->named_parameters())
      item.value().set_requires_grad(whole || item.key().starts_with("fc."));
    torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));
    double first = 0;
    for (int step = 0; step < 8; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = nn::functional::cross_entropy((*net)(x).toTensor(), y);
      loss.backward();
      optimizer.step();
      if (step == 0) first = loss.item<double>();
      if (step == 7) EXPECT_LT(loss.item<double>(), first);
    }
  }
  return net;
}

std::vector<Job> programs() {
  torch::manual_seed(3);
  std::vector<Job> jobs;
  ConvNet net;
  net->eval();
  const at::Tensor image = torch::randn({2, 3, 16, 16});
  jobs.push_back({"captured", make_fx(net, {image}), {{image}}});
  jobs.back().expect = {
      {"buffers", {"norm.num_batches_tracked", "norm.running_mean", "norm.running_var"}},
      {"parameters",
       {"conv.bias", "conv.weight", "head.bias", "head.weight", "norm.bias", "norm.weight"}}};
  jobs.back().decompose = true;

  Counter counter;
  const at::Tensor rows = torch::randn({2, 3});
  auto counting = make_fx(counter, {rows});
  counter->total.zero_();
  jobs.push_back({"in_place", counting, {{rows}, {rows}}});
  jobs.back().expect = {{"dialect", "TRAINING"}};
  jobs.back().decompose = true;

  const Values qkv{torch::randn({2, 4, 6, 8}), torch::randn({2, 4, 6, 8}),
                   torch::randn({2, 4, 6, 8})};
  jobs.push_back({"sequences", attention(), {qkv}});

  jobs.push_back({"by_hand", by_hand(), {{torch::randn({2, 3})}}});
  jobs.back().options.example_inputs = {torch::randn({2, 3})};
  jobs.back().expect = {{"parameters", {"w"}},
                        {"non_persistent", {"b"}},
                        {"constants", {"c"}},
                        {"state_dict", {"w"}}};

  auto traced = symbolic_trace([](auto x) { return relu(x) + x.mean(0) * 2; });
  jobs.push_back({"functions", traced, {{torch::randn({3, 4})}}});
  jobs.back().options.example_inputs = {torch::randn({3, 4})};

  // A program of Python after passes, with other batch sizes than it was exported with.
  auto digits = load(source_path("models/digits.pt2"));
  EXPECT_GT(fuse_conv_bn(*digits).rewrites, 0U);
  dce(*digits);
  digits->recompile();
  const at::Tensor rows_of_digits = io::read_npy(source_path("models/digits_test_x.npy"));
  jobs.push_back(
      {"passes", digits, {{rows_of_digits.narrow(0, 0, 3)}, {rows_of_digits.narrow(0, 3, 7)}}});

  jobs.push_back({"fine_tuned", fine_tuned(), {{rows_of_digits.narrow(0, 0, 5)}}});
  jobs.back().expect = {
      {"parameters",
       {"bn1.bias", "bn1.weight", "bn2.bias", "bn2.weight", "bn3.bias", "bn3.weight",
        "conv1.weight", "conv2.weight", "conv3.bias", "conv3.weight", "fc.bias", "fc.weight"}}};

  // New nodes behind a dynamic input.
  auto edited = load(zoo_path("symbolic_sizes"));
  Graph& graph = edited->graph();
  Node& output = graph.output_node();
  {
    const auto guard = graph.inserting_before(output);
    Node* x = graph.placeholders().front();
    Node& twice = graph.call_function("aten::cat", {Argument::list({*x, *x}), 1});
    Node& flat = graph.call_function("aten::flatten.using_ints", {twice});
    std::vector<Argument> results(output.arg(0).items().begin(), output.arg(0).items().end());
    results[0] = Argument(flat);
    output.set_args({Argument::tuple(results)});
  }
  edited->recompile();
  jobs.push_back({"edited", edited, {{torch::randn({6, 12})}, {torch::randn({9, 12})}}});

  auto modules = std::make_shared<Graph>();
  modules->output(modules->call_module("conv", {modules->placeholder("x")}));
  jobs.push_back({"modules", std::make_shared<GraphModule>(*net, modules), {{image}}});
  jobs.back().options.example_inputs = {image};
  return jobs;
}

/// Writes a value where Python finds it.
json described(const Value& value, const std::string& path) {
  if (!value.isTensor()) {
    if (value.isNone()) return {{"value", nullptr}};
    if (value.isInt()) return {{"value", value.toInt()}};
    if (value.isBool()) return {{"value", value.toBool()}};
    if (value.isString()) return {{"value", value.toStringRef()}};
    return {{"value", value.toDouble()}};
  }
  at::Tensor tensor = value.toTensor().detach().contiguous();
  json item{{"file", path}};
  if (tensor.scalar_type() == at::kBFloat16) {
    item["bfloat16"] = true;
    tensor = tensor.view(at::kShort);
  }
  io::write_npy(path, tensor);
  return item;
}

class PythonJobs {
 public:
  void add(const std::string& path, const json& calls, double rtol, double atol, const json& expect,
           bool decompose) {
    jobs_.push_back({{"path", path},
                     {"calls", calls},
                     {"rtol", rtol},
                     {"atol", atol},
                     {"expect", expect},
                     {"decompose", decompose}});
  }
  /// Calls what was saved in Python.
  void run(const TempDir& folder) const {
    const char* python = std::getenv("FXCPP_PYTHON");
    folder.write("jobs.json", jobs_.dump());
    const std::string log = folder.path("log.txt");
    const std::string command = std::string("'") + (python ? python : FXCPP_PYTHON_REF) + "' " +
                                source_path("tests/io/save_pt2.py") + " '" + folder.path() +
                                "' > '" + log + "' 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_EQ(status, 0) << read_file(log);
    EXPECT_THAT(read_file(log), testing::HasSubstr(std::to_string(jobs_.size()) + " of " +
                                                   std::to_string(jobs_.size()) + " archives"));
  }

 private:
  json jobs_ = json::array();
};

TEST(SavePt2, PythonRunsWhatWasLoaded) {
  const at::NoGradGuard no_grad;
  const TempDir folder;
  PythonJobs jobs;
  for (const ZooEntry& entry : running_programs()) {
    if (entry.version != "2_15") continue;
    const std::string path = folder.path(entry.name() + ".pt2");
    save_pt2(*load(entry.path()), path);
    json calls = entry.data.at("calls");
    for (json& call : calls)
      for (const char* side : {"inputs", "outputs"})
        for (json& item : call[side])
          if (item.contains("file")) item["file"] = entry.path(item["file"].get<std::string>());
    json expect = json::object();
    expect["state_dict"] = entry.data.at("state_dict");
    jobs.add(path, calls, entry.rtol(), entry.atol(), expect, false);
  }
  jobs.run(folder);
}

TEST(SavePt2, PythonRunsWhatWasMadeHere) {
  const at::NoGradGuard no_grad;
  const TempDir folder;
  PythonJobs jobs;
  for (Job& job : programs()) {
    SCOPED_TRACE(job.name);
    const std::string path = folder.path(job.name + ".pt2");
    save_pt2(*job.module, path, job.options);
    const auto again = load(path);
    const auto reference = job.module->deep_copy();
    json calls = json::array();
    std::size_t number = 0;
    for (const Values& inputs : job.calls) {
      const std::string prefix = folder.path(job.name + std::to_string(number++));
      json call{{"inputs", json::array()}, {"outputs", json::array()}};
      for (std::size_t i = 0; i < inputs.size(); ++i)
        call["inputs"].push_back(described(inputs[i], prefix + "in" + std::to_string(i) + ".npy"));
      const Values expected = call_flat(*reference, inputs), actual = call_flat(*again, inputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expect_close(actual[i], expected[i], 1e-6, 1e-6, "output " + std::to_string(i));
        call["outputs"].push_back(
            described(expected[i], prefix + "out" + std::to_string(i) + ".npy"));
      }
      calls.push_back(std::move(call));
    }
    jobs.add(path, calls, 1e-5, 1e-5, job.expect, job.decompose);
    // Once more it is the same text.
    EXPECT_EQ(text_of(*again), text_of(*written_and_read(*again, folder.path("again.pt2"))));
  }
  jobs.run(folder);
}

TEST(SavePt2, SignatureMutationsStaySo) {
  const TempDir folder;
  PythonJobs jobs;
  for (const char* name : {"buffer_mutation_functional", "batch_norm_training_functional",
                           "input_mutation_functional"}) {
    const std::string path = folder.path(std::string(name) + ".pt2");
    save_pt2(*load(zoo_path(name)), path);
    const auto targets = std::string(name) == "buffer_mutation_functional" ? json{"count", "total"}
                         : std::string(name) == "input_mutation_functional"
                             ? json::array()
                             : json{"1.num_batches_tracked", "1.running_mean", "1.running_var"};
    jobs.add(path, json::array(), 0, 0, {{"buffers_to_mutate", targets}, {"dialect", "ATEN"}},
             false);
  }
  jobs.run(folder);
}

TEST(SavePt2, RangesAndGuardsComeBackInPython) {
  const TempDir folder;
  PythonJobs jobs;
  const std::string path = folder.path("dynamic.pt2");
  save_pt2(*load(zoo_path("dynamic_batch")), path);
  jobs.add(path, json::array(), 0, 0,
           {{"guards", {"L['y'].size()[0] == L['x'].size()[0]"}},
            {"ranges", {{"s17", "1", "128"}, {"s94", "2", "int_oo"}}}},
           false);
  jobs.run(folder);
}

}  // namespace
}  // namespace fx
