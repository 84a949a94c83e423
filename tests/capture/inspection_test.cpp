// Looking at graphs and values: what users of torch.fx print, and what they ask for instead.
#include <torch/torch.h>

#include <sstream>

#include "fx/analysis/statistics.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/dot.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/debug.h"
#include "fx/ops/call.h"
#include "fx/ops/schemas.h"
#include "fx/passes/shape_prop.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Node& node_of(GraphModule& module, std::string_view name) {
  return *module.graph().find_node(name);
}

// (x + 5) * 2
std::shared_ptr<GraphModule> affine() {
  return symbolic_trace([](auto x) { return (x + 5) * 2; });
}

// relu(x) + 1
std::shared_ptr<GraphModule> relu_plus_one() {
  return symbolic_trace([](auto x) { return relu(x) + 1; });
}

TEST(PrintTabular, S1_43_tables_before_and_after_an_edit) {
  auto gm = affine();
  EXPECT_EQ(gm->graph().tabular(),
            "opcode         name    target        args      kwargs\n"
            "-------------  ------  ------------  --------  ------\n"
            "placeholder    x       x             ()        {}\n"
            "call_function  add     operator.add  (x, 5)    {}\n"
            "call_function  mul     operator.mul  (add, 2)  {}\n"
            "output         output  output        (mul,)    {}\n");
  node_of(*gm, "mul").update_arg(1, 10);
  EXPECT_EQ(gm->graph().tabular(),
            "opcode         name    target        args       kwargs\n"
            "-------------  ------  ------------  ---------  ------\n"
            "placeholder    x       x             ()         {}\n"
            "call_function  add     operator.add  (x, 5)     {}\n"
            "call_function  mul     operator.mul  (add, 10)  {}\n"
            "output         output  output        (mul,)     {}\n");
}

TEST(PrintTabular, S0_72_floats_print_as_in_python) {
  auto gm = symbolic_trace([](auto x) {
    auto y = (x + 1.0) * 2.0;
    return y + (x + 1);
  });
  EXPECT_EQ(repr(node_of(*gm, "add").args()), "(x, 1.0)");
  EXPECT_EQ(repr(node_of(*gm, "mul").args()), "(add, 2.0)");
  EXPECT_EQ(repr(node_of(*gm, "add_1").args()), "(x, 1)");
  node_of(*gm, "add").update_arg(1, 100.0);
  EXPECT_EQ(repr(node_of(*gm, "add").args()), "(x, 100.0)");
  EXPECT_THAT(gm->graph().tabular(), HasSubstr("operator.add  (x, 100.0)    {}\n"));
}

TEST(PrintTabular, S4_45_to_a_string_to_a_stream_and_to_stdout) {
  auto gm = affine();
  const std::string table = gm->graph().tabular();
  std::ostringstream out;
  gm->graph().print_tabular(out);
  EXPECT_EQ(out.str(), table);
  ::testing::internal::CaptureStdout();
  gm->graph().print_tabular();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), table);
}

struct MySubModuleImpl : torch::nn::Module {
  MySubModuleImpl(std::int64_t in, std::int64_t out, std::ostream* log)
      : linear(register_module("linear", nn::Linear(in, out))), log(log) {}
  auto forward(auto x) {
    if constexpr (std::is_same_v<decltype(x), Proxy>)
      if (log) *log << "MySubModule " << x.attr("shape") << "\n";
    return linear(x);
  }
  nn::Linear linear;
  std::ostream* log;
};
FX_MODULE(MySubModule);

// Prints the shapes of what it gets when it has somewhere to print to.
struct MyModel : torch::nn::Module {
  explicit MyModel(std::ostream* log = nullptr)
      : sub_module_a(register_module("sub_module_a", MySubModule(10, 20, log))),
        sub_module_b(register_module("sub_module_b", MySubModule(20, 5, log))),
        log(log) {}
  auto forward(auto x) {
    if (log) *log << "MyModel " << x.attr("shape") << "\n";
    auto y = relu(sub_module_a(x));
    if (log) *log << "relu " << y.attr("shape") << "\n";
    return sub_module_b(y);
  }
  MySubModule sub_module_a, sub_module_b;
  std::ostream* log;
};

