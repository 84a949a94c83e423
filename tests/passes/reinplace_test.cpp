#include "fx/passes/reinplace.h"

#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "fx/passes/dce.h"
#include "fx/passes/tensor_geometry.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// The targets of the calls, in order.
std::vector<std::string> calls_of(const GraphModule& gm) {
  std::vector<std::string> out;
  for (const Node& node : gm.graph().nodes())
    if (node.op() == Opcode::kCallFunction) out.push_back(node.target().str());
  return out;
}

using Calls = std::vector<std::string>;

// Applies the pass, and compares what the module computes, and leaves in its inputs, with before.
std::shared_ptr<GraphModule> reinplaced(const std::string& text, const Values& inputs,
                                        const ReinplaceOptions& options = {}) {
  auto gm = parse_module(text);
  Values before, after;
  for (const Value& input : inputs) before.push_back(clone_tensors(input));
  for (const Value& input : inputs) after.push_back(clone_tensors(input));
  const Value expected = clone_tensors(Interpreter(*gm).run(before));
  reinplace(*gm, inputs, options);
  gm->graph().lint({.strict = true});
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(after));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_VALUES_EQ(before[i], after[i]);
  }
  return gm;
}

// Views of a clone, as the tests of torch.fx have them; the rest differs.
std::string with_views(const std::string& rest) {
  return R"(
%x = placeholder[target=x]
%a = call_function[target=aten::clone](args = (%x,))
%b = call_function[target=aten::select.int](args = (%a, 1, 1))
%c = call_function[target=aten::select.int](args = (%b, 0, 1))
%changed = call_function[target=aten::add.Tensor](args = (%c, 1))
)" + rest;
}

TEST(Reinplace, R_094_basic_and_with_a_view) {
  const Values x{Value(torch::ones({2}))};
  EXPECT_EQ(calls_of(*reinplaced(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::clone](args = (%x,))
%b = call_function[target=aten::add.Tensor](args = (%a, 1))
return %b
)",
                                 x)),
            (Calls{"aten::clone", "aten::add_.Tensor"}));
  // The first one stays: the view that the second one reads shows the same memory.
  EXPECT_EQ(calls_of(*reinplaced(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::clone](args = (%x,))
%v = call_function[target=aten::view](args = (%a, [-1]))
%b = call_function[target=aten::add.Tensor](args = (%a, 1))
%c = call_function[target=aten::add.Tensor](args = (%v, 1))
return (%b, %c)
)",
                                 x)),
            (Calls{"aten::clone", "aten::view", "aten::add.Tensor", "aten::add_.Tensor"}));
}

TEST(Reinplace, R_094_different_metadata_and_overlapping_memory) {
  EXPECT_EQ(calls_of(*reinplaced(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::clone](args = (%x,))
%b = call_function[target=aten::add.Tensor](args = (%a, 1))
%c = call_function[target=aten::ge.Tensor](args = (%b, %a))
return %c
)",
                                 {Value(torch::ones({4}))})),
            (Calls{"aten::clone", "aten::add.Tensor", "aten::ge.Tensor"}));
  EXPECT_EQ(calls_of(*reinplaced(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::clone](args = (%x,))
%b = call_function[target=aten::expand](args = (%a, [4, 4]))
%c = call_function[target=aten::add.Tensor](args = (%b, 1))
return %c
)",
                                 {Value(torch::ones({1}))})),
            (Calls{"aten::clone", "aten::expand", "aten::add.Tensor"}));
}

TEST(Reinplace, P_024_R_094_scatter_once_and_twice) {
  const Values x{Value(torch::rand({4, 4}))};
  auto once = reinplaced(with_views(R"(
%back = call_function[target=aten::select_scatter](args = (%b, %changed, 0, 1))
return %back
)"),
                         x);
  EXPECT_EQ(calls_of(*once),
            (Calls{"aten::clone", "aten::select.int", "aten::select.int", "aten::add_.Tensor"}));
  EXPECT_EQ(once->graph().output_node().arg(0).node().name(), "b");
  auto twice = reinplaced(with_views(R"(
%b_back = call_function[target=aten::select_scatter](args = (%b, %changed, 0, 1))
%a_back = call_function[target=aten::select_scatter](args = (%a, %b_back, 1, 1))
return %a_back
)"),
                          x);
  EXPECT_EQ(calls_of(*twice),
            (Calls{"aten::clone", "aten::select.int", "aten::select.int", "aten::add_.Tensor"}));
  EXPECT_EQ(twice->graph().output_node().arg(0).node().name(), "a");
}

