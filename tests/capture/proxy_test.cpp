// Proxies and the values that tracers make of what a program hands them.
#include "fx/capture/proxy.h"

#include <torch/torch.h>

#include <unordered_map>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/graph/traceback.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;
using ::testing::HasSubstr;

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

// What a program records: one line a node, "target(args)".
Names recorded(const std::function<TraceArg(Proxy, Proxy)>& program) {
  auto module = symbolic_trace([&](Proxy x, Proxy y) { return program(x, y); });
  Names lines;
  for (const Node& node : module->graph().nodes())
    if (!node.is_placeholder() && !node.is_output())
      lines.push_back(node.target().str() + repr(node.args()));
  return lines;
}

TEST(Proxy, T_055_T_056_operators_in_both_orders) {
  struct Case {
    const char* name;
    std::function<TraceArg(Proxy)> left, right;
  };
#define FX_CASE(name, op) \
  {name, [](Proxy x) { return TraceArg(x op 3); }, [](Proxy x) { return TraceArg(3 op x); }}
  const std::vector<Case> cases = {
      FX_CASE("add", +), FX_CASE("sub", -),     FX_CASE("mul", *),     FX_CASE("truediv", /),
      FX_CASE("mod", %), FX_CASE("lshift", <<), FX_CASE("rshift", >>), FX_CASE("and_", &),
      FX_CASE("or_", |), FX_CASE("xor", ^),     FX_CASE("eq", ==),     FX_CASE("ne", !=),
      FX_CASE("lt", <),  FX_CASE("le", <=),     FX_CASE("gt", >),      FX_CASE("ge", >=)};
#undef FX_CASE
  for (const Case& each : cases) {
    EXPECT_EQ(recorded([&](Proxy x, Proxy) { return each.left(x); }),
              Names{"operator." + std::string(each.name) + "(x, 3)"});
    EXPECT_EQ(recorded([&](Proxy x, Proxy) { return each.right(x); }),
              Names{"operator." + std::string(each.name) + "(3, x)"});
  }
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(floordiv(x, 2)); }),
            Names{"operator.floordiv(x, 2)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(floordiv(2, x)); }),
            Names{"operator.floordiv(2, x)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(-x); }), Names{"operator.neg(x,)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(+x); }), Names{"operator.pos(x,)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(~x); }), Names{"operator.invert(x,)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy y) { return TraceArg(x[y]); }),
            Names{"operator.getitem(x, y)"});
  EXPECT_EQ(
      recorded([](Proxy x, Proxy y) { return TraceArg(record_call("operator.matmul", {x, y})); }),
      Names{"operator.matmul(x, y)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(record_call("operator.pow", {x, 2})); }),
            Names{"operator.pow(x, 2)"});
}

TEST(Proxy, T_051_T_053_T_057_what_is_recorded_by_name_and_what_is_refused) {
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(abs(x)); }), Names{"operator.abs(x,)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(len(x)); }), Names{"builtins.len(x,)"});
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) { return x.len(); }), TraceError, kConcreteValue,
                  "len() was asked of Proxy(x)");
  EXPECT_EQ(recorded([](Proxy x, Proxy y) {
              Proxy sum = x;
              sum += y;
              return TraceArg(sum);
            }),
            Names{"operator.add(x, y)"})
      << "x += y is the plain operation";
  static_assert(!std::is_convertible_v<Proxy, double>);
  static_assert(!std::is_convertible_v<Proxy, std::int64_t>);
  static_assert(!std::is_convertible_v<Proxy, bool>, "only explicitly, and then it throws");
}

TEST(Proxy, T_047_T_049_T_058_T_061_methods_attributes_and_calls) {
  EXPECT_EQ(symbolic_trace([](Proxy x) {
              EXPECT_EQ(x.repr(), "Proxy(x)");
              return x;
            })
                ->graph()
                .size(),
            2u);
  EXPECT_EQ(recorded([](Proxy x, Proxy y) { return TraceArg(x.view(2, -1).add(y)); }),
            (Names{"view(x, 2, -1)", "add(view, y)"}));
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(x.attr("T")); }),
            Names{"builtins.getattr(x, 'T')"});
  EXPECT_EQ(recorded([](Proxy x, Proxy y) { return TraceArg(x.call_method("__call__", {y})); }),
            Names{"__call__(x, y)"});
  EXPECT_EQ(recorded([](Proxy x, Proxy y) { return TraceArg(matmul(x, y)); }),
            Names{"torch.matmul(x, y)"});
  // The same tensor operation through ATen is the operator.
  EXPECT_EQ(recorded([](Proxy x, Proxy) { return TraceArg(torch::sigmoid(at::Tensor(x))); }),
            Names{"aten::sigmoid(x,)"});
}