TEST(PrintTabular, S4_49_module_rows_under_both_leaf_policies) {
  EXPECT_EQ(
      symbolic_trace(std::make_shared<MyModel>())->graph().tabular(),
      "opcode         name                 target               args                    "
      "kwargs\n"
      "-------------  -------------------  -------------------  ----------------------  "
      "------\n"
      "placeholder    x                    x                    ()                      {}\n"
      "call_module    sub_module_a_linear  sub_module_a.linear  (x,)                    {}\n"
      "call_function  relu                 torch.relu           (sub_module_a_linear,)  {}\n"
      "call_module    sub_module_b_linear  sub_module_b.linear  (relu,)                 {}\n"
      "output         output               output               (sub_module_b_linear,)  {}\n");
  // Printing a shape while tracing records a node that nobody uses, as in torch.fx.
  std::ostringstream log;
  auto printing = symbolic_trace(std::make_shared<MyModel>(&log));
  EXPECT_EQ(log.str(),
            "MyModel Proxy(getattr_1)\nMySubModule Proxy(getattr_2)\nrelu Proxy(getattr_3)\n"
            "MySubModule Proxy(getattr_4)\n");
  EXPECT_EQ(names(printing->graph()),
            (Names{"x", "getattr_1", "getattr_2", "sub_module_a_linear", "relu", "getattr_3",
                   "getattr_4", "sub_module_b_linear", "output"}));
  EXPECT_EQ(printing->graph().find_nodes(Opcode::kCallModule)[0]->target(), "sub_module_a.linear");
  EXPECT_TRUE(printing->graph().eliminate_dead_code());
  EXPECT_EQ(printing->graph().size(), 5u);

  struct Leaves : Tracer {
    bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
      return dynamic_cast<const MySubModuleImpl*>(&module) || Tracer::is_leaf_module(module, path);
    }
  } tracer;
  EXPECT_EQ(symbolic_trace(tracer, std::make_shared<MyModel>())->graph().tabular(),
            "opcode         name          target        args             kwargs\n"
            "-------------  ------------  ------------  ---------------  ------\n"
            "placeholder    x             x             ()               {}\n"
            "call_module    sub_module_a  sub_module_a  (x,)             {}\n"
            "call_function  relu          torch.relu    (sub_module_a,)  {}\n"
            "call_module    sub_module_b  sub_module_b  (relu,)          {}\n"
            "output         output        output        (sub_module_b,)  {}\n");
}

TEST(PrintTabular, S4_85_the_table_without_the_batch_norm) {
  struct ConvNet : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return pool(relu(bn(conv(x)))); }
    nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)));
    nn::BatchNorm2d bn = register_module("bn", nn::BatchNorm2d(16));
    nn::ReLU relu = register_module("relu", nn::ReLU());
    nn::MaxPool2d pool = register_module("pool", nn::MaxPool2d(2));
  };
  auto gm = symbolic_trace(std::make_shared<ConvNet>());
  Node& bn = node_of(*gm, "bn");
  bn.replace_all_uses_with(node_of(*gm, "conv"));
  gm->graph().erase_node(bn);
  gm->recompile();
  EXPECT_EQ(gm->graph().tabular(),
            "opcode       name    target  args     kwargs\n"
            "-----------  ------  ------  -------  ------\n"
            "placeholder  x       x       ()       {}\n"
            "call_module  conv    conv    (x,)     {}\n"
            "call_module  relu    relu    (conv,)  {}\n"
            "call_module  pool    pool    (relu,)  {}\n"
            "output       output  output  (pool,)  {}\n");
  EXPECT_EQ((*gm)(torch::randn({1, 3, 32, 32})).toTensor().sizes(),
            (std::vector<std::int64_t>{1, 16, 16, 16}));
}

