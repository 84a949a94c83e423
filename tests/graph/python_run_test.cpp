// Python runs the source that python_code writes, torch.fx.symbolic_trace accepts it, and the
// results are those of the graph here. One Python process runs all cases: importing torch takes
// seconds.
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "fx/base/text.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_access.h"
#include "fx/graph/python_code.h"
#include "fx/graph/python_literals.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct Case {
  std::shared_ptr<GraphModule> module;
  Values inputs;
};

std::shared_ptr<GraphModule> make(const torch::nn::Module& root,
                                  const std::function<void(Graph&, Node&)>& build) {
  auto graph = std::make_shared<Graph>();
  build(*graph, graph->placeholder("x"));
  return std::make_shared<GraphModule>(root, graph);
}
std::shared_ptr<GraphModule> make(const std::function<void(Graph&, Node&)>& build) {
  return make(torch::nn::Module(), build);
}

at::Tensor ramp(at::IntArrayRef shape) {
  return (torch::arange(c10::multiply_integers(shape)).to(torch::kFloat) * 0.37f).sin().view(shape);
}

// Every module becomes a net of one call: what module_python_types.def names, with unusual options.
template <typename Holder>
void add_module_case(std::map<std::string, Case>& cases, const std::string& name, Holder holder,
                     at::Tensor input, bool tuple_result = false) {
  torch::nn::Module root;
  root.register_module("layer", holder.ptr());
  auto module = make(root, [&](Graph& g, Node& x) {
    Node& y = g.call_module("layer", {x});
    g.output(tuple_result ? g.call_function("operator.getitem", {y, 0}) : y);
  });
  module->eval();
  cases["module_" + name] = {module, {input}};
}

