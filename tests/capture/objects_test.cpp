// Objects of classes that are registered with LibTorch (torch::class_) in graphs.
#include <torch/custom_class.h>
#include <torch/torch.h>

#include "fx/capture/symbolic_trace.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

struct FooBar : torch::CustomClassHolder {
  explicit FooBar(std::int64_t given) : factor(given) {}
  std::int64_t get() const { return factor; }
  at::Tensor scaled(const at::Tensor& x, std::int64_t more) const { return x * factor + more; }
  std::int64_t factor;
};

TORCH_LIBRARY(fxcpp_objects_test, m) {
  m.class_<FooBar>("FooBar")
      .def(torch::init<std::int64_t>())
      .def("get", &FooBar::get)
      .def("scaled", &FooBar::scaled, "", {torch::arg("x"), torch::arg("more") = 1});
}

// torch.fx's test_torchbind_class_attribute_in_fx; the object is an input of the graph.
TEST(Objects, F_147_F_148_methods_are_recorded_and_called) {
  auto module = symbolic_trace([](Proxy foo, Proxy x) {
    Proxy scaled = foo.call_method("scaled", {x}, {kw("more", 5)});
    return std::make_tuple(scaled, foo.call_method("scaled", {x}), foo.call_method("get"));
  });
  module->graph().lint({.strict = true});
  EXPECT_EQ(module->graph().find_nodes(Opcode::kCallMethod).size(), 3u);
  const Value foo = c10::make_intrusive<FooBar>(3);
  const at::Tensor x = torch::tensor({1.f, 2.f});
  for (const bool interpreted : {false, true}) {
    const Value out = interpreted ? Interpreter(*module).run({foo, x}) : (*module)(foo, x);
    const auto& items = out.toTupleRef().elements();
    EXPECT_TRUE(torch::equal(items[0].toTensor(), x * 3 + 5));
    EXPECT_TRUE(torch::equal(items[1].toTensor(), x * 3 + 1));
    EXPECT_EQ(items[2].toInt(), 3);
  }
  auto missing = symbolic_trace([](Proxy v) { return v.call_method("nothing"); });
  EXPECT_FX_ERROR((*missing)(foo), RunError, kNodeFailed, "has no method 'nothing'");
  auto wrong = symbolic_trace([](Proxy v) { return v.call_method("scaled"); });
  EXPECT_FX_ERROR((*wrong)(foo), RunError, kNodeFailed, "missing value for argument 'x'");
  // A method that tensors have as well.
  auto both = symbolic_trace([](Proxy v) { return v.call_method("get"); });
  EXPECT_EQ((*both)(foo).toInt(), 3);
}

}  // namespace
}  // namespace fx
