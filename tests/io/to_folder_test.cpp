// The project that to_folder writes is complete, compiles against LibTorch alone and gives what the
// graph gives.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fx/io/npy.h"
#include "fx/io/to_folder.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::read_file;
using testing::TempDir;
namespace nn = torch::nn;

// Modules, a buffer of integers, a constant, a nested graph and a number with a default.
std::shared_ptr<GraphModule> small_net() {
  auto inner_graph = std::make_shared<Graph>();
  auto inner = std::make_shared<GraphModule>(inner_graph);
  inner->set_parameter("w", torch::full({4}, 0.5));
  inner->set_constant("c", torch::arange(4));
  Node& i = inner_graph->placeholder("i");
  Node& m = inner_graph->call_function("operator.mul", {i, inner_graph->get_attr("w")});
  inner_graph->output(inner_graph->call_function("operator.add", {m, inner_graph->get_attr("c")}));
  inner->recompile();
  nn::Module root;
  root.register_module("fc", nn::Linear(3, 4));
  root.register_module("norm", nn::BatchNorm1d(4));
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& scale = graph->placeholder_with_default("scale", 2.5);
  Node& y = graph->call_module("norm", {graph->call_module("fc", {x})});
  auto module = std::make_shared<GraphModule>(root, graph, "Net");
  module->set_submodule("inner", inner);
  module->set_buffer("steps", torch::tensor(7));
  Node& z = graph->call_module("inner", {graph->call_function("operator.mul", {y, scale})});
  graph->output(
      Argument::tuple({graph->call_function("operator.add", {z, graph->get_attr("steps")}), y}));
  module->set_input_guards({{"x", at::kFloat, {{.symbol = "s0", .min = 2}, {.size = 3}}}});
  module->eval();
  module->recompile();
  return module;
}

TEST(ToFolder, E_031_M_013_project_compiles_and_runs) {
  torch::NoGradGuard no_grad;
  const auto module = small_net();
  const TempDir temp;
  const std::string folder = temp.path("made/net");
  to_folder(*module, folder, "Net");
  for (const char* file :
       {"CMakeLists.txt", "README.md", "Net.h", "main.cpp", "weights.h", "weights.bin"})
    EXPECT_TRUE(std::filesystem::is_regular_file(folder + "/" + file)) << file;
  EXPECT_NE(read_file(folder + "/weights.h").find("{\"steps\", at::ScalarType::Long, {}, "),
            std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(folder + "/weights.bin") % 64, 0u);

  auto shell = [&](const std::string& command) {
    const std::string log = temp.path("log.txt");
    const int status = std::system((command + " > " + log + " 2>&1").c_str());
    return std::pair(status, read_file(log));
  };
  const auto [configured, configure_log] =
      shell("cmake -S " + folder + " -B " + folder +
            "/build -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_CXX_COMPILER=" FXCPP_CXX
            " -DTORCH_ROOT=" FXCPP_TORCH_ROOT);
  ASSERT_EQ(configured, 0) << configure_log;
  const auto [built, build_log] = shell("cmake --build " + folder + "/build");
  ASSERT_EQ(built, 0) << build_log;

  const at::Tensor x = torch::randn({5, 3});
  write_npy(temp.path("x.npy"), x);
  const std::string program = folder + "/build/Net";
  const auto run = shell(program + " " + temp.path("x.npy") + " 1.5 -o " + temp.path("y.npy"));
  ASSERT_EQ(run.first, 0) << run.second;
  const at::Tensor wanted = elements((*module)(x, 1.5))[0].toTensor();
  EXPECT_TRUE(at::equal(read_npy(temp.path("y.npy")), wanted));
  // Ones of the shape it was made for, and defaults.
  const auto ones = shell(program + " -o " + temp.path("y.npy"));
  ASSERT_EQ(ones.first, 0) << ones.second;
  EXPECT_TRUE(at::equal(read_npy(temp.path("y.npy")),
                        elements((*module)(torch::ones({2, 3})))[0].toTensor()));
  const auto bad = shell(program + " f32[2,x");
  EXPECT_NE(bad.first, 0);
  EXPECT_NE(bad.second.find("Net: input x: "), std::string::npos) << bad.second;
}

TEST(ToFolder, nothing_is_written_when_it_cannot_be) {
  const TempDir temp;
  GraphModule wrapped;
  wrapped.graph().output(
      wrapped.graph().call_function("my_function", {wrapped.graph().placeholder("x")}));
  EXPECT_THROW(to_folder(wrapped, temp.path("a")), GraphError);
  EXPECT_THROW(to_folder(*small_net(), temp.path("a"), "no name"), GraphError);
  GraphModule sparse;
  sparse.set_buffer("s", torch::eye(2).to_sparse());
  sparse.graph().output(sparse.graph().placeholder("x"));
  EXPECT_THROW(to_folder(sparse, temp.path("a")), ImportError);
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
  temp.write("file", "");
  testing::expect_import_error(ErrorCode::kWriteFailed, {"Cannot make the folder"},
                               [&] { to_folder(*small_net(), temp.path("file") + "/b"); });
}

}  // namespace
}  // namespace fx::io