void add_module_cases(std::map<std::string, Case>& c) {
  namespace nn = torch::nn;
  const at::Tensor rows = ramp({4, 6}), line = ramp({2, 4, 9}), image = ramp({2, 4, 8, 8}),
                   volume = ramp({1, 4, 6, 6, 6});
  add_module_case(c, "Linear", nn::Linear(nn::LinearOptions(6, 3).bias(false)), rows);
  add_module_case(c, "Conv1d", nn::Conv1d(nn::Conv1dOptions(4, 6, 3).padding(torch::kSame)), line);
  add_module_case(c, "Conv2d",
                  nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 5})
                                 .stride({2, 1})
                                 .padding({1, 2})
                                 .dilation(1)
                                 .groups(2)
                                 .bias(false)
                                 .padding_mode(torch::kReflect)),
                  image);
  add_module_case(c, "Conv3d", nn::Conv3d(nn::Conv3dOptions(4, 2, 3)), volume);
  add_module_case(
      c, "ConvTranspose2d",
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 2, 3).stride(2).output_padding(1)), image);
  add_module_case(c, "BatchNorm1d", nn::BatchNorm1d(nn::BatchNorm1dOptions(6).eps(0.01)), rows);
  add_module_case(c, "BatchNorm2d",
                  nn::BatchNorm2d(nn::BatchNorm2dOptions(4).momentum(std::nullopt).affine(false)),
                  image);
  add_module_case(c, "InstanceNorm2d",
                  nn::InstanceNorm2d(nn::InstanceNorm2dOptions(4).affine(true)), image);
  add_module_case(c, "LayerNorm", nn::LayerNorm(nn::LayerNormOptions({8, 8}).eps(0.1)), image);
  add_module_case(c, "GroupNorm", nn::GroupNorm(nn::GroupNormOptions(2, 4)), image);
  add_module_case(c, "LocalResponseNorm",
                  nn::LocalResponseNorm(nn::LocalResponseNormOptions(2).k(2)), image);
  add_module_case(c, "Embedding", nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(1)),
                  torch::tensor({{1, 2}, {9, 0}}));
  add_module_case(c, "EmbeddingBag",
                  nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 3).mode(torch::kSum)),
                  torch::tensor({{1, 2}, {9, 0}}));
  add_module_case(c, "Dropout", nn::Dropout(0.3), rows);
  add_module_case(c, "ReLU6", nn::ReLU6(), rows * 9);
  add_module_case(c, "LeakyReLU", nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.3)), rows);
  add_module_case(c, "ELU", nn::ELU(nn::ELUOptions().alpha(0.5)), rows);
  add_module_case(c, "SELU", nn::SELU(), rows);
  add_module_case(c, "CELU", nn::CELU(nn::CELUOptions().alpha(2)), rows);
  add_module_case(c, "GELU", nn::GELU(nn::GELUOptions().approximate("tanh")), rows);
  add_module_case(c, "SiLU", nn::SiLU(), rows);
  add_module_case(c, "Mish", nn::Mish(), rows);
  add_module_case(c, "Softplus", nn::Softplus(nn::SoftplusOptions().beta(2).threshold(0.5)), rows);
  add_module_case(c, "Softshrink", nn::Softshrink(nn::SoftshrinkOptions(0.2)), rows);
  add_module_case(c, "Hardshrink", nn::Hardshrink(nn::HardshrinkOptions(0.2)), rows);
  add_module_case(c, "Hardtanh", nn::Hardtanh(nn::HardtanhOptions().min_val(-0.2).max_val(0.4)),
                  rows);
  add_module_case(c, "Threshold", nn::Threshold(nn::ThresholdOptions(0.1, 7)), rows);
  add_module_case(c, "PReLU", nn::PReLU(nn::PReLUOptions().num_parameters(6).init(0.1)), rows);
  add_module_case(c, "RReLU", nn::RReLU(nn::RReLUOptions().lower(0.1).upper(0.5)), rows);
  add_module_case(c, "GLU", nn::GLU(nn::GLUOptions(1)), rows);
  add_module_case(c, "Softmax", nn::Softmax(nn::SoftmaxOptions(0)), rows);
  add_module_case(c, "LogSoftmax", nn::LogSoftmax(nn::LogSoftmaxOptions(-1)), rows);
  add_module_case(c, "Flatten", nn::Flatten(nn::FlattenOptions().start_dim(2)), image);
  add_module_case(c, "Unflatten", nn::Unflatten(nn::UnflattenOptions(1, {2, 3})), rows);
  add_module_case(c, "MaxPool1d", nn::MaxPool1d(nn::MaxPool1dOptions(3).stride(2).padding(1)),
                  line);
  add_module_case(c, "MaxPool2d",
                  nn::MaxPool2d(nn::MaxPool2dOptions({3, 2}).dilation({1, 2}).ceil_mode(true)),
                  image);
  add_module_case(c, "AvgPool1d", nn::AvgPool1d(nn::AvgPool1dOptions(3).padding(1)), line);
  add_module_case(
      c, "AvgPool2d",
      nn::AvgPool2d(
          nn::AvgPool2dOptions(3).padding(1).count_include_pad(false).divisor_override(5)),
      image);
  add_module_case(c, "AdaptiveAvgPool1d", nn::AdaptiveAvgPool1d(5), line);
  add_module_case(c, "AdaptiveAvgPool2d",
                  nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, std::nullopt})), image);
  add_module_case(c, "AdaptiveMaxPool2d",
                  nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({3, 2})), image);
  add_module_case(c, "LPPool2d", nn::LPPool2d(nn::LPPool2dOptions(2, {2, 3}).stride(2)),
                  image.abs());
  add_module_case(c, "PixelShuffle", nn::PixelShuffle(nn::PixelShuffleOptions(2)), image);
  add_module_case(c, "PixelUnshuffle", nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2)), image);
  add_module_case(c, "UpsampleNearest",
                  nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2, 1.5})),
                  image);
  add_module_case(c, "UpsampleBilinear",
                  nn::Upsample(nn::UpsampleOptions()
                                   .size(std::vector<std::int64_t>{5, 11})
                                   .mode(torch::kBilinear)
                                   .align_corners(true)),
                  image);
  add_module_case(c, "ZeroPad2d", nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 2, 0, 1})), image);
  add_module_case(c, "ConstantPad1d", nn::ConstantPad1d(nn::ConstantPad1dOptions({1, 2}, 0.5)),
                  line);
  add_module_case(c, "ReflectionPad2d", nn::ReflectionPad2d(nn::ReflectionPad2dOptions(2)), image);
  add_module_case(c, "ReplicationPad3d", nn::ReplicationPad3d(nn::ReplicationPad3dOptions(1)),
                  volume);
  add_module_case(c, "Unfold", nn::Unfold(nn::UnfoldOptions({2, 3}).stride(2)), image);
  add_module_case(c, "RNN", nn::RNN(nn::RNNOptions(9, 5).nonlinearity(torch::kReLU)), line, true);
  add_module_case(c, "GRU", nn::GRU(nn::GRUOptions(9, 5).num_layers(2).batch_first(true)), line,
                  true);
  add_module_case(c, "LSTM", nn::LSTM(nn::LSTMOptions(9, 5).bidirectional(true).bias(false)), line,
                  true);
  add_module_case(c, "GRUCell", nn::GRUCell(nn::GRUCellOptions(6, 5)), rows);
  add_module_case(c, "LSTMCell", nn::LSTMCell(nn::LSTMCellOptions(6, 5)), rows, true);
}

