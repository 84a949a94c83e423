// torch.fx's TestLazyGraphModule (test_lazy_graph_module.py): what captures, files and compilation
// make of a module whose program waits. The rest is in tests/run/lazy_test.cpp.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/compile/compile.h"
#include "fx/graph/lazy_recompile.h"
#include "fx/io/import_export.h"
#include "fx/io/save_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// sin(x) + 1, traced, then edited to cos(x) + 1; recompiled, but not built.
std::shared_ptr<GraphModule> waiting_module() {
  const UseLazyRecompile lazy;
  auto module = symbolic_trace([](Proxy x) { return torch::sin(static_cast<at::Tensor>(x)) + 1; });
  EXPECT_TRUE(module->lazy_recompile());
  for (Node& node : module->graph().nodes())
    if (node.target() == "aten::sin") node.set_target("aten::cos");
  module->recompile();
  EXPECT_TRUE(module->needs_recompile());
  return module;
}

const at::Tensor kX = torch::linspace(-2, 2, 7);
at::Tensor wanted() { return kX.cos() + 1; }

TEST(LazyModule, R_079_recapture_with_make_fx) {
  const auto module = waiting_module();
  const auto made = make_fx([&](at::Tensor x) { return (*module)(x).toTensor(); }, {kX});
  EXPECT_TRUE(torch::equal((*made)(kX).toTensor(), wanted()));
}

TEST(LazyModule, R_079_recapture_with_symbolic_trace) {
  const auto module = waiting_module();
  const auto traced = symbolic_trace(*module);
  EXPECT_TRUE(torch::equal((*traced)(kX).toTensor(), wanted()));
}

// torch.fx recaptures by Dynamo; what compiles programs here is fx::compile.
TEST(LazyModule, R_079_recapture_with_compile) {
  const auto module = waiting_module();
  const Compiled fast = compile(module);
  EXPECT_TRUE(torch::allclose(fast(kX).toTensor(), wanted(), 1.3e-6, 1e-6));
  EXPECT_TRUE(torch::equal((*module)(kX).toTensor(), wanted()));
}

TEST(LazyModule, R_079_pickle) {
  const auto module = waiting_module();
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("fxcpp-lazy-" + std::to_string(::getpid()) + ".fxa"))
                               .string();
  save(*module, path);
  EXPECT_TRUE(module->needs_recompile()) << "saving reads the graph, not the program";
  const auto loaded = load(path);
  EXPECT_TRUE(torch::equal((*loaded)(kX).toTensor(), wanted()));
  {
    const UseLazyRecompile lazy;
    const auto waits = load(path);
    EXPECT_TRUE(waits->needs_recompile());
    EXPECT_TRUE(torch::equal((*waits)(kX).toTensor(), wanted()));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fx
