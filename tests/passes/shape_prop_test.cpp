// Shape propagation and running without a trace.

#include "fx/passes/shape_prop.h"

#include "fx/graph/tensor_meta.h"
#include "fx/passes/isolation.h"
#include "fx/passes/pass_manager.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

std::string meta_of(const GraphModule& module, std::string_view name) {
  const Node* node = module.graph().find_node(name);
  if (const TensorMeta* meta = tensor_meta(*node)) return meta->to_string();
  const auto* nested = node->meta().get<NestedTensorMeta>("tensor_meta");
  return nested ? nested->to_string() : "none";
}

std::string type_of(const GraphModule& module, std::string_view name) {
  const auto* type = module.graph().find_node(name)->meta().get<std::string>("type");
  return type ? *type : "none";
}

TEST(ShapeProp, P001_RecordsEachNode) {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%mm = call_function[target=aten::mm](args = (%x, %w))
%relu = call_method[target=relu](args = (%mm,))
%split = call_function[target=aten::split.Tensor](args = (%relu, 2))
%first = call_function[target=operator.getitem](args = (%split, 0))
%size = call_method[target=size](args = (%x, 0))
%most = call_function[target=aten::max.dim](args = (%first, 1))
return (%most, %size, [%first])
)");
  module->set_parameter("w", torch::randn({3, 5}).to(at::kDouble).set_requires_grad(true));
  const Value result = ShapeProp(*module).propagate({torch::randn({4, 3}, at::kDouble)});
  EXPECT_TRUE(result.isTuple());
  EXPECT_EQ(meta_of(*module, "x"), "f64[4, 3]");
  EXPECT_EQ(meta_of(*module, "w"), "f64[3, 5]");
  EXPECT_EQ(meta_of(*module, "relu"), "f64[4, 5]");
  EXPECT_EQ(meta_of(*module, "split"), "(f64[2, 5], f64[2, 5])");
  EXPECT_EQ(meta_of(*module, "first"), "f64[2, 5]");
  EXPECT_EQ(meta_of(*module, "size"), "none");
  EXPECT_EQ(meta_of(*module, "most"), "(f64[2], i64[2])");
  EXPECT_EQ(meta_of(*module, "output"), "((f64[2], i64[2]), -, (f64[2, 5],))");
  EXPECT_EQ(type_of(*module, "x"), "Tensor");
  EXPECT_EQ(type_of(*module, "size"), "int");
  const TensorMeta& w = *tensor_meta(*module->graph().find_node("w"));
  EXPECT_TRUE(w.requires_grad);
  EXPECT_EQ(w.nbytes(), 3 * 5 * 8);
  EXPECT_EQ(w.numel(), 15);
  EXPECT_EQ(w.memory_format, c10::MemoryFormat::Contiguous);
}