TEST(Proxy, T_064_T_065_copies_stand_for_one_node) {
  Graph graph;
  Node& x = graph.placeholder("x");
  const Proxy first(x);
  const Proxy copy = first;
  EXPECT_EQ(&copy.node(), &x);
  EXPECT_EQ(&copy.tracer(), &first.tracer());
  std::unordered_map<const Node*, int> by_node{{&first.node(), 1}};
  EXPECT_TRUE(by_node.contains(&copy.node())) << "the node is the identity";
  const Proxy equal = first == copy;
  EXPECT_EQ(equal.node().target(), "operator.eq");
  EXPECT_EQ(repr(equal.node().args()), "(x, x)");
  Tracer tracer;
  const Proxy with_tracer(x, &tracer);
  const Proxy its_copy = with_tracer;
  EXPECT_EQ(&its_copy.tracer(), &tracer);
}

TEST(Proxy, T_066_a_trace_error_is_an_error_of_this_library) {
  static_assert(std::derived_from<TraceError, Error>);
  static_assert(std::derived_from<TraceError, std::runtime_error>);
  EXPECT_THROW(symbolic_trace([](Proxy x) { return x ? 1 : 2; }), TraceError);
}

TEST(CreateArg, T_006_T_007_values_become_arguments_at_any_depth) {
  Graph graph;
  GraphAppendingTracer tracer(graph);
  const Proxy x(graph.placeholder("x"), &tracer);
  auto arg = [&](const TraceArg& value) { return repr(tracer.create_arg(value)); };
  EXPECT_EQ(arg(TraceArg(x)), "x");
  EXPECT_EQ(arg(TraceArg(std::vector<Proxy>{x, x})), "[x, x]");
  EXPECT_EQ(arg(TraceArg(std::make_tuple(x, 1, 2.5, true, std::string("t")))),
            "(x, 1, 2.5, True, 't')");
  EXPECT_EQ(arg(TraceArg(std::map<std::string, Proxy>{{"k", x}})), "{'k': x}");
  EXPECT_EQ(arg(TraceArg::slice(x, Argument(), 2)), "slice(x, None, 2)");
  EXPECT_EQ(arg(TraceArg(std::optional<Proxy>())), "None");
  EXPECT_EQ(arg(TraceArg(std::make_pair(x, std::vector<Proxy>{x}))), "(x, [x])");
  EXPECT_EQ(arg(TraceArg(c10::ScalarType::Half)), "torch.float16");
  EXPECT_EQ(arg(TraceArg(at::Scalar(3))), "3");
  EXPECT_EQ(arg(TraceArg(Argument::ellipsis())), "Ellipsis");
  EXPECT_EQ(arg(TraceArg(at::Tensor())), "None") << "an undefined tensor";
  EXPECT_FX_ERROR(TraceArg::dict({{Argument(x.node()), TraceArg(1)}}).keys();
                  arg(TraceArg::dict({{Argument(x.node()), TraceArg(1)}})), GraphError,
                  kWrongArgumentKind, "cannot contain a Node");
  static_assert(!std::is_constructible_v<TraceArg, Graph*>, "no form in a graph: does not compile");
  EXPECT_FX_ERROR(tracer.create_arg(TraceArg(std::make_shared<torch::nn::ReLUImpl>())), TraceError,
                  kBadArgument, "torch.nn.ReLU cannot become an argument of a graph");
}

TEST(CreateArg, T_012_T_067_a_graph_without_a_root_takes_no_tensors) {
  Graph graph;
  GraphAppendingTracer tracer(graph);
  const Proxy x(graph.placeholder("x"), &tracer);
  const Proxy sum = x + 1;
  EXPECT_EQ(&sum.node().graph(), &graph);
  EXPECT_EQ(&sum.tracer(), &tracer);
  EXPECT_FX_ERROR(x + row({1}), TraceError, kBadArgument, "built node by node");
}

TEST(CreateArg, T_015_T_016_T_019_tensors_are_attributes_or_constants) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return x * weight + mean + plain + plain + register_later; }
    at::Tensor weight = register_parameter("weight", torch::ones({2}));
    at::Tensor mean = register_buffer("mean", torch::ones({2}));
    at::Tensor plain = torch::ones({2});
    at::Tensor register_later = torch::ones({2});
  };
  auto module = symbolic_trace(std::make_shared<Net>());
  Names reads;
  for (const Node* node : module->graph().find_nodes(Opcode::kGetAttr))
    reads.push_back(node->target().str());
  EXPECT_EQ(reads, (Names{"weight", "mean", "_tensor_constant0", "_tensor_constant1"}));
  EXPECT_EQ(module->attr_kind("weight"), GraphOwner::AttrKind::kParameter);
  EXPECT_EQ(module->attr_kind("mean"), GraphOwner::AttrKind::kBuffer);
  EXPECT_EQ(module->attr_kind("_tensor_constant0"), GraphOwner::AttrKind::kConstant);
}

TEST(CreateArg, T_014_fresh_names_step_over_what_the_root_has) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return x + plain; }
    at::Tensor taken = register_buffer("_tensor_constant0", torch::ones({1}));
    at::Tensor plain = torch::ones({1});
  };
  auto module = symbolic_trace(std::make_shared<Net>());
  EXPECT_EQ(module->graph().find_nodes(Opcode::kGetAttr)[0]->target(), "_tensor_constant1");
  Tracer tracer;
  EXPECT_EQ(tracer.get_fresh_qualname("anything"), "anything0");
}