TEST(Reinplace, R_094_scatter_into_another_view) {
  const Values x{Value(torch::rand({4, 4}))};
  auto text = [](int offset, int index) {
    return with_views(
        "%m = call_function[target=aten::as_strided](args = (%a, [4], [4], " +
        std::to_string(offset) + "))\n" +
        "%back = call_function[target=aten::select_scatter](args = (%m, %changed, 0, " +
        std::to_string(index) + "))\nreturn %back\n");
  };
  const Calls in_place{"aten::clone", "aten::select.int", "aten::select.int", "aten::add_.Tensor",
                       "aten::as_strided"};
  const Calls copied{"aten::clone",      "aten::select.int", "aten::select.int", "aten::add.Tensor",
                     "aten::as_strided", "aten::select.int", "aten::copy_"};
  // The other view is the same memory, which takes known shapes to see ...
  EXPECT_EQ(calls_of(*reinplaced(text(1, 1), x, {.static_shapes = true})), in_place);
  EXPECT_EQ(calls_of(*reinplaced(text(1, 1), x)), copied);
  // ... other memory, and another place of the same.
  EXPECT_EQ(calls_of(*reinplaced(text(0, 1), x, {.static_shapes = true})), copied);
  EXPECT_EQ(calls_of(*reinplaced(text(1, 0), x, {.static_shapes = true})), copied);
}

TEST(Reinplace, R_094_out_node_and_index_mutation) {
  EXPECT_EQ(calls_of(*reinplaced(R"(
%zeros = call_function[target=aten::zeros](args = ([2, 2],))
%diagonal = call_function[target=aten::diagonal](args = (%zeros,))
%fill = call_function[target=aten::fill.Scalar](args = (%diagonal, 1))
%back = call_function[target=aten::diagonal_scatter](args = (%zeros, %fill))
return %back
)",
                                 {})),
            (Calls{"aten::zeros", "aten::diagonal", "aten::fill_.Scalar"}));
  EXPECT_EQ(calls_of(*reinplaced(R"(
%zeros = call_function[target=aten::zeros](args = ([4, 4, 4],))
%ones = call_function[target=aten::ones](args = ([4, 2, 4],))
%slice_1 = call_function[target=aten::slice.Tensor](args = (%zeros, 1, 2, 9223372036854775807))
%copy = call_function[target=aten::copy](args = (%slice_1, %ones))
%back = call_function[target=aten::slice_scatter](args = (%zeros, %copy, 1, 2, 9223372036854775807))
return %back
)",
                                 {})),
            (Calls{"aten::zeros", "aten::ones", "aten::slice.Tensor", "aten::copy_"}));
}

// What is written in place may no longer be read as it was: neither before the scatter nor behind.
TEST(Reinplace, old_values_stay_readable) {
  const Values x{Value(torch::rand({4, 4}))};
  auto gm = reinplaced(with_views(R"(
%b_back = call_function[target=aten::select_scatter](args = (%b, %changed, 0, 1))
%sum_1 = call_function[target=aten::add.Tensor](args = (%b_back, %b))
return (%sum_1, %a)
)"),
                       x);
  EXPECT_EQ(calls_of(*gm)[3], "aten::add.Tensor");
  // A scatter of something else than the view that was written: the old value of the row is needed.
  auto other = reinplaced(with_views(R"(
%a_back = call_function[target=aten::select_scatter](args = (%a, %b, 1, 2))
return (%a_back, %changed)
)"),
                          x);
  EXPECT_EQ(calls_of(*other)[3], "aten::add.Tensor");
}

// as_strided counts from the beginning of the storage, which is another one in place.
TEST(Reinplace, offsets_that_are_read) {
  reinplaced(with_views(R"(
%strided = call_function[target=aten::as_strided](args = (%changed, [1], [1], 0))
return %strided
)"),
             {Value(torch::rand({4, 4}))});
}