TEST(PrintGraph, S3_37_S3_38_the_text_of_a_traced_function) {
  auto gm = symbolic_trace([](auto x, auto y) {
    auto z = x + y;
    return z * 2;
  });
  EXPECT_EQ(gm->graph().str(),
            "graph():\n"
            "    %x : [num_users=1] = placeholder[target=x]\n"
            "    %y : [num_users=1] = placeholder[target=y]\n"
            "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs "
            "= {})\n"
            "    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, 2), "
            "kwargs = {})\n"
            "    return mul");
}

TEST(PrintGraph, S1_14_S1_44_S1_48_arguments_with_and_without_percent) {
  auto gm = affine();
  Node& mul = node_of(*gm, "mul");
  EXPECT_EQ(std::string(mul.name()) + ": " + repr(mul.args()), "mul: (add, 2)");
  EXPECT_THAT(gm->graph().str(), HasSubstr("(args = (%add, 2), kwargs = {})"));
  mul.update_arg(1, 10);
  EXPECT_EQ(repr(mul.args()), "(add, 10)");
  mul.update_arg(1, 3);
  EXPECT_EQ(repr(mul.args()), "(add, 3)");
}

TEST(PrintGraph, S1_57_keyword_arguments_print_as_a_dict) {
  auto gm = symbolic_trace([](auto x) { return clamp(x, kw("min", -5.0), kw("max", 5.0)); });
  Node& node = node_of(*gm, "clamp");
  EXPECT_EQ(repr(node.kwargs()), "{'min': -5.0, 'max': 5.0}");
  node.update_kwarg("max", 10.0);
  EXPECT_EQ(repr(node.kwargs()), "{'min': -5.0, 'max': 10.0}");
}

TEST(PrintGraph, S3_30_dot_for_an_external_viewer_and_a_table_without_packages) {
  auto gm = affine();
  const std::string dot = to_dot(gm->graph());
  EXPECT_THAT(dot, ::testing::StartsWith("digraph"));
  EXPECT_THAT(dot, HasSubstr("label=\"add\\ncall_function operator.add"));
  EXPECT_THAT(dot, HasSubstr("\n  n0 -> n1;\n  n1 -> n2;\n  n2 -> n3;\n"));
  EXPECT_THAT(dot, ::testing::EndsWith("}\n"));
  EXPECT_THAT(gm->graph().tabular(), ::testing::StartsWith("opcode "));
}

TEST(PrintGraph, S3_67_only_the_nodes_that_carry_a_key) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return relu(linear(x)); }
    nn::Linear linear = register_module("linear", nn::Linear(2, 4));
    nn::ReLU relu = register_module("relu", nn::ReLU());
  };
  struct Tagging : Tracer {
    void trace_module(const torch::nn::Module&, std::string_view path, Node& node) override {
      node.meta().set("module_name", std::string(path));
    }
  } tracer;
  auto gm = symbolic_trace(tracer, std::make_shared<Net>());
  std::ostringstream out;
  for (const Node& node : gm->graph().nodes())
    if (const auto* name = node.meta().get<std::string>("module_name"))
      out << "Node: " << node.name() << ", Module: " << *name << "\n";
  EXPECT_EQ(out.str(), "Node: linear, Module: linear\nNode: relu, Module: relu\n");
  EXPECT_FALSE(node_of(*gm, "x").meta().contains("module_name"));
}

TEST(PrintValue, S0_41_the_kind_of_a_value_that_is_no_tensor) {
  const auto shown = [](const Value& value) {
    std::ostringstream out;
    if (value.isTensor())
      out << value.toTensor().sizes();
    else
      out << describe(value);
    return out.str();
  };
  EXPECT_EQ(shown(torch::ones({5, 10})), "[5, 10]");
  EXPECT_EQ(shown(c10::List<std::int64_t>({1, 2})), "list of 2");
  EXPECT_EQ(shown(7), "int");
  EXPECT_EQ(shown(c10::ivalue::Tuple::create({1, 2})), "tuple of 2");
  EXPECT_EQ(shown("text"), "str");
  EXPECT_EQ(shown(Value()), "None");
}