// Shapes of parameters are known while tracing, whatever is asked of them: parameters are tensors.
TEST(ParameterShapes, R_072_T_026_T_062_Q_012_control_flow_by_the_shape_of_a_parameter) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) {
      at::Tensor matrix = x.mm(weight);
      const bool small = ask(weight) < 10 && ask(buffer) < 10;
      return small ? torch::relu(matrix) : torch::sigmoid(matrix);
    }
    std::function<std::int64_t(const at::Tensor&)> ask;
    at::Tensor weight = register_parameter("weight", torch::randn({3, 4}));
    at::Tensor buffer = register_buffer("buffer", torch::randn({2, 2}));
  };
  const std::vector<std::pair<std::function<std::int64_t(const at::Tensor&)>, bool>> questions = {
      {[](const at::Tensor& t) { return t.sizes()[0]; }, true},    // shape
      {[](const at::Tensor& t) { return t.size(0); }, true},       // size
      {[](const at::Tensor& t) { return t.dim(); }, true},         // dim
      {[](const at::Tensor& t) { return t.ndimension(); }, true},  // ndim
      {[](const at::Tensor& t) { return t.numel(); }, false},      // numel
      {[](const at::Tensor& t) { return t.nbytes(); }, false}};
  for (const auto& [ask, small] : questions) {
    auto net = std::make_shared<Net>();
    net->ask = ask;
    auto module = symbolic_trace(net);
    EXPECT_EQ(module->graph().find_calls("aten::relu").size(), small ? 1u : 0u);
    EXPECT_EQ(module->graph().find_calls("aten::sigmoid").size(), small ? 0u : 1u);
    const at::Tensor x = torch::randn({2, 3});
    EXPECT_TRUE(torch::equal((*module)(x).toTensor(), net->forward(x)));
  }
}

TEST(TracerState, T_001_T_002_T_003_T_032_flags_and_what_nodes_get) {
  Tracer tracer;
  EXPECT_FALSE(tracer.check_mutable_operations);
  EXPECT_FALSE(tracer.record_stack_traces);
  EXPECT_TRUE(tracer.module_stack().empty());
  struct SubImpl : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return relu(x) + 1; }
    nn::ReLU relu = register_module("relu", nn::ReLU());
  };
  class Sub : public nn::ModuleHolder<SubImpl> {
   public:
    using nn::ModuleHolder<SubImpl>::ModuleHolder;
  };
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return sub(x) * 2; }
    Sub sub{register_module("sub", std::make_shared<SubImpl>())};
  };
  auto net = std::make_shared<Net>();
  auto module = symbolic_trace(tracer, net);
  EXPECT_TRUE(tracer.module_stack().empty()) << "scopes end with their modules";
  auto stack = [](const GraphModule& made, const char* name) {
    const auto* found = made.graph().find_node(name)->meta().get<ModuleStack>("nn_module_stack");
    return found ? found->back().first : std::string();
  };
  EXPECT_EQ(stack(*module, "sub_relu"), "sub.relu");
  EXPECT_EQ(stack(*module, "add_scalar"), "sub");
  EXPECT_EQ(stack(*module, "mul_scalar"), "");

  Meta note;
  note.set("stage", 3);
  auto annotation = traceback::annotate(note);
  auto annotated = symbolic_trace(tracer, net);
  EXPECT_EQ(
      *annotated->graph().find_node("mul_scalar")->meta().get<Meta>("custom")->get<int>("stage"),
      3);
  Graph origin;
  Node& old = origin.call_function("f");
  old.meta().set("nn_module_stack", ModuleStack{{"elsewhere", "Class"}});
  old.set_stack_trace("line 9");
  auto preserve = traceback::preserve_node_meta();
  auto current = traceback::set_current_meta(old);
  auto kept = symbolic_trace(tracer, net);
  EXPECT_EQ(stack(*kept, "mul_scalar"), "elsewhere") << "the meta of the node it comes from wins";
  EXPECT_EQ(kept->graph().find_node("mul_scalar")->stack_trace(), "line 9");
  EXPECT_EQ(from_node(*kept->graph().find_node("mul_scalar"))[0].name, "f");
}

TEST(TracerState, T_028_T_029_T_042_a_trace_leaves_no_state_behind) {
  EXPECT_FALSE(is_fx_tracing());
  Tracer tracer;
  EXPECT_THROW(trace(tracer, [](Proxy) -> Proxy { throw std::runtime_error("in the program"); }),
               std::runtime_error);
  EXPECT_FALSE(is_fx_tracing());
  EXPECT_FX_ERROR(tracer.graph(), TraceError, kNotTracing, "no trace running");
  auto graph = trace(tracer, [](Proxy x) { return x + 1; });
  EXPECT_TRUE(graph->output_node().is_output());
  EXPECT_EQ(graph->placeholders().size(), 1u);
  EXPECT_FX_ERROR(trace(tracer,
                        [&](Proxy x) {
                          trace(tracer, [](Proxy y) { return y; });
                          return x;
                        }),
                  TraceError, kMixedTracers, "is tracing already");
}

}  // namespace
}  // namespace fx
