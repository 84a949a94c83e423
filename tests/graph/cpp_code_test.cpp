// The C++ source of graphs, line by line. That it compiles and gives the same is tested in
// cpp_run_test.cpp.
#include "fx/graph/cpp_code.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <limits>

#include "fx/graph/graph_module.h"
#include "fx/graph/python_code.h"
#include "tests/graph/graphs.h"
#include "tests/graph/random_graph.h"

namespace fx {
namespace {

/// The body of the function for a graph built by `build(graph, x)`.
template <typename Build>
std::string body(Build&& build, const CppCodeOptions& options = {.free_values = false}) {
  Graph graph;
  build(graph, graph.placeholder("x"));
  const std::string source = cpp_code(graph, options);
  const std::size_t head = source.find("at::Tensor x) {\n");
  EXPECT_NE(head, std::string::npos) << source;
  return source.substr(head + std::string_view("at::Tensor x) {\n").size());
}

TEST(CppCode, a_whole_file) {
  torch::nn::Module root;
  root.register_parameter("w", torch::ones({3}));
  root.register_module("fc", torch::nn::Linear(3, 4));
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& scale = graph->placeholder_with_default("scale", 2.5);
  Node& w = graph->get_attr("w");
  Node& mul = graph->call_function("operator.mul", {x, w});
  Node& fc = graph->call_module("fc", {mul});
  Node& scaled = graph->call_function("aten::mul.Scalar", {fc, scale});
  Node& relu = graph->call_function("aten::relu_", {scaled});
  graph->output(relu);
  GraphModule module(root, graph);
  EXPECT_EQ(module.code(),
            R"src(#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Parameters, buffers and constants by their path.
using Weights = std::map<std::string, at::Tensor>;

at::Tensor forward(const Weights& weights, at::Tensor x, double scale = 2.5) {
  at::Tensor w = weights.at("w");
  at::Tensor mul = at::mul(x, w);  x.reset();  w.reset();
  at::Tensor fc = at::linear(mul, weights.at("fc.weight"), weights.at("fc.bias"));  mul.reset();
  at::Tensor mul_scalar = at::mul(fc, scale);  fc.reset();
  at::Tensor relu_ = at::relu_(mul_scalar);  mul_scalar.reset();
  return relu_;
}
)src");
}

TEST(CppCode, calls_follow_the_schema) {
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& a = g.call_function("aten::add.Tensor", {x, x}, {}, "a");
              Node& b = g.call_function("aten::add.Tensor", {a, x}, {{"alpha", 2}}, "b");
              Node& c = g.call_function("aten::view", {b, Argument::list({2, -1})}, {}, "c");
              Node& d = g.call_function("aten::sum.dim_IntList", {c, Argument::list({1})}, {}, "d");
              Node& e = g.call_function("aten::add_.Scalar", {d, 1}, {}, "e");
              Node& f = g.call_function("aten::clamp", {e, 0.0}, {}, "f");
              Node& h = g.call_function("aten::to.dtype", {f, 7}, {}, "h");
              Node& z = g.call_function("aten::zeros", {Argument::list({2})},
                                        {{"device", c10::Device(c10::kCPU)}}, "z");
              g.output(g.call_function("aten::cat", {Argument::list({h, z})}, {}, "out"));
            }),
            "  at::Tensor a = at::add(x, x);\n"
            "  at::Tensor b = at::add(a, x, 2);\n"
            "  at::Tensor c = b.view(std::vector<std::int64_t>{2, -1});\n"
            "  at::Tensor d = at::sum(c, std::vector<std::int64_t>{1}, false);\n"
            "  at::Tensor e = d.add_(1);\n"
            "  at::Tensor f = at::clamp(e, 0.0, std::nullopt);\n"
            "  at::Tensor h = f.to(at::kDouble, false, false);\n"
            "  at::Tensor z = at::zeros(std::vector<std::int64_t>{2}, std::nullopt, std::nullopt, "
            "at::Device(\"cpu\"), std::nullopt);\n"
            "  at::Tensor out = at::cat(std::vector<at::Tensor>{h, z}, 0);\n"
            "  return out;\n}\n");
}

