// The Python source of graphs, line by line. That Python runs it is tested in python_run_test.cpp.
#include "fx/graph/python_code.h"

#include <torch/torch.h>

#include <limits>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"
#include "tests/graph/graphs.h"
#include "tests/graph/random_graph.h"

namespace fx {
namespace {

/// The lines of forward's body for a graph built by `build(graph, x)`.
template <typename Build>
std::string body(Build&& build, const PythonCodeOptions& options = {}) {
  Graph graph;
  Node& x = graph.placeholder("x");
  build(graph, x);
  const std::string source = python_code(graph, "M", options);
  const std::string head = "def forward(self, x):\n";
  return source.substr(source.find(head) + head.size());
}

TEST(PythonCode, G_082_G_074_a_whole_file) {
  struct Net : torch::nn::Module {
    Net() {
      register_parameter("w", torch::ones({2, 3}));
      register_buffer("b", torch::ones({3}, torch::kDouble));
      register_module("seq", torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::ReLU()));
    }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  Node& input = graph->placeholder_with_default("input", 2.5);
  Node& w = graph->get_attr("w");
  Node& b = graph->get_attr("b");
  Node& add = graph->call_function("operator.add", {x, w});
  Node& seq = graph->call_module("seq", {add});
  Node& first = graph->call_module("seq.0", {add});
  Node& sum = graph->call_function("aten::add.Tensor", {seq, first}, {{"alpha", 2}});
  Node& iadd = graph->call_function("operator.iadd", {sum, input});
  Node& wrapped = graph->call_function("my.func", {iadd, b});
  Node& clamp = graph->call_method(
      "clamp", {wrapped}, {{"min", 0.0}, {"from", std::numeric_limits<double>::infinity()}});
  graph->output(Argument::dict({{"a", clamp}}), "Dict[str, Tensor]");
  GraphModule module(Net(), graph, "MyNet");
  module.eval();
  EXPECT_EQ(module.python_code(),
            R"py(from __future__ import annotations

import operator

import torch
import torch.fx
from math import inf


@torch.fx.wrap
def _operator_iadd(x, y):
    return operator.iadd(x, y)


@torch.fx.wrap
def my_func(*args, **kwargs):
    raise NotImplementedError('the C++ function my.func has no Python implementation here')


class MyNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros([2, 3], dtype=torch.float32))
        self.register_buffer('b', torch.zeros([3], dtype=torch.float64))
        self.seq = torch.nn.Sequential()
        self.seq.add_module('0', torch.nn.Linear(in_features=3, out_features=4, bias=True))
        self.seq.add_module('1', torch.nn.ReLU(inplace=False))
        self.train(False)

    def forward(self, x : Tensor, input = 2.5) -> Dict[str, Tensor]:
        input_1 = input
        w = self.w
        b = self.b
        add = x + w;  x = w = None
        seq = self.seq(add)
        seq_0 = getattr(self.seq, '0')(add);  add = None
        add_tensor = torch.ops.aten.add.Tensor(seq, seq_0, alpha = 2);  seq = seq_0 = None
        iadd = _operator_iadd(add_tensor, input_1);  add_tensor = input_1 = None
        func = my_func(iadd, b);  iadd = b = None
        clamp = func.clamp(min = 0.0, **{'from': inf});  func = None
        return {'a': clamp}
)py");
}

TEST(PythonCode, G_097_G_077_operators_are_infix) {
  const std::vector<std::pair<const char*, const char*>> binary = {
      {"add", "x + 2"},     {"sub", "x - 2"},       {"mul", "x * 2"},  {"truediv", "x / 2"},
      {"mod", "x % 2"},     {"floordiv", "x // 2"}, {"pow", "x ** 2"}, {"matmul", "x @ 2"},
      {"lshift", "x << 2"}, {"rshift", "x >> 2"},   {"and_", "x & 2"}, {"or_", "x | 2"},
      {"xor", "x ^ 2"},     {"eq", "x == 2"},       {"ne", "x != 2"},  {"lt", "x < 2"},
      {"le", "x <= 2"},     {"gt", "x > 2"},        {"ge", "x >= 2"},  {"getitem", "x[2]"}};
  for (const auto& [name, text] : binary)
    EXPECT_EQ(body([&](Graph& g, Node& x) {
                g.output(g.call_function("operator." + std::string(name), {x, 2}, {}, "y"));
              }),
              "        y = " + std::string(text) + ";  x = None\n        return y\n");
  for (const auto& [name, text] :
       std::vector<std::pair<const char*, const char*>>{{"neg", "-x"},
                                                        {"pos", "+x"},
                                                        {"invert", "~x"},
                                                        {"abs", "operator.abs(x)"},
                                                        {"not_", "operator.not_(x)"}})
    EXPECT_EQ(body([&](Graph& g, Node& x) {
                g.output(g.call_function("operator." + std::string(name), {x}, {}, "y"));
              }),
              "        y = " + std::string(text) + ";  x = None\n        return y\n");
}

TEST(PythonCode, operators_bind_as_they_should) {
  EXPECT_THAT(
      body([](Graph& g, Node& x) {
        g.output(Argument::list(
            {g.call_function("operator.pow", {-2, x}, {}, "a"),
             g.call_function("operator.pow", {-2.5, -1}, {}, "b"),
             g.call_function("operator.sub", {5, x}, {}, "c"),
             g.call_function("operator.rsub", {x, 5}, {}, "d"),
             g.call_function("operator.neg", {-3}, {}, "e"), g.call_method("bit_length", {7}),
             g.call_function("operator.getitem", {Argument::list({x, 1}), 0}, {}, "f")}));
      }),
      ::testing::StartsWith("        a = (-2) ** x\n"
                            "        b = (-2.5) ** (-1)\n"
                            "        c = 5 - x\n"
                            "        d = 5 - x\n"
                            "        e = -(-3)\n"
                            "        bit_length = (7).bit_length()\n"
                            "        f = ([x, 1])[0];  x = None\n"));
}

TEST(PythonCode, G_075_values_are_freed_after_their_last_use) {
  auto build = [](Graph& g, Node& x) {
    Node& a = g.call_function("torch.relu", {x}, {}, "a");
    g.call_function("torch.neg", {a}, {}, "unused");
    Node& b = g.call_function("torch.add", {a, x}, {}, "b");
    Node& c = g.call_function("torch.mul", {b, b}, {}, "c");
    g.output(Argument::tuple({c, b}));
  };
  EXPECT_EQ(body(build),
            "        a = torch.relu(x)\n"
            "        unused = torch.neg(a);  unused = None\n"
            "        b = torch.add(a, x);  a = x = None\n"
            "        c = torch.mul(b, b)\n"
            "        return (c, b)\n");
  EXPECT_EQ(body(build, {.free_values = false}),
            "        a = torch.relu(x)\n"
            "        unused = torch.neg(a)\n"
            "        b = torch.add(a, x)\n"
            "        c = torch.mul(b, b)\n"
            "        return (c, b)\n");
}

TEST(PythonCode, F_198_a_result_that_nobody_reads_is_freed_at_once) {
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& y = g.call_method("clone", {x}, {});
              g.call_method("copy_", {y, x});
              g.output(y);
            }),
            "        clone = x.clone()\n"
            "        copy_ = clone.copy_(x);  x = copy_ = None\n"
            "        return clone\n");
}

