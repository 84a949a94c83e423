// The C++ source of graphs compiles against LibTorch alone and gives what the graph gives. One
// compiler run for all cases, into a shared object: the headers of LibTorch cost seconds.
#include <dlfcn.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "fx/graph/cpp_code.h"
#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct Case {
  std::string name;
  std::shared_ptr<GraphModule> module;
  Values inputs;
};

at::Tensor ramp(at::IntArrayRef shape) {
  return (torch::arange(c10::multiply_integers(shape)).to(torch::kFloat) * 0.37f).sin().view(shape);
}

std::shared_ptr<GraphModule> make(const torch::nn::Module& root,
                                  const std::function<void(Graph&, Node&)>& build) {
  auto graph = std::make_shared<Graph>();
  build(*graph, graph->placeholder("x"));
  return std::make_shared<GraphModule>(root, graph);
}

// A small convolution net with most kinds of modules.
std::shared_ptr<GraphModule> conv_net() {
  namespace nn = torch::nn;
  nn::Module root;
  root.register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1).stride(2)));
  root.register_module("bn", nn::BatchNorm2d(4));
  root.register_module("pool", nn::MaxPool2d(2));
  root.register_module("flat", nn::Flatten());
  root.register_module("head", nn::Sequential(nn::Linear(16, 8), nn::ReLU(), nn::Dropout(0.5),
                                              nn::LayerNorm(nn::LayerNormOptions({8})), nn::GELU(),
                                              nn::Softmax(nn::SoftmaxOptions(1))));
  auto module = make(root, [](Graph& g, Node& x) {
    Node* y = &x;
    for (const char* path : {"conv", "bn", "pool", "flat", "head"}) y = &g.call_module(path, {*y});
    g.output(*y);
  });
  module->eval();
  return module;
}

// What capture of operators gives: overloads, several results, lists, views, in-place, factories.
std::shared_ptr<GraphModule> operators() {
  return make(torch::nn::Module(), [](Graph& g, Node& x) {
    Node& a = g.call_function("aten::add.Tensor", {x, x}, {{"alpha", 0.5}});
    Node& t = g.call_function("aten::topk", {a, 2, 1});
    Node& values = g.call_function("operator.getitem", {t, 0});
    Node& parts = g.call_function("aten::split.Tensor", {a, 2, 1});
    Node& first = g.call_function("operator.getitem", {parts, 0});
    Node& cat = g.call_function("aten::cat", {Argument::list({values, first}), 1});
    Node& view = g.call_function("aten::view", {cat, Argument::list({-1})});
    g.call_function("aten::mul_.Tensor", {view, view});
    Node& mask = g.call_function("aten::gt.Scalar", {view, 0.5});
    Node& zeros = g.call_function("aten::zeros_like", {view},
                                  {{"dtype", 7}, {"layout", 0}, {"pin_memory", false}});
    Node& where = g.call_function("aten::where.self", {mask, view, zeros});
    Node& index =
        g.call_function("aten::index.Tensor",
                        {x, Argument::list({Argument(), g.call_function("aten::arange", {2})})});
    Node& norm = g.call_function("aten::linalg_vector_norm", {index, 2});
    Node& up = g.call_function("aten::upsample_nearest1d",
                               {g.call_function("aten::unsqueeze", {x, 0}), Argument::list({8})});
    g.output(Argument::list({where, norm, up, cat}));
  });
}

// What tracing of Python-like code gives: operators, methods, shapes, indices.
std::shared_ptr<GraphModule> python_like() {
  return make(torch::nn::Module(), [](Graph& g, Node& x) {
    Node& y = g.call_method("clone", {x});
    g.call_function("operator.iadd", {y, 1});
    g.call_function("operator.setitem", {y, Argument::tuple({0, Argument::slice(1, {})}), -2.5});
    Node& rows = g.call_method("size", {y, 0});
    Node& half = g.call_function("operator.floordiv", {rows, -2});
    Node& shape = g.call_function("builtins.getattr", {y, "shape"});
    Node& columns = g.call_function("operator.getitem", {shape, -1});
    Node& total = g.call_function("operator.mul", {half, columns});
    Node& sum = g.call_function("torch.sum", {y}, {{"dim", 1}, {"keepdim", true}});
    Node& flipped = g.call_function(
        "operator.getitem", {y, Argument::tuple({Argument::ellipsis(), Argument::list({3, 0})})});
    Node& power =
        g.call_function("operator.pow", {2, g.call_function("operator.sub", {1, flipped})});
    Node& ratio = g.call_function("operator.truediv", {3, sum});
    Node& two = g.call_function("torch.tensor", {Argument::list({2.0, 0.25})});
    Node& wide = g.call_method("double", {g.call_function("operator.matmul", {power, two})});
    g.output(Argument::dict({{"power", power},
                             {"ratio", ratio},
                             {"wide", wide},
                             {"numbers", Argument::tuple({rows, half, total, 1.5, true, "text\n"})},
                             {"none", Argument()}}));
  });
}