// A tied weight, a module under two names, parameters that are not trained, another dtype, mixed
// flags.
std::shared_ptr<GraphModule> shared_and_frozen() {
  torch::nn::Module root;
  auto embedding = root.register_module("embedding", torch::nn::Embedding(7, 4));
  auto head =
      root.register_module("head", torch::nn::Linear(torch::nn::LinearOptions(4, 7).bias(false)));
  head->weight = embedding->weight;
  detail::assign(detail::parameters(*head), "weight", embedding->weight);
  auto frozen = root.register_module("frozen", torch::nn::Linear(7, 2));
  for (at::Tensor& p : frozen->parameters()) p.set_requires_grad(false);
  root.register_module("again", frozen);
  root.register_module("wide", torch::nn::Linear(2, 2))->to(torch::kDouble);
  root.register_module("drop", torch::nn::Dropout(0.5))->eval();
  return make(root, [](Graph& g, Node& x) {
    Node& e = g.call_module("embedding", {x});
    Node& h = g.call_module("head", {e});
    Node& f = g.call_module("frozen", {h});
    Node& d = g.call_module("drop", {f});
    Node& w = g.call_module("wide", {g.call_method("double", {d})});
    g.output(Argument::tuple({w, g.call_module("again", {h})}));
  });
}

std::shared_ptr<GraphModule> sequential() {
  torch::nn::Module root;
  root.register_module(
      "net", torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::ReLU(),
                                   torch::nn::LayerNorm(torch::nn::LayerNormOptions({8}))));
  return make(root, [](Graph& g, Node& x) {
    Node& a = g.call_module("net.0", {x});
    g.output(Argument::tuple({g.call_module("net.2", {a}), g.call_module("net", {x})}));
  });
}

// One GraphModule called twice inside another.
std::shared_ptr<GraphModule> nested_graphs() {
  auto inner_graph = std::make_shared<Graph>();
  auto inner = std::make_shared<GraphModule>(inner_graph, "Scale");
  inner->set_parameter("w", ramp({4}));
  Node& i = inner_graph->placeholder("i");
  inner_graph->output(inner_graph->call_function("operator.mul", {i, inner_graph->get_attr("w")}));
  inner->recompile();
  auto graph = std::make_shared<Graph>();
  auto outer = std::make_shared<GraphModule>(graph);
  outer->set_submodule("block.inner", inner);
  Node& x = graph->placeholder("x");
  Node& y = graph->call_module("block.inner", {x});
  graph->output(graph->call_module("block.inner", {y}));
  return outer;
}

