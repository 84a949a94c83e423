// torch::nn::functional under symbolic tracing (torch.fx's TestFunctionalTracing): what is recorded
// and what asks a proxy for something it does not have.
#include <torch/torch.h>

#include <optional>

#include "fx/capture/symbolic_trace.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace F = torch::nn::functional;
using T = at::Tensor;

struct Case {
  const char* name;
  std::function<T(T)> call;
  T input;
  std::optional<ErrorCode> refused = {};
};

TEST(Functional, F_208_traces_or_says_what_it_asked_for) {
  constexpr ErrorCode kAsked = ErrorCode::kConcreteValue;
  const T flat = torch::rand({4, 6}), signal = torch::rand({2, 4, 8});
  const T image = torch::rand({2, 4, 8, 8}), volume = torch::rand({1, 2, 4, 4, 4});
  const T target = torch::rand({4, 6}), classes = torch::tensor({1, 0, 5, 2});
  const T weight = torch::rand({3, 6}), kernel = torch::rand({3, 4, 3, 3});
  const std::vector<Case> cases = {
#include "tests/capture/functional_cases.inc"
  };
  std::size_t traced = 0;
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    std::optional<ErrorCode> found;
    std::shared_ptr<GraphModule> module;
    try {
      module = symbolic_trace([&](T x) { return each.call(x); });
    } catch (const TraceError& error) {
      found = error.code();
      EXPECT_NE(std::string(error.what()).find("Proxy("), std::string::npos) << error.what();
    }
    EXPECT_EQ(found, each.refused);
    if (!module) continue;
    ++traced;
    module->graph().lint({.strict = true});
    EXPECT_TRUE(torch::allclose((*module)(each.input).toTensor(), each.call(each.input)));
  }
  EXPECT_GT(traced, 40u);
}

}  // namespace
}  // namespace fx