TEST(CppCode, python_operators_pick_their_overload) {
  EXPECT_EQ(
      body([](Graph& g, Node& x) {
        Node& a = g.call_function("operator.add", {x, 1}, {}, "a");
        Node& b = g.call_function("operator.sub", {5, a}, {}, "b");
        Node& c = g.call_function("operator.truediv", {1, b}, {}, "c");
        Node& d = g.call_function("operator.pow", {2, c}, {}, "d");
        g.call_function("operator.iadd", {d, x}, {}, "e");
        Node& i = g.call_function(
            "operator.getitem",
            {d, Argument::tuple({Argument::slice({}, 2), Argument::ellipsis(), Argument(), 0})}, {},
            "i");
        g.call_function("operator.setitem", {i, 0, 1.5});
        g.output(i);
      }),
      "  at::Tensor a = at::add(x, 1);\n"
      "  at::Tensor b = at::rsub(a, 5);\n"
      "  at::Tensor c = at::div(at::native::wrapped_scalar_tensor(1), b);\n"
      "  at::Tensor d = at::pow(2, c);\n"
      "  d.add_(x);\n"
      "  at::Tensor i = d.index({at::indexing::Slice(at::indexing::None, 2, "
      "at::indexing::None), at::indexing::Ellipsis, at::indexing::None, 0});\n"
      "  i.index_put_({0}, 1.5);\n"
      "  return i;\n}\n");
}

TEST(CppCode, several_results_lists_and_numbers) {
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& t = g.call_function("torch.topk", {x, 2}, {}, "t");
              Node& v = g.call_function("operator.getitem", {t, -1}, {}, "v");
              Node& s = g.call_function("torch.split", {v, 1}, {{"dim", 0}}, "s");
              Node& last = g.call_function("operator.getitem", {s, -1}, {}, "last");
              Node& n = g.call_method("size", {x, 0});
              Node& half = g.call_function("operator.floordiv", {n, 2}, {}, "half");
              Node& shape = g.call_function("builtins.getattr", {x, "shape"}, {}, "shape");
              Node& one = g.call_function("operator.getitem", {shape, 0}, {}, "one");
              Node& sum = g.call_function("operator.add", {half, one}, {}, "total");
              g.output(g.call_method("repeat", {last, sum, 1}));
            }),
            "  std::tuple<at::Tensor, at::Tensor> t = at::topk(x, 2, -1, true, true);\n"
            "  at::Tensor v = std::get<1>(t);\n"
            "  std::vector<at::Tensor> s = at::split(v, 1, 0);\n"
            "  at::Tensor last = s.at(s.size() - 1);\n"
            "  std::int64_t size = at::size(x, 0);\n"
            "  std::int64_t half = floor_div(size, 2);\n"
            "  std::vector<std::int64_t> shape = x.sizes().vec();\n"
            "  std::int64_t one = shape.at(0);\n"
            "  std::int64_t total = half + one;\n"
            "  at::Tensor repeat = last.repeat(std::vector<std::int64_t>{total, 1});\n"
            "  return repeat;\n}\n");
}

TEST(CppCode, what_is_not_regular_goes_through_the_dispatcher) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& up = graph.call_function("aten::upsample_nearest1d", {x, Argument::list({4}), Argument()},
                                 {}, "up");
  graph.output(up);
  const std::string source = cpp_code(graph);
  EXPECT_THAT(source, ::testing::HasSubstr("#include <ATen/core/dispatch/Dispatcher.h>"));
  EXPECT_THAT(source, ::testing::HasSubstr("auto call(const char* name, const char* overload"));
  EXPECT_THAT(source,
              ::testing::HasSubstr("at::Tensor up = call<at::Tensor>(\"aten::upsample_nearest1d\", "
                                   "\"\", {c10::IValue(x), "
                                   "c10::IValue(std::vector<std::int64_t>{4}), "
                                   "c10::IValue(std::nullopt)});"));
}

TEST(CppCode, names_that_are_words_of_cpp) {
  EXPECT_EQ(body([](Graph& g, Node& x) {
              Node& a = g.call_function("torch.relu", {x}, {}, "template");
              Node& b = g.call_function("torch.relu", {a}, {}, "at");
              Node& c = g.call_function("torch.relu", {b}, {}, "weights");
              g.output(g.call_function("torch.relu", {c}, {}, "forward"));
            }),
            "  at::Tensor template_1 = at::relu(x);\n"
            "  at::Tensor at_1 = at::relu(template_1);\n"
            "  at::Tensor weights_1 = at::relu(at_1);\n"
            "  at::Tensor forward_1 = at::relu(weights_1);\n"
            "  return forward_1;\n}\n");
}