TEST(PythonCode, G_076_F_051_types_are_annotations) {
  const std::string source = body([](Graph& g, Node& x) {
    Node& a = g.call_function("torch.relu", {x}, {}, "a", "torch.Tensor");
    Node& b = g.call_function("torch.neg", {a}, {}, "b", "this is no type");
    g.output(b);
  });
  EXPECT_EQ(source,
            "        a : torch.Tensor = torch.relu(x);  x = None\n"
            "        b : 'this is no type' = torch.neg(a);  a = None\n"
            "        return b\n");
}

TEST(PythonCode, G_089_inputs_after_operations_are_parameters_all_the_same) {
  Graph graph;
  Node& a = graph.call_function("torch.ones", {2});
  Node& x = graph.placeholder("x");
  graph.output(graph.call_function("torch.add", {a, x}));
  EXPECT_THAT(python_code(graph), ::testing::HasSubstr("def forward(self, x):\n"
                                                       "        ones = torch.ones(2)\n"
                                                       "        add = torch.add(ones, x);"));
}

TEST(PythonCode, F_192_in_place_operators_keep_writing_to_their_first_operand) {
  auto graph = std::make_shared<Graph>();
  Node& a = graph->placeholder("a");
  Node& b = graph->placeholder("b");
  graph->output(graph->call_function("operator.imul", {a, b}));
  EXPECT_THAT(python_code(*graph), ::testing::HasSubstr("imul = _operator_imul(a, b);"));
  GraphModule module(graph);
  const at::Tensor x = torch::tensor({2.f});
  EXPECT_EQ(module(x, torch::tensor({3.f})).toTensor().item<double>(), 6);
  EXPECT_EQ(x.item<double>(), 6) << "the tensor itself is multiplied";
  EXPECT_EQ(module(2, 3).toInt(), 6);
}