TEST(PrintValue, S0_74_a_tensor_of_no_dimensions_reads_back) {
  auto gm = symbolic_trace([](auto x) { return (x + 100.0) * 2.0; });
  const at::Tensor output = (*gm)(torch::tensor(5.0)).toTensor();
  EXPECT_EQ(output.dim(), 0);
  EXPECT_EQ(output.item<double>(), 210.0);
}

TEST(PrintValue, S2_08_S2_26_tensors_print_as_in_python) {
  EXPECT_EQ(to_string(Value(torch::tensor({1.f, 2.f}))), "tensor([1., 2.])");
  EXPECT_EQ(to_string(Value(torch::tensor({8.f, 10.f}))), "tensor([ 8., 10.])");
  EXPECT_EQ(to_string(Value(torch::tensor(210.f))), "tensor(210.)");
  std::ostringstream out;
  auto gm = relu_plus_one();
  Interpreter interpreter(*gm);
  auto hook = interpreter.register_node_post_hook([&](Node& node, const Value& value) {
    out << "'" << node.name() << "': " << to_string(value) << "\n";
  });
  interpreter.run({torch::tensor({-1.f, 2.f})});
  EXPECT_EQ(out.str(),
            "'x': tensor([-1.,  2.])\n'relu': tensor([0., 2.])\n'add': tensor([1., 3.])\n"
            "'output': tensor([1., 3.])\n");
}

TEST(PrintValue, S2_09_S3_58_the_environment_prints_as_a_dict_in_order) {
  auto gm = relu_plus_one();
  Interpreter keeping(*gm, /*garbage_collect_values=*/false);
  keeping.run({torch::tensor({-1.f, 2.f})});
  std::ostringstream out;
  out << keeping.env();
  EXPECT_EQ(out.str(),
            "{x: tensor([-1.,  2.]), relu: tensor([0., 2.]), add: tensor([1., 3.]), "
            "output: tensor([1., 3.])}");
  Interpreter collecting(*gm);
  collecting.run({torch::tensor({-1.f, 2.f})});
  EXPECT_EQ(to_string(collecting.env()), "{output: tensor([1., 3.])}");
}

TEST(Inspect, S1_20_the_schema_of_a_target) {
  const auto schemas = schemas_of(*Function::get("aten::add.Tensor"));
  ASSERT_EQ(schemas.size(), 1u);
  const auto& arguments = schemas[0]->arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[1].name(), "other");
  EXPECT_EQ(arguments[1].type()->str(), "Tensor");
  EXPECT_FALSE(arguments[1].default_value().has_value());
  EXPECT_EQ(arguments[2].name(), "alpha");
  EXPECT_TRUE(arguments[2].kwarg_only());
  EXPECT_EQ(arguments[2].default_value()->toInt(), 1);
  EXPECT_GT(schemas_of(*Function::get("torch.add")).size(), 1u);
  EXPECT_TRUE(schemas_of(*Function::get("operator.add")).empty());
  EXPECT_TRUE(schemas_of(*Function::get("mylib::nothing")).empty());
}

TEST(Inspect, S1_25_arguments_can_be_asked_for_first) {
  auto gm = symbolic_trace([](auto x) { return clamp(x, kw("min", 0.0)); });
  const Node& node = node_of(*gm, "clamp");
  EXPECT_EQ(node.num_args(), 1u);
  EXPECT_EQ(node.args().size(), 1u);
  EXPECT_EQ(node.kwargs().size(), 1u);
  EXPECT_TRUE(node.has_kwarg("min"));
  EXPECT_FALSE(node.has_kwarg("max"));
  EXPECT_EQ(node.kwarg("min").to_double(), 0.0);
}