TEST(CppCode, text_literals) {
  Graph graph;
  graph.output(Argument::list({"a\"b\\c\n", std::string("\0z", 2), "?\?/", 1}));
  EXPECT_THAT(
      cpp_code(graph),
      ::testing::HasSubstr(R"(c10::IValue(std::string("a\"b\\c\012")), )"
                           R"(c10::IValue(std::string(std::string("\000z", 2))), )"
                           R"(c10::IValue(std::string("?\?/")), c10::IValue(std::int64_t{1}))"));
}

TEST(CppCode, what_has_no_form_is_an_error_that_names_the_node) {
  auto fails = [](auto&& build, const char* why) {
    Graph graph;
    build(graph, graph.placeholder("x"));
    EXPECT_FX_ERROR(cpp_code(graph), GraphError, kNotExpressible, why);
  };
  fails([](Graph& g, Node& x) { g.call_function("my.fn", {x}); },
        "cannot write C++ code for %fn : [num_users=0] = call_function[target=my.fn](args = (%x,), "
        "kwargs = {}): a wrapped function has no source here");
  fails([](Graph& g, Node&) { g.placeholder("*args"); }, "a variable number of inputs");
  fails([](Graph& g, Node& x) { g.call_function("nobody::knows", {x}); },
        "this process does not know the operator");
  fails([](Graph& g, Node& x) { g.call_function("torch.relu", {x, "a"}); },
        "no overload takes arguments of these C++ types");
  fails([](Graph& g, Node& x) { g.call_function("builtins.getattr", {x, "nope"}); },
        "this attribute has no C++ form");
  fails([](Graph& g, Node&) { g.call_function("operator.pow", {2, 3}); },
        "this operator on numbers has no C++ form");
  Graph module;
  module.call_module("fc", {module.placeholder("x")});
  EXPECT_FX_ERROR(cpp_code(module), GraphError, kUnknownModuleType, "no module at that path");
}

TEST(CppCode, broken_and_odd_graphs_do_not_crash) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    try {
      (void)cpp_code(*random_graph(seed));
    } catch (const GraphError&) {
    }
  }
}

// A hook into code generation: lines in, lines out; scopes restore, transformers chain.
TEST(CodeGeneration, G_091_S3_78_S4_108_G_046_on_generate_code) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::relu", {x}));
  const std::string cpp = cpp_code(graph), python = python_code(graph);
  auto prepend = [](std::string text) {
    return [text](CodeTransformer current) -> CodeTransformer {
      return [text, current](std::vector<std::string> body, CodeLanguage language) {
        if (current) body = current(std::move(body), language);
        body.insert(body.begin(), (language == CodeLanguage::kCpp ? "// " : "# ") + text);
        return body;
      };
    };
  };
  {
    const auto outer = graph.on_generate_code(prepend("one"));
    EXPECT_THAT(cpp_code(graph), testing::HasSubstr("{\n  // one\n  at::Tensor relu"));
    EXPECT_THAT(python_code(graph), testing::HasSubstr(":\n        # one\n        relu = "));
    {
      const auto inner = graph.on_generate_code(prepend("two"));
      EXPECT_THAT(cpp_code(graph), testing::HasSubstr("  // two\n  // one\n"));
      EXPECT_THAT(cpp_code(*graph.clone()), testing::HasSubstr("  // two\n  // one\n"));
    }
    EXPECT_THAT(cpp_code(graph), testing::Not(testing::HasSubstr("two")));
  }
  EXPECT_EQ(cpp_code(graph), cpp);
  EXPECT_EQ(python_code(graph), python);
  graph.on_generate_code(prepend("kept")).keep();
  EXPECT_THAT(cpp_code(graph), testing::HasSubstr("// kept"));
  graph.on_generate_code([](CodeTransformer) { return CodeTransformer(); }).keep();
  EXPECT_EQ(cpp_code(graph), cpp);
}

}  // namespace
}  // namespace fx