TEST(PythonCode, G_078_getattr) {
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& a = g.call_function("builtins.getattr", {x, "shape"}, {}, "a");
              Node& b = g.call_function("builtins.getattr", {a, "a b"}, {}, "b");
              Node& c = g.call_function("builtins.getattr", {b, "class"}, {}, "c");
              g.output(g.call_function("builtins.getattr", {c, "d", Argument()}, {}, "d"));
            }),
            "        a = x.shape;  x = None\n"
            "        b = getattr(a, 'a b');  a = None\n"
            "        c = getattr(b, 'class');  b = None\n"
            "        d = getattr(c, 'd', None);  c = None\n"
            "        return d\n");
}

TEST(PythonCode, operators_by_overload) {
  EXPECT_EQ(body(
                [](Graph& g, Node& x) {
                  Node& a = g.call_function("aten::relu", {x}, {}, "a");
                  Node& b = g.call_function("aten::add", {a, 1}, {}, "b");  // no default overload
                  Node& c = g.call_function("aten::random_.from", {b, 1, 5}, {}, "c");
                  Node& d = g.call_function("aten::to.dtype", {c, 6}, {}, "d");
                  Node& e =
                      g.call_function("aten::_to_copy", {d},
                                      {{"dtype", 7}, {"layout", 0}, {"memory_format", 2}}, "e");
                  g.output(g.call_function("my_lib::op", {e}, {}, "f"));
                },
                {.free_values = false}),
            "        a = torch.ops.aten.relu.default(x)\n"
            "        b = torch.ops.aten.add(a, 1)\n"
            "        c = getattr(torch.ops.aten.random_, 'from')(b, 1, 5)\n"
            "        d = torch.ops.aten.to.dtype(c, torch.float32)\n"
            "        e = torch.ops.aten._to_copy.default(d, dtype = torch.float64, layout = "
            "torch.strided, memory_format = torch.channels_last)\n"
            "        f = torch.ops.my_lib.op.default(e)\n"
            "        return f\n");
}