TEST(TensorMeta, P002_Formats) {
  EXPECT_EQ(TensorMeta(torch::tensor(1.0f)).to_string(), "f32[]");
  EXPECT_EQ(TensorMeta(torch::tensor(1.0f)).numel(), 1);
  EXPECT_EQ(TensorMeta(torch::zeros({0, 2})).nbytes(), 0);
  const at::Tensor image = torch::zeros({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(TensorMeta(image).memory_format, c10::MemoryFormat::ChannelsLast);
  EXPECT_EQ(TensorMeta(image).stride, (std::vector<std::int64_t>{60, 1, 15, 3}));
  EXPECT_FALSE(TensorMeta(torch::zeros({4, 6}).slice(1, 0, 3)).memory_format.has_value());
  EXPECT_EQ(TensorMeta(torch::zeros({2}, at::kMeta)).to_string(), "f32[2] meta");
  EXPECT_TRUE(TensorMeta(torch::eye(3).to_sparse()).stride.empty());
  EXPECT_EQ(TensorMeta(torch::zeros(2)), TensorMeta(torch::ones(2)));
  EXPECT_NE(TensorMeta(torch::zeros(2)), TensorMeta(torch::zeros(3)));
  EXPECT_THROW(TensorMeta{at::Tensor()}, InternalError);
}

TEST(ShapeProp, P003_Errors) {
  const auto module = symbolic_trace([](auto x, auto y) { return mm(x, y); });
  EXPECT_FX_ERROR(ShapeProp(*module).propagate({torch::ones({2, 3}), torch::ones({2, 3})}),
                  RunError, kNodeFailed, "ShapeProp error for: ");
  try {
    ShapeProp(*module).propagate({torch::ones({2, 3}), torch::ones({2, 3})});
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("%mm"));
    EXPECT_THAT(error.what(), testing::HasSubstr("f32[2, 3]"));
  }
}

// F55: the model runs, and nothing shows of it: statistics, buffers, inputs, views of them, random
// state.
TEST(ShapeProp, F55_LeavesNoTrace) {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%count = get_attr[target=count]
%row = get_attr[target=row]
%inc = call_function[target=aten::add_.Tensor](args = (%count, 1))
%bn = call_module[target=bn](args = (%x,))
%drop = call_module[target=drop](args = (%bn,))
%write = call_method[target=mul_](args = (%x, 2.0))
%fbn = call_function[target=aten::batch_norm](args = (%drop, None, None, %row, %row, True, 0.1, 1e-05, False))
return (%fbn, %inc, %row)
)");
  const at::Tensor matrix = torch::ones({2, 3});
  module->set_buffer("count", torch::zeros(1, at::kLong));
  module->set_buffer("matrix", matrix);
  module->set_constant("row", matrix[1]);
  torch::nn::BatchNorm1d bn(3);
  module->set_submodule("bn", bn.ptr());
  module->set_submodule("drop", std::make_shared<torch::nn::DropoutImpl>(0.5));
  module->train();
  const at::Tensor x = torch::randn({4, 3});
  const at::Tensor x_before = x.clone();
  const at::Tensor mean = bn->running_mean;
  const void* memory = mean.data_ptr();
  torch::manual_seed(7);
  const at::Tensor drawn = torch::rand(3);
  torch::manual_seed(7);
  const Value result = ShapeProp(*module).propagate({x});
  EXPECT_TRUE(torch::equal(torch::rand(3), drawn));
  EXPECT_TRUE(torch::equal(x, x_before));
  EXPECT_TRUE(torch::equal(matrix, torch::ones({2, 3})));
  EXPECT_EQ(module->find_tensor("count").item<std::int64_t>(), 0);
  EXPECT_TRUE(bn->running_mean.is_same(mean));
  EXPECT_EQ(bn->running_mean.data_ptr(), memory);
  EXPECT_TRUE(torch::equal(bn->running_mean, torch::zeros(3)));
  EXPECT_EQ(bn->num_batches_tracked.item<std::int64_t>(), 0);
  // What the run itself saw was written.
  EXPECT_EQ(elements(result)[1].toTensor().item<std::int64_t>(), 1);
  EXPECT_FALSE(torch::equal(elements(result)[2].toTensor(), torch::ones(3)));
  // Also when it fails.
  EXPECT_THROW(ShapeProp(*module).propagate({torch::randn({4, 5})}), RunError);
  EXPECT_EQ(module->find_tensor("count").item<std::int64_t>(), 0);
  EXPECT_EQ(bn->running_mean.data_ptr(), memory);
  // A later run works on the module's own memory again.
  (*module)(torch::randn({4, 3}));
  EXPECT_EQ(module->find_tensor("count").item<std::int64_t>(), 1);
  EXPECT_NE(matrix[1][0].item<float>(), 1.0f);
  EXPECT_EQ(matrix[0][0].item<float>(), 1.0f);
}

// The inputs that a graph writes to are copied as they lie in memory, and with what they share.
TEST(ShapeProp, WrittenInputsKeepTheirStridesAndTheirMemory) {
  const torch::NoGradGuard no_grad;
  const auto module = parse_module(R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%write = call_function[target=aten::add_.Tensor](args = (%x, 1))
%window = call_function[target=aten::as_strided](args = (%write, [2, 2], [1, 2], 2))
%result = call_function[target=aten::add.Tensor](args = (%y, %window))
return %result
)");
  const auto memory = [] { return torch::arange(12, torch::kFloat); };
  const at::Tensor base = memory(), expected_base = memory();
  const auto inputs = [](const at::Tensor& all) {
    return Values{all.as_strided({2, 2}, {2, 1}, 4), all.as_strided({2, 2}, {1, 1}, 4)};
  };
  const at::Tensor expected = (*module)(inputs(expected_base)).toTensor();
  EXPECT_TRUE(torch::equal(ShapeProp(*module).propagate(inputs(base)).toTensor(), expected));
  EXPECT_EQ(tensor_meta(*module->graph().find_node("x"))->stride,
            (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(tensor_meta(*module->graph().find_node("y"))->stride,
            (std::vector<std::int64_t>{1, 1}));
  EXPECT_TRUE(torch::equal(base, memory()));
}

TEST(ShapeProp, AsAPass) {
  const auto module = symbolic_trace([](auto x) { return relu(x); });
  PassManagerOptions options{.check_claims = true, .example_inputs = Values{torch::ones(3)}};
  PipelineResult result = run_passes(*module, "shape_prop", options);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.passes[0].rewrites, 3);
  EXPECT_EQ(run_passes(*module, "shape_prop", options).passes[0].rewrites, 0);
  options.example_inputs = Values{torch::ones({2, 2})};
  EXPECT_EQ(run_passes(*module, "shape_prop", options).passes[0].rewrites, 3);
  EXPECT_EQ(meta_of(*module, "relu"), "f32[2, 2]");
}

}  // namespace
}  // namespace fx