void add_graph_cases(std::map<std::string, Case>& c) {
  const at::Tensor x = ramp({3, 4});
  torch::nn::Module branches;
  for (const char* name : {"sin", "cos"}) {
    auto branch = make([&](Graph& g, Node& x) {
      g.output(Argument::tuple({g.call_function("torch." + std::string(name), {x})}));
    });
    branches.register_module(name, std::shared_ptr<torch::nn::Module>(branch));
  }
  c["higher_order"] = {make(branches,
                            [](Graph& g, Node& x) {
                              Node& sum = g.call_method("sum", {x});
                              Node& result = g.call_function(
                                  "torch.ops.higher_order.cond",
                                  {g.call_function("operator.gt", {sum, 0}), g.get_attr("sin"),
                                   g.get_attr("cos"), Argument::tuple({x})});
                              g.output(g.call_function("operator.getitem", {result, 0}));
                            }),
                       {x}};
  c["operators"] = {
      make([](Graph& g, Node& x) {
        Node& a = g.call_function("operator.add", {x, 1});
        Node& b = g.call_function("operator.pow", {2, g.call_method("abs", {a})});
        Node& s = g.call_function("operator.sub", {5, a});
        Node& m = g.call_function("operator.matmul", {b, g.call_method("t", {s})});
        Node& n = g.call_function("operator.neg", {m});
        Node& i = g.call_function(
            "operator.getitem",
            {n, Argument::tuple({Argument::slice({}, 2, {}), Argument::ellipsis(), 1})});
        Node& lt = g.call_function("operator.lt", {i, 0});
        g.output(Argument::tuple({i, g.call_function("operator.invert", {lt})}));
      }),
      {x}};
  c["torch_and_aten"] = {
      make([](Graph& g, Node& x) {
        Node& a = g.call_function("torch.relu", {x});
        Node& b = g.call_function("aten::add.Tensor", {a, x}, {{"alpha", 2}});
        Node& cat = g.call_function("torch.cat", {Argument::list({a, b})}, {{"dim", 1}});
        Node& to = g.call_function("aten::to.dtype", {cat, 7});
        Node& sum = g.call_function("aten::sum.dim_IntList", {to, Argument::list({1}), true});
        Node& topk = g.call_function("torch.topk", {sum, 2}, {{"dim", 0}});
        g.output(Argument::list({topk, g.call_function("operator.getitem", {topk, 1}),
                                 g.call_function("aten::relu", {sum})}));
      }),
      {x}};
  c["shapes"] = {
      make([](Graph& g, Node& x) {
        Node& shape = g.call_function("builtins.getattr", {x, "shape"});
        Node& rows = g.call_function("operator.getitem", {shape, 0});
        Node& view = g.call_method("view", {x, -1});
        Node& size = g.call_method("size", {view});
        g.output(Argument::dict({{"rows", rows}, {"view", view}, {"size", size}, {1, true}}));
      }),
      {x}};
  c["in_place"] = {make([](Graph& g, Node& x) {
                     Node& y = g.call_method("clone", {x});
                     g.call_method("mul_", {y, 3});
                     Node& z = g.call_function("operator.iadd", {y, 1});
                     g.call_function("operator.setitem", {z, 0, 5.5});
                     g.call_function("aten::add_.Tensor", {y, x});
                     g.output(Argument::tuple({y, z}));
                   }),
                   {x}};
  c["values_used_again"] = {make([](Graph& g, Node& x) {
                              Node& a = g.call_function("torch.relu", {x});
                              Node& b = g.call_function("torch.neg", {a});
                              g.call_function("torch.exp", {b});
                              g.output(Argument::tuple({a, x, b, a}));
                            }),
                            {x}};
  c["names"] = {make([](Graph& g, Node& x) {
                  Node& input = g.placeholder("input");
                  Node& o = g.call_function("torch.relu", {x}, {}, "operator");
                  Node& s = g.call_function("operator.add", {o, input}, {}, "self");
                  g.output(g.call_function("operator.abs", {s}, {}, "math"));
                }),
                {x, x}};
  c["defaults"] = {[] {
                     auto graph = std::make_shared<Graph>();
                     Node& x = graph->placeholder("x");
                     Node& scale = graph->placeholder_with_default("scale", -2.5);
                     graph->output(graph->call_function("operator.mul", {x, scale}));
                     return std::make_shared<GraphModule>(graph);
                   }(),
                   {x}};
  c["literals"] = {make([](Graph& g, Node& x) {
                     constexpr double kInf = std::numeric_limits<double>::infinity();
                     Node& full = g.call_function(
                         "torch.full", {Argument::list({2}), -kInf},
                         {{"dtype", c10::ScalarType::Double}, {"device", c10::Device(c10::kCPU)}});
                     g.output(Argument::tuple({full, "tab\t'quote\"", 1e16, -0.0, Argument(), x}));
                   }),
                   {x}};
  c["attributes"] = {[] {
                       torch::nn::Module root;
                       root.register_parameter("scale", ramp({4}));
                       root.register_buffer("shift", ramp({4}).to(torch::kDouble));
                       auto module = make(root, [](Graph& g, Node& x) {
                         Node& a = g.call_function("operator.mul", {x, g.get_attr("scale")});
                         g.output(g.call_function("operator.add", {a, g.get_attr("shift")}));
                       });
                       return module;
                     }(),
                     {x}};
  c["constants"] = {
      [] {
        auto graph = std::make_shared<Graph>();
        auto module = std::make_shared<GraphModule>(graph);
        module->set_constant("small", torch::tensor({1.5, -0.25, 1e-30, 3.0}));
        module->set_constant("table", ramp({5, 4}));
        module->set_constant("mask", torch::tensor({true, false, true, true}));
        module->set_constant("low", ramp({4}).to(torch::kBFloat16));
        module->set_constant("nan", torch::tensor({NAN, INFINITY, 0.0f, -0.0f}));
        module->set_buffer("inner.cache", ramp({4}), /*persistent=*/false);
        Node& x = graph->placeholder("x");
        Args all{x};
        for (const char* path : {"small", "table", "mask", "low", "nan", "inner.cache"})
          all.push_back(graph->get_attr(path));
        graph->output(Argument::tuple(all));
        return module;
      }(),
      {x}};
  c["nested_graphs"] = {nested_graphs(), {x}};
  c["shared_and_frozen"] = {shared_and_frozen(), {torch::tensor({{1, 2, 3}, {6, 0, 0}})}};
  c["sequential"] = {sequential(), {x}};
}

class PythonRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::manual_seed(1);
    std::map<std::string, Case> cases;
    add_graph_cases(cases);
    add_module_cases(cases);
    folder_ =
        std::filesystem::temp_directory_path() / ("fxcpp_python_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream script(folder_ / "run.py");
    script << kPrologue;
    for (auto& [name, c] : cases) write_case(script, name, c);
    script.close();
    const char* python = std::getenv("FXCPP_PYTHON");
    const std::string command = "cd " + folder_.string() + " && '" +
                                (python ? python : FXCPP_PYTHON_REF) + "' run.py > out.txt 2>&1";
    status_ = std::system(command.c_str());
    std::ifstream out(folder_ / "out.txt");
    std::string line;
    while (std::getline(out, line)) {
      if (line.starts_with("== ")) {
        const std::size_t blank = line.find(' ', 3);
        results_[line.substr(3, blank - 3)] = line.substr(blank + 1);
      } else {
        messages_ += line + "\n";
      }
    }
    for (const auto& [name, c] : cases) names_.push_back(name);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static void expect_all(std::string_view prefix) {
    EXPECT_EQ(status_, 0) << messages_;
    int count = 0;
    for (const std::string& name : names_) {
      const bool module = name.starts_with("module_");
      if (module != (prefix == "module_")) continue;
      ++count;
      EXPECT_EQ(results_[name], "ok") << name << "\n" << messages_;
    }
    EXPECT_GT(count, 10);
  }

 private:
  // Exact: the bytes of the tensor.
  static std::string tensor_source(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.detach().contiguous();
    std::string bytes = "b'";
    constexpr char kHex[] = "0123456789abcdef";
    const auto* data = static_cast<const unsigned char*>(dense.data_ptr());
    for (std::size_t i = 0; i < dense.nbytes(); ++i)
      bytes += {'\\', 'x', kHex[data[i] >> 4], kHex[data[i] & 15]};
    std::ostringstream sizes;
    for (std::int64_t size : dense.sizes()) sizes << size << ",";
    return "T(" + bytes + "', " + dtype_repr(dense.scalar_type()) + ", (" + sizes.str() + "))";
  }

  static std::string source(const Value& value) {
    if (value.isTensor()) return tensor_source(value.toTensor());
    if (value.isTuple() || value.isList()) {
      std::string out = value.isTuple() ? "(" : "[";
      for (const Value& item : elements(value)) out += source(item) + ", ";
      return out + (value.isTuple() ? ")" : "]");
    }
    if (value.isGenericDict()) {
      std::string out = "{";
      for (const auto& item : value.toGenericDict())
        out += source(item.key()) + ": " + source(item.value()) + ", ";
      return out + "}";
    }
    if (value.isString()) return python::string_literal(value.toStringRef());
    return to_string(value);
  }

  static void write_case(std::ofstream& script, const std::string& name, Case& c) {
    std::ofstream(folder_ / (name + ".py")) << c.module->python_code();
    std::string inputs, state;
    for (const Value& input : c.inputs) inputs += source(input) + ", ";
    for (const auto& [key, tensor] : c.module->state_dict())
      state += str_repr(key) + ": " + tensor_source(tensor) + ", ";
    c.module->recompile();
    const Value expected = c.module->forward(c.inputs);
    script << "check('" << name << "', (" << inputs << "), {" << state << "}, " << source(expected)
           << ")\n";
  }

  static constexpr const char* kPrologue = R"py(
import copy, importlib, sys, traceback
import torch, torch.fx

failed = False

def T(data, dtype, shape):
    if not data:
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).clone()