TEST(PythonCode, G_081_literals) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::string source = [&] {
    Graph graph;
    graph.output(Argument::list({Argument(),
                                 true,
                                 -1,
                                 1e16,
                                 -0.0,
                                 -kInf,
                                 kNan,
                                 std::complex<double>(1, -0.0),
                                 std::complex<double>(kNan, kInf),
                                 "it's",
                                 "a\nb",
                                 std::string("\xff\0'", 3),
                                 "π",
                                 c10::ScalarType::BFloat16,
                                 c10::Device(c10::kCUDA, 1),
                                 c10::kStrided,
                                 c10::MemoryFormat::ChannelsLast,
                                 Argument::ellipsis(),
                                 Argument::slice({}, 2, {}),
                                 Argument::tuple({}),
                                 Argument::tuple({1}),
                                 Argument::dict({{"k", 1}, {2, Argument::list({})}})}));
    return python_code(graph);
  }();
  EXPECT_THAT(source,
              ::testing::HasSubstr("from math import inf, nan\nfrom torch import device\n"));
  EXPECT_THAT(
      source,
      ::testing::HasSubstr(
          "return [None, True, -1, 1e+16, -0.0, -inf, nan, complex(1.0, -0.0), complex(nan, inf), "
          "\"it's\", 'a\\nb', '\\udcff\\x00\\'', 'π', torch.bfloat16, device(type='cuda', "
          "index=1), "
          "torch.strided, torch.channels_last, Ellipsis, slice(None, 2, None), (), (1,), {'k': 1, "
          "2: "
          "[]}]\n"));
  Graph graph;
  graph.output(c10::ScalarType::Undefined);
  EXPECT_FX_ERROR(python_code(graph), GraphError, kNotExpressible, "undefined dtype");
}

TEST(PythonCode, G_080_paths) {
  EXPECT_EQ(
      body([](Graph& g, Node& x) {
        Node& a = g.get_attr("layer1.0.weight");
        g.output(g.call_module("blocks.class.conv", {x, a}));
      }),
      "        layer1_0_weight = getattr(self.layer1, '0').weight\n"
      "        blocks_class_conv = getattr(self.blocks, 'class').conv(x, layer1_0_weight);  x = "
      "layer1_0_weight = None\n"
      "        return blocks_class_conv\n");
}

TEST(PythonCode, G_090_signatures) {
  auto signature = [](auto&& build) {
    Graph graph;
    build(graph);
    const std::string source = python_code(graph);
    const std::size_t from = source.find("def forward");
    return source.substr(from, source.find(":\n", from) - from);
  };
  EXPECT_EQ(signature([](Graph& g) {
              g.placeholder("*args");
              g.placeholder("**kw");
              g.placeholder("a");
            }),
            "def forward(self, a, *args, **kw)");
  // Python wants defaults last.
  EXPECT_EQ(signature([](Graph& g) {
              g.placeholder_with_default("a", 1);
              g.placeholder("b");
              g.placeholder_with_default("c", "x");
            }),
            "def forward(self, a, b, c = 'x')");
  // Targets that are no parameters: the node's name stands for them.
  EXPECT_EQ(signature([](Graph& g) {
              g.placeholder("a b");
              g.placeholder("self");
              g.placeholder("class");
              g.placeholder("torch");
              g.placeholder("x");
              g.placeholder("x");
              g.placeholder("len");
            }),
            "def forward(self, a_b, self_1, class_1, torch_1, x, x_1, len)");
  EXPECT_EQ(
      signature([](Graph& g) {
        g.placeholder("a", "Tuple[int, ...]");
        g.placeholder("b", "torch.Tensor");
        g.placeholder("c", "int | None");
        g.placeholder("d", "List[");
        g.placeholder("e", "for");
        g.placeholder("f", "Optional[None]");
      }),
      "def forward(self, a : Tuple[int, ...], b : torch.Tensor, c : 'int | None', d : 'List[', e "
      ": 'for', f : Optional[None])");
}