// Attributes, a constant, and one GraphModule called twice.
std::shared_ptr<GraphModule> attributes() {
  auto inner_graph = std::make_shared<Graph>();
  auto inner = std::make_shared<GraphModule>(inner_graph);
  inner->set_parameter("w", ramp({4}));
  Node& i = inner_graph->placeholder("i");
  inner_graph->output(inner_graph->call_function("operator.mul", {i, inner_graph->get_attr("w")}));
  inner->recompile();
  auto graph = std::make_shared<Graph>();
  auto outer = std::make_shared<GraphModule>(graph);
  outer->set_submodule("block.inner", inner);
  outer->set_buffer("shift", ramp({4}).to(torch::kDouble));
  outer->set_constant("table", ramp({3, 4}));
  Node& x = graph->placeholder("x");
  Node& y = graph->call_module("block.inner", {x});
  Node& z = graph->call_module("block.inner", {y});
  Node& a = graph->call_function("operator.add", {z, graph->get_attr("shift")});
  graph->output(
      Argument::tuple({a, graph->call_function("operator.add", {z, graph->get_attr("table")})}));
  return outer;
}

std::vector<Case> all_cases() {
  const at::Tensor x = ramp({3, 4});
  return {{"conv_net", conv_net(), {ramp({2, 3, 8, 8})}},
          {"operators", operators(), {x}},
          {"python_like", python_like(), {x}},
          {"attributes", attributes(), {x}}};
}

// What the code reads: the state_dict and the constants.
std::map<std::string, at::Tensor> weights_of(const GraphModule& module) {
  std::map<std::string, at::Tensor> out;
  for (const auto& [path, tensor] : module.state_dict()) out[path] = tensor;
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kGetAttr)
      out[node.target().str()] = module.find_tensor(node.target().str());
  return out;
}

void expect_same(const Value& found, const Value& wanted, const std::string& where) {
  SCOPED_TRACE(where);
  if (wanted.isTensor()) {
    ASSERT_TRUE(found.isTensor()) << found.tagKind();
    EXPECT_EQ(found.toTensor().scalar_type(), wanted.toTensor().scalar_type());
    EXPECT_TRUE(at::equal(found.toTensor(), wanted.toTensor())) << found.toTensor() << "\nwanted\n"
                                                                << wanted.toTensor();
  } else if (wanted.isTuple() || wanted.isList()) {
    const Values a = elements(found), b = elements(wanted);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      expect_same(a[i], b[i], where + "[" + std::to_string(i) + "]");
  } else if (wanted.isGenericDict()) {
    ASSERT_TRUE(found.isGenericDict());
    const auto a = found.toGenericDict(), b = wanted.toGenericDict();
    ASSERT_EQ(a.size(), b.size());
    for (const auto& item : b) {
      ASSERT_TRUE(a.contains(item.key()));
      expect_same(a.at(item.key()), item.value(), where + "." + item.key().toStringRef());
    }
  } else {
    EXPECT_EQ(to_string(found), to_string(wanted));
    EXPECT_EQ(found.tagKind(), wanted.tagKind());
  }
}

TEST(CppRun, compiled_code_gives_what_the_graph_gives) {
  torch::manual_seed(3);
  const std::vector<Case> cases = all_cases();
  const auto folder =
      std::filesystem::temp_directory_path() / ("fxcpp_cpp_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream source(folder / "cases.cpp");
  for (const Case& c : cases) source << cpp_code(c.module->graph(), {.name_space = c.name}) << "\n";
  for (const Case& c : cases)
    source
        << "extern \"C\" void run_" << c.name
        << "(const std::map<std::string, at::Tensor>& weights, const at::Tensor& x, c10::IValue& "
           "result) {\n  result = "
        << c.name << "::forward(weights, x);\n}\n";
  source.close();

  const std::string library = (folder / "cases.so").string(), log = (folder / "log.txt").string();
  const std::string command =
      std::string(FXCPP_CXX) +
      " -std=c++20 -O0 -fPIC -shared -w -isystem " FXCPP_TORCH_ROOT
      "/include -isystem " FXCPP_TORCH_ROOT "/include/torch/csrc/api/include " +
      (folder / "cases.cpp").string() + " -o " + library + " > " + log + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << std::ifstream(log).rdbuf();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();

  using Run = void (*)(const std::map<std::string, at::Tensor>&, const at::Tensor&, c10::IValue&);
  for (const Case& c : cases) {
    auto run = reinterpret_cast<Run>(dlsym(handle, ("run_" + c.name).c_str()));
    ASSERT_NE(run, nullptr) << c.name;
    const Value wanted = Interpreter(*c.module).run(c.inputs);
    Value found;
    run(weights_of(*c.module), c.inputs[0].toTensor(), found);
    expect_same(found, wanted, c.name);
  }
  // The library stays loaded: types of its own may be held by LibTorch.
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fx