TEST(Reinplace, P_024_captured_functional_code) {
  auto gm =
      make_fx([](const at::Tensor& x,
                 const at::Tensor& y) { return ((x + y) * 2).relu().add(y).sigmoid().mul(x); },
              {torch::rand({3, 4}), torch::rand({3, 4})});
  const Values inputs{Value(torch::rand({3, 4})), Value(torch::rand({3, 4}))};
  const Value expected = gm->forward(inputs);
  gm->eval();
  const PassResult result = reinplace(*gm, inputs);
  EXPECT_EQ(result.rewrites, 5);
  gm->recompile();
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));
  EXPECT_VALUES_EQ(expected, gm->forward(inputs));  // the inputs are what they were
  EXPECT_FALSE(reinplace(*gm, inputs).changed);
}

// Autograd needs values for the backward pass: nothing is written to that requires gradients.
TEST(Reinplace, training) {
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%a = call_function[target=aten::sin](args = (%x,))
%b = call_function[target=aten::mul.Tensor](args = (%a, 2))
%c = call_function[target=aten::mul.Tensor](args = (%b, %a))
return %c
)");
  const at::Tensor x = torch::rand({3}).requires_grad_();
  ASSERT_TRUE(gm->is_training());
  EXPECT_FALSE(reinplace(*gm, {Value(x)}).changed);
  gm->eval();
  EXPECT_TRUE(reinplace(*gm, {Value(x)}).changed);
  gm->recompile();
  const torch::NoGradGuard no_grad;
  EXPECT_VALUES_EQ(Value(x.sin() * 2 * x.sin()), gm->forward({Value(x)}));
}

TEST(Reinplace, dead_code_and_wrapped_functions_stay) {
  static const at::Tensor kept = torch::rand({3});
  register_wrapped_function("reinplace_test_kept",
                            [](Values, std::vector<KwValue>) { return Value(kept); });
  const at::Tensor before = kept.clone();
  auto gm = parse_module(R"(
%x = placeholder[target=x]
%held = call_function[target=reinplace_test_kept](args = ())
%add = call_function[target=aten::add.Tensor](args = (%held, 1))
%sin = call_function[target=aten::sin](args = (%x,))
%dead = call_function[target=aten::relu](args = (%sin,))
return %add
)");
  EXPECT_FALSE(reinplace(*gm, {Value(torch::rand({3}))}).changed);
  EXPECT_TRUE(torch::equal(kept, before));
  EXPECT_TRUE(dce(*gm).changed);
  EXPECT_EQ(gm->graph().find_node("dead"), nullptr);
}

TEST(TensorGeometry, overlap_and_equality) {
  const at::Tensor base = torch::zeros({4, 4});
  auto geometry = [](const at::Tensor& tensor) { return TensorGeometry(tensor); };
  EXPECT_TRUE(geometry(base).is_non_overlapping());
  EXPECT_TRUE(geometry(base.t()).is_non_overlapping());
  EXPECT_TRUE(geometry(base.select(1, 2)).is_non_overlapping());
  EXPECT_TRUE(geometry(base.slice(1, 0, 4, 2)).is_non_overlapping());
  EXPECT_FALSE(geometry(base.select(0, 0).expand({3, 4})).is_non_overlapping());
  EXPECT_FALSE(geometry(base.as_strided({3, 3}, {1, 1})).is_non_overlapping());
  EXPECT_TRUE(geometry(base.as_strided({0, 3}, {0, 0})).is_non_overlapping());
  EXPECT_TRUE(geometry(base[1]).same_memory(geometry(base.as_strided({4}, {1}, 4))));
  EXPECT_FALSE(geometry(base[1]).same_memory(geometry(base[2])));
  EXPECT_FALSE(geometry(base[1]).same_memory(geometry(torch::zeros({4, 4})[1])));
  EXPECT_TRUE(geometry(base[1]).same_layout(geometry(torch::zeros({4}))));
  EXPECT_FALSE(geometry(base[1]).same_layout(geometry(torch::zeros({4}, torch::kDouble))));
  const at::Tensor meta = geometry(base.select(1, 2)).meta_tensor();
  EXPECT_EQ(meta.strides(), base.select(1, 2).strides());
  EXPECT_EQ(meta.storage_offset(), 2);
  EXPECT_FALSE(TensorGeometry::of(Value(base.to_sparse())).has_value());
  EXPECT_FALSE(TensorGeometry::of(Value(3)).has_value());
}

}  // namespace
}  // namespace fx