// A name that is a local variable must not hide a function that the code calls.
TEST(PythonCode, F35_names_that_collide) {
  const std::string source = [] {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& a = graph.call_function("my_fn", {x}, {}, "operator");
    Node& b = graph.call_function("operator.not_", {a}, {}, "self");
    Node& c = graph.call_function("my_fn", {b});  // named my_fn
    Node& d = graph.call_function("operator.setitem", {c, 0, b}, {}, "_operator_setitem");
    Node& e = graph.placeholder("abs");
    graph.output(graph.call_function("builtins.abs", {Argument::list({d, e})}, {}, "M"));
    return python_code(graph, "M");
  }();
  EXPECT_THAT(source,
              ::testing::HasSubstr("    def forward(self, x, abs_1):\n"
                                   "        operator_1 = my_fn(x);  x = None\n"
                                   "        self_1 = operator.not_(operator_1);  operator_1 = "
                                   "None\n"
                                   "        my_fn_1 = my_fn(self_1)\n"
                                   "        _operator_setitem_1 = _operator_setitem(my_fn_1, 0, "
                                   "self_1);  my_fn_1 = self_1 = None\n"
                                   "        M_1 = abs([_operator_setitem_1, abs_1]);  "
                                   "_operator_setitem_1 = abs_1 = None\n"));
}

TEST(PythonCode, parameters_that_swap_names) {
  Graph graph;
  Node& a = graph.create_node(Opcode::kPlaceholder, Target::string("b"), {}, {}, "a");
  Node& b = graph.create_node(Opcode::kPlaceholder, Target::string("a"), {}, {}, "b");
  graph.output(Argument::tuple({a, b}));
  EXPECT_THAT(python_code(graph), ::testing::HasSubstr("    def forward(self, b, a):\n"
                                                       "        a_1 = b\n"
                                                       "        b_1 = a\n"
                                                       "        return (a_1, b_1)\n"));
}

TEST(PythonCode, Q_002_G_086_G_087_G_030_small_and_odd_graphs) {
  Graph empty;
  EXPECT_THAT(python_code(empty), ::testing::EndsWith("    def forward(self):\n        pass\n"));
  Graph inputs;
  inputs.placeholder("x");
  EXPECT_THAT(python_code(inputs),
              ::testing::EndsWith("    def forward(self, x):\n        pass\n"));
  // What stands behind the first output does not run.
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& a = g.call_function("torch.relu", {x}, {}, "a");
              g.output(a);
              g.call_function("torch.neg", {a});
              g.output(x);
            }),
            "        a = torch.relu(x);  x = None\n        return a\n");
  EXPECT_EQ(body([](Graph& g, Node& x) { g.create_node("output", "output", {}); }),
            "        return None\n");
}

TEST(PythonCode, modules_that_python_lacks_are_an_error) {
  struct Own : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return x; }
  };
  struct Net : torch::nn::Module {
    Net() { register_module("own", std::make_shared<Own>()); }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module("own", {x}));
  GraphModule module(Net(), graph);
  EXPECT_FX_ERROR(module.python_code(), GraphError, kUnknownModuleType,
                  "cannot write Python code for the submodule 'own' of class ");
}

TEST(PythonCode, constants_have_a_limit) {
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_constant("table", torch::zeros({1000}));
  graph->output(graph->get_attr("table"));
  EXPECT_THAT(module.python_code(), ::testing::HasSubstr("base64.b64decode(\"AAAA"));
  EXPECT_FX_ERROR(python_code(*graph, "M", {.max_constant_bytes = 100}), GraphError,
                  kNotExpressible,
                  "the constant 'table' has 4000 bytes, and max_constant_bytes is 100");
}

TEST(PythonCode, broken_graphs_do_not_crash) {
  Graph graph, other;
  Node& y = other.placeholder("y");
  graph.output(graph.call_function("torch.relu", {y}));
  EXPECT_FX_ERROR(python_code(graph), GraphError, kForeignNode, "node y is used but is not in");
  Graph method;
  method.output(method.call_method("relu", {}));
  EXPECT_FX_ERROR(python_code(method), GraphError, kIndexOutOfRange, "relu has no object");
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    try {
      (void)python_code(*random_graph(seed));
    } catch (const GraphError&) {
    }
  }
}

}  // namespace
}  // namespace fx