TEST(Inspect, S3_10_counts_depth_inputs_and_users) {
  auto gm = symbolic_trace([](auto x, auto y) {
    auto a = relu(x + y);
    auto b = a * (x + 1);
    return b + x.sum();
  });
  const GraphStatistics found = graph_statistics(gm->graph());
  EXPECT_EQ(found.nodes, gm->graph().size());
  EXPECT_THAT(found.opcodes,
              ElementsAre(Pair(Opcode::kPlaceholder, 2u), Pair(Opcode::kCallFunction, 5u),
                          Pair(Opcode::kCallMethod, 1u), Pair(Opcode::kOutput, 1u)));
  EXPECT_THAT(found.calls, ElementsAre(Pair("operator.add", 3u), Pair("operator.mul", 1u),
                                       Pair("sum", 1u), Pair("torch.relu", 1u)));
  EXPECT_EQ(found.depth, 4u) << "add, relu, mul, add";
  EXPECT_THAT(found.str(), HasSubstr("; depth 4\n     3  operator.add\n"));
  EXPECT_EQ(names(node_of(*gm, "mul").all_input_nodes()), (Names{"relu", "add_1"}));
  EXPECT_EQ(names(node_of(*gm, "x").users()), (Names{"add", "add_1", "sum_1"}));
  EXPECT_EQ(graph_statistics(Graph()).depth, 0u);
}

TEST(Inspect, S3_22_which_functions_can_be_run) {
  for (const char* name : {"aten::relu", "torch.relu", "operator.add", "builtins.getattr"})
    EXPECT_TRUE(is_runnable(*Function::get(name))) << name;
  for (const char* name :
       {"aten::no_such_operator", "mylib::op", "operator.nothing", "my_function"})
    EXPECT_FALSE(is_runnable(*Function::get(name))) << name;
  register_wrapped_function("inspection_test_known", [](Values, KwValues) { return Value(); });
  EXPECT_TRUE(is_runnable(*Function::get("inspection_test_known")));
  const std::vector<std::string> operators = registered_operators("aten");
  EXPECT_GT(operators.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(operators));
  for (const char* name : {"aten::add.Tensor", "aten::relu"})
    EXPECT_TRUE(std::ranges::binary_search(operators, name)) << name;
  EXPECT_TRUE(registered_operators("no_such_library").empty());
  EXPECT_GT(registered_operators().size(), operators.size());
}

TEST(Inspect, G_126_S3_26_shape_propagation_names_the_node_with_a_wrong_shape) {
  auto gm = symbolic_trace([](auto x, auto y) { return relu(x.matmul(y)); });
  EXPECT_FX_ERROR(ShapeProp(*gm).propagate({torch::ones({2, 3}), torch::ones({2, 3})}), RunError,
                  kNodeFailed, "matmul");
  EXPECT_FX_ERROR(ShapeProp(*gm).propagate({torch::ones({2, 3}), torch::ones({2, 3})}), RunError,
                  kNodeFailed, "x: Tensor f32[2, 3]");
  ShapeProp(*gm).propagate({torch::ones({2, 3}), torch::ones({3, 4})});
  EXPECT_EQ(tensor_meta(node_of(*gm, "matmul"))->shape, (std::vector<std::int64_t>{2, 4}));
}

TEST(Inspect, S3_61_shape_and_dtype_of_each_node_after_a_run) {
  auto gm = symbolic_trace([](auto x) { return (x + 1) * 2; });
  Interpreter interpreter(*gm, /*garbage_collect_values=*/false);
  interpreter.run({torch::randn({2, 3})});
  std::string report;
  for (auto [node, value] : interpreter.env())
    if (!node.is_output()) report += std::string(node.name()) + ": " + describe(value) + "\n";
  EXPECT_EQ(report, "x: Tensor f32[2, 3]\nadd: Tensor f32[2, 3]\nmul: Tensor f32[2, 3]\n");
}

}  // namespace
}  // namespace fx