def same(found, wanted, where):
    if isinstance(wanted, torch.Tensor):
        assert isinstance(found, torch.Tensor), (where, found)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape, (where, found, wanted)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
    elif isinstance(wanted, (tuple, list)):
        assert isinstance(found, (tuple, list)) and len(found) == len(wanted), (where, found)
        for i, (a, b) in enumerate(zip(found, wanted)):
            same(a, b, f'{where}[{i}]')
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted), (where, found)
        for key in wanted:
            same(found[key], wanted[key], f'{where}[{key!r}]')
    else:
        assert type(found) is type(wanted) and repr(found) == repr(wanted), (where, found, wanted)

def check(name, inputs, state, wanted):
    global failed
    try:
        module = importlib.import_module(name)
        net = module.GraphModule()
        assert sorted(net.state_dict()) == sorted(state), (sorted(net.state_dict()), sorted(state))
        net.load_state_dict(state)
        same(net(*copy.deepcopy(inputs)), wanted, 'result')
        if name.startswith('higher_order'):  # runs in Python, whose tracer refuses it
            print('==', name, 'ok')
            return
        traced = torch.fx.symbolic_trace(net)
        same(traced(*copy.deepcopy(inputs)), wanted, 'traced result')
        print('==', name, 'ok')
    except Exception:
        failed = True
        traceback.print_exc(file=sys.stdout)
        print('==', name, 'failed')

sys.path.insert(0, '.')
)py";

  static inline std::filesystem::path folder_;
  static inline int status_ = -1;
  static inline std::map<std::string, std::string> results_;
  static inline std::vector<std::string> names_;
  static inline std::string messages_;
};

TEST_F(PythonRun, graphs_give_the_same_results_and_trace_again) { expect_all("graph"); }
TEST_F(PythonRun, modules_of_torch_nn_are_constructed_alike) { expect_all("module_"); }

}  // namespace
}  // namespace fx
