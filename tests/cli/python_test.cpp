// Models that Python exported: `run` and `check` give Python's outputs, and the Python code that
// `graph` writes gives the same again. Needs FXCPP_PYTHON with torch and torchvision.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "fx/io/npy.h"
#include "tests/cli/tool.h"

namespace fx::cli_test {
namespace {

using testing::HasSubstr;

/// Of the largest element: outputs near zero are differences of larger numbers.
constexpr double kRelative = 1e-4;

/// Runs FXCPP_PYTHON; its output is shown when it fails.
int python(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string log = folder.file("python.log");
  const std::string command = "\"$FXCPP_PYTHON\" " + arguments + " > '" + log + "' 2>&1";
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  EXPECT_EQ(code, 0) << command << "\n" << read_file(log);
  return code;
}

/// The folder with the exported models, made at the first use.
const TemporaryFolder& exported() {
  static const TemporaryFolder folder;
  static const int code =
      python(folder, "'" + source("scripts/export_zoo.py") + "' '" + folder.path() +
                         "' --only resnet18 mobilenet_v3_large transformer_encoder");
  EXPECT_EQ(code, 0);
  return folder;
}

/// The entry of a model in the manifest.
Json entry(const std::string& name) {
  const Json manifest = Json::parse(read_file(exported().file("manifest.json")));
  for (const Json& model : manifest.at("models"))
    if (model.at("name") == name) return model;
  ADD_FAILURE() << name << " was not exported";
  return {};
}

class PythonReference : public testing::TestWithParam<const char*> {};

TEST_P(PythonReference, RunAndCheckAgreeWithPython) {
  const TemporaryFolder& folder = exported();
  const Json model = entry(GetParam());
  const std::string file = folder.file(model.at("file"));
  for (const Json& call : model.at("calls")) {
    std::vector<std::string> inputs;
    for (const Json& input : call.at("inputs")) {
      inputs.push_back("-i");
      inputs.push_back("@" + folder.file(input.at("file")));
    }
    const std::string reference = folder.file(call.at("outputs").at(0).at("file"));
    const at::Tensor expected = io::read_npy(reference);
    const double scale = expected.abs().max().item<double>();
    for (const char* backend : {"plan", "interpret"}) {
      SCOPED_TRACE(backend);
      std::vector<std::string> run = {"run",   file, "--backend",
                                      backend, "-o", folder.file("out.npy")};
      run.insert(run.end(), inputs.begin(), inputs.end());
      const ToolResult ran = run_tool(run);
      ASSERT_EQ(ran.status, 0) << ran.err;
      const at::Tensor actual = io::read_npy(folder.file("out.npy"));
      ASSERT_EQ(actual.sizes(), expected.sizes());
      EXPECT_LE((actual - expected).abs().max().item<double>(), kRelative * scale);

      std::vector<std::string> check = {"check",     file,
                                        "--backend", backend,
                                        "--against", reference,
                                        "--rtol",    std::to_string(kRelative),
                                        "--atol",    std::to_string(kRelative * scale)};
      check.insert(check.end(), inputs.begin(), inputs.end());
      const ToolResult checked = run_tool(check);
      EXPECT_EQ(checked.status, 0) << checked.out << checked.err;
    }
    std::vector<std::string> nodes = {"check", file, "--all-nodes"};
    nodes.insert(nodes.end(), inputs.begin(), inputs.end());
    const ToolResult compared = run_tool(nodes);
    EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PythonReference,
                         testing::Values("resnet18", "mobilenet_v3_large", "transformer_encoder"));

TEST(PythonReferenceCode, ResNetRunsInTorchFxAndGivesWhatTheToolGives) {
  const TemporaryFolder& folder = exported();
  const Json model = entry("resnet18");
  const std::string file = folder.file(model.at("file"));
  const std::string input = folder.file(model.at("calls").at(0).at("inputs").at(0).at("file"));
  const std::string code = folder.file("generated.py");
  const ToolResult written = run_tool({"graph", file, "--format", "python", "-o", code});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("Resnet18().load_state_dict("));
  const ToolResult ran = run_tool({"run", file, "-i", "@" + input, "-o", folder.file("cpp.npy")});
  ASSERT_EQ(ran.status, 0) << ran.err;

  const std::string script = folder.write("run_generated.py", R"(
import sys
import numpy, torch
folder, model, x = sys.argv[1:]
sys.path.insert(0, folder)
from generated import Resnet18
net = Resnet18()
net.load_state_dict(torch.export.load(model).state_dict)
traced = torch.fx.symbolic_trace(net)
traced.graph.lint()
assert any(node.op == "call_function" for node in traced.graph.nodes)
with torch.no_grad():
    y = traced(torch.from_numpy(numpy.load(x)))
y = y[0] if isinstance(y, (tuple, list)) else y
numpy.save(folder + "/python.npy", y.numpy())
)");
  ASSERT_EQ(
      python(folder, "'" + script + "' '" + folder.path() + "' '" + file + "' '" + input + "'"), 0);
  const at::Tensor from_cpp = io::read_npy(folder.file("cpp.npy"));
  const at::Tensor from_python = io::read_npy(folder.file("python.npy"));
  ASSERT_EQ(from_cpp.sizes(), from_python.sizes());
  EXPECT_LE((from_cpp - from_python).abs().max().item<double>(),
            kRelative * from_python.abs().max().item<double>());
}

}  // namespace
}  // namespace fx::cli_test
