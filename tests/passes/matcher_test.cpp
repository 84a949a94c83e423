// SubgraphMatcher: R-033 to R-048 and R-080 of the inventory, and what goes beyond torch.fx.

#include "fx/passes/pattern_matcher.h"

#include "fx/ops/call.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// Number of matches with match_output and match_placeholder off/off, on/off, off/on, on/on.
struct Expected {
  int ff = -1, tf = -1, ft = -1, tt = -1;  // -1: not asked
};

std::vector<PatternMatch> find(GraphModule& module, const Graph& pattern,
                               MatchOptions options = {}) {
  return SubgraphMatcher(pattern, std::move(options)).match(module.graph());
}

template <typename Forward, typename Pattern>
void expect_matches(Forward forward, Pattern pattern, Expected expected) {
  const auto module = symbolic_trace(forward);
  const auto pattern_module = symbolic_trace(pattern);
  const struct {
    int wanted;
    bool output, placeholder;
  } cases[] = {{expected.ff, false, false},
               {expected.tf, true, false},
               {expected.ft, false, true},
               {expected.tt, true, true}};
  for (const auto& [wanted, output, placeholder] : cases) {
    if (wanted < 0) continue;
    const auto matches = find(*module, pattern_module->graph(),
                              {.match_output = output, .match_placeholder = placeholder});
    EXPECT_EQ(matches.size(), static_cast<std::size_t>(wanted))
        << "match_output " << output << ", match_placeholder " << placeholder << "\n"
        << module->graph().str() << pattern_module->graph().str();
    for (const PatternMatch& match : matches)
      for (const Node& node : pattern_module->graph().nodes())
        EXPECT_TRUE(node.is_output() || match.nodes_map.contains(node)) << node.name();
  }
}

TEST(SubgraphMatcher, R033_SingleNodePattern) {
  expect_matches(
      [](auto x) {
        auto val = neg(x);
        return add(val, val);
      },
      [](auto a) { return neg(a); }, {1, 0, 1, 0});
}

TEST(SubgraphMatcher, R034_SimplePattern) {
  expect_matches(
      [](auto x, auto w1, auto w2) {
        auto m1 = cat(std::vector<Proxy>{w1, w2}).sum();
        auto m2 = cat(std::vector<Proxy>{w2, w1}).sum();
        auto m3 = cat(std::vector<Proxy>{m1, m2}).sum();
        return x + max(m1) + max(m2) + m3;
      },
      [](auto a, auto b) { return cat(std::vector<Proxy>{a, b}).sum(); }, {3, 0, 2, 0});
}

TEST(SubgraphMatcher, R035_SimpleFullGraphMatching) {
  auto forward = [](auto x) {
    auto a = neg(x);
    return add(a, a);
  };
  expect_matches(forward, forward, {1, 1, 1, 1});
}

TEST(SubgraphMatcher, R036_DiamondShape) {
  expect_matches(
      [](auto x) {
        auto a = neg(x);
        a = a.relu();
        auto left = a.sigmoid();
        auto right = a.relu();
        return left + right;
      },
      [](auto x) {
        auto a = x.relu();
        auto left = a.sigmoid();
        auto right = a.relu();
        return left + right;
      },
      {1, 1, 0, 0});
}

TEST(SubgraphMatcher, R037_NonFullyContainedMatches) {
  expect_matches(
      [](auto x, auto w1, auto w2, auto b1, auto b2) {
        auto m1 = cat(std::vector<Proxy>{w1, w2});
        auto m2 = cat(std::vector<Proxy>{x, b2});
        auto t0 = addmm(b1, m1, m2.t());
        auto t0_sum = sum(t0);
        auto m3 = cat(std::vector<Proxy>{w1, w2});
        auto m4 = cat(std::vector<Proxy>{x, b2});
        auto t1 = addmm(b1, m3, m4.t());
        auto m3_sum = sum(m3);
        return std::tuple{t0_sum, m3_sum};
      },
      [](auto x, auto w1, auto w2, auto b1, auto b2) {
        auto m1 = cat(std::vector<Proxy>{w1, w2});
        auto m2 = cat(std::vector<Proxy>{x, b2});
        return addmm(b1, m1, m2.t());
      },
      {1, 0, 1});
}

TEST(SubgraphMatcher, R038_ChainRepeatedPattern) {
  auto forward = [](auto x) { return sigmoid(sigmoid(sigmoid(sigmoid(x)))); };
  auto pattern = [](auto x) { return sigmoid(sigmoid(x)); };
  expect_matches(forward, pattern, {2, 1, 1, 0});
  const auto module = symbolic_trace(forward);
  const auto traced = symbolic_trace(pattern);
  EXPECT_EQ(find(*module, traced->graph(), {.remove_overlapping_matches = false}).size(), 3u);
}

TEST(SubgraphMatcher, R039_QuantizationModel) {
  expect_matches(
      [](auto x) {
        x += 3;
        x = x.call_method("dequantize");
        x = sigmoid(x);
        return x.to(at::kHalf);
      },
      [](auto x) { return sigmoid(x.call_method("dequantize")).to(at::kHalf); }, {1, 1, 0, 0});
}

TEST(SubgraphMatcher, R040_MultipleOutputsWithDependency) {
  expect_matches(
      [](auto x) {
        auto y = x.relu();
        auto z = y.sigmoid();
        return std::tuple{z, y};
      },
      [](auto a) {
        auto b = a.relu();
        auto c = b.sigmoid();
        return std::tuple{b, c};
      },
      {1, 0, 1, 0});
}

TEST(SubgraphMatcher, R041_MultipleOutputsWithoutDependency) {
  expect_matches(
      [](auto x) {
        x = x + 1;
        x = x.relu();
        auto z = x.sum();
        auto y = x.sigmoid();
        return y.sigmoid() + z.sum();
      },
      [](auto x) {
        auto a = x.relu();
        auto b = a.sigmoid();
        auto c = a.sum();
        return std::tuple{b, c};
      },
      {1, 0, 0, 0});
}

TEST(SubgraphMatcher, R042_MultipleOutputsMultipleOverlappingMatches) {
  auto forward = [](auto x) {
    x = x + 1;
    x = x.relu();
    auto z = x.sum();
    auto z1 = x.sum();
    auto y = x.sigmoid();
    auto y1 = x.sigmoid();
    return z + z1 + y + y1;
  };
  auto pattern = [](auto x) {
    auto a = x.relu();
    auto b = a.sigmoid();
    auto c = a.sum();
    return std::tuple{a, b, c};
  };
  expect_matches(forward, pattern, {1});
  const auto module = symbolic_trace(forward);
  const auto traced = symbolic_trace(pattern);
  EXPECT_EQ(find(*module, traced->graph(), {.remove_overlapping_matches = false}).size(), 4u);
}

TEST(SubgraphMatcher, R043_MultipleOutputsMultipleNonOverlappingMatches) {
  expect_matches(
      [](auto x) {
        x = x + 1;
        x = x.relu();
        auto z = x.sum();
        auto y = x.sigmoid();
        x = x.relu();
        auto z1 = x.sum();
        auto y1 = x.sigmoid();
        return z + z1 + y + y1;
      },
      [](auto x) {
        auto a = x.relu();
        auto b = a.sigmoid();
        auto c = a.sum();
        return std::tuple{b, c};
      },
      {1});
}

// torch.fx is known to give 2 for the first.
TEST(SubgraphMatcher, R044_MultipleOutputsIdenticalAnchor) {
  expect_matches(
      [](auto x) {
        x = x + 1;
        x = x.relu();
        auto y = x.sigmoid();
        auto y1 = x.sigmoid();
        return std::tuple{y, y1};
      },
      [](auto x) {
        auto a = x.relu();
        auto b = a.sigmoid();
        auto b1 = a.sigmoid();
        return std::tuple{b, b1};
      },
      {1, 1, 0});
}

TEST(SubgraphMatcher, R045_MultipleOutputsHorizontalPattern) {
  expect_matches(
      [](auto x) {
        x = x + 1;
        auto a = x.relu();
        auto b = x.sigmoid();
        return std::tuple{a, b};
      },
      [](auto x) {
        auto a = x.relu();
        auto b = x.sigmoid();
        return std::tuple{a, b};
      },
      {1, 1, 0, 0});
}

TEST(SubgraphMatcher, R046_MultiOutputWithInvalidMatches) {
  expect_matches(
      [](auto x, auto w) {
        auto res0 = linear(x, w);
        auto res1 = sigmoid(res0);
        auto res2 = res0 * res1;
        return sum(res2);
      },
      [](auto a, auto b, auto c) {
        auto lin = linear(a, b);
        auto mul = lin * c;
        return std::tuple{lin, mul};
      },
      {0, 0, 0});
}

// Operators that this process does not know, literals and one attribute read under several names.
TEST(SubgraphMatcher, R047_QuantizationFp8Pattern) {
  const auto module = parse_module(R"(
%arg0 = placeholder[target=arg0]
%arg1 = placeholder[target=arg1]
%s0 = get_attr[target=scale]
%q0 = call_function[target=fp8::quantize](args = (%arg0, 0, %s0))
%d0 = call_function[target=fp8::dequantize](args = (%q0, 0, %s0))
%s1 = get_attr[target=scale]
%q1 = call_function[target=fp8::quantize](args = (%arg1, 0, %s1))
%d1 = call_function[target=fp8::dequantize](args = (%q1, 0, %s1))
%add = call_function[target=aten::add.Tensor](args = (%d0, %d1))
%s2 = get_attr[target=scale]
%q2 = call_function[target=fp8::quantize](args = (%add, 0, %s2))
%d2 = call_function[target=fp8::dequantize](args = (%q2, 0, %s2))
return %d2
)");
  const auto pattern = parse_text(R"(fx 1
%a = placeholder[target=a]
%a_dtype = placeholder[target=a_dtype]
%a_scale = placeholder[target=a_scale]
%b = placeholder[target=b]
%b_dtype = placeholder[target=b_dtype]
%b_scale = placeholder[target=b_scale]
%out_scale = placeholder[target=out_scale]
%da = call_function[target=fp8::dequantize](args = (%a, %a_dtype, %a_scale))
%db = call_function[target=fp8::dequantize](args = (%b, %b_dtype, %b_scale))
%sum_1 = call_function[target=aten::add.Tensor](args = (%da, %db))
%q = call_function[target=fp8::quantize](args = (%sum_1, %a_dtype, %out_scale))
return %q
)");
  const auto matches = find(*module, *pattern);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(names(std::vector<Node*>{&matches[0].placeholders[0].node(),
                                     &matches[0].placeholders[2].node()}),
            (Names{"q0", "s0"}));
  EXPECT_EQ(matches[0].placeholders[1], Argument(0));
}

TEST(SubgraphMatcher, R048_NoAnchorFound) {
  expect_matches([](auto x) { return x + 1; }, [](auto a) { return a.relu(); }, {0, 0, 0, 0});
}

// R-080: attributes match whatever they are called and hold.
TEST(SubgraphMatcher, P_060_R080_Attributes) {
  auto make = [](const std::string& prefix, std::int64_t size) {
    auto module = parse_module("%x = placeholder[target=x]\n%b = get_attr[target=" + prefix +
                               "bias]\n%w = get_attr[target=" + prefix +
                               "weight]\n%r = call_function[target=aten::addmm](args = (%b, %x, "
                               "%w))\nreturn %r\n");
    module->set_parameter(prefix + "bias", torch::ones({size, size}));
    module->set_parameter(prefix + "weight", torch::ones({size, size}));
    return module;
  };
  const auto module = make("", 3);
  const auto other = make("p_", 5);
  using Attributes = MatchOptions::Attributes;
  EXPECT_EQ(find(*module, other->graph()).size(), 1u);
  EXPECT_EQ(find(*module, other->graph(), {.attributes = Attributes::kByPath}).size(), 0u);
  EXPECT_EQ(find(*module, other->graph(), {.attributes = Attributes::kByValue}).size(), 0u);
  EXPECT_EQ(find(*module, make("q_", 3)->graph(), {.attributes = Attributes::kByValue}).size(), 1u);
  EXPECT_EQ(find(*module, make("", 5)->graph(), {.attributes = Attributes::kByPath}).size(), 1u);
  // A buffer is no parameter.
  const auto buffers = make("p_", 5);
  buffers->delete_tensor("p_bias");
  buffers->set_buffer("p_bias", torch::ones({5, 5}));
  EXPECT_EQ(find(*module, buffers->graph()).size(), 0u);
}

TEST(SubgraphMatcher, R080_Lists) {
  const auto module = parse_module(R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%n = call_method[target=size](args = (%y, 0))
%v = call_function[target=aten::view](args = (%x, [5, %n]))
return %v
)");
  auto pattern = [](const std::string& sizes) {
    return parse_text(
        "fx 1\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n%z = "
        "placeholder[target=z]\n%n = call_method[target=size](args = (%y, 0))\n%v = "
        "call_function[target=aten::view](args = (%x, " +
        sizes + "))\nreturn %v\n");
  };
  EXPECT_EQ(find(*module, *pattern("[%z, %n]")).size(), 1u);
  EXPECT_EQ(find(*module, *pattern("(%z, %n)")).size(), 1u);
  EXPECT_EQ(find(*module, *pattern("[%z, %n, %z]")).size(), 0u);
  EXPECT_EQ(find(*module, *pattern("[%n, %z]")).size(), 0u);
}

TEST(SubgraphMatcher, P_057_R080_IgnoreLiterals) {
  const auto module = symbolic_trace([](auto x) { return x + 1; });
  auto count = [&](auto pattern, bool ignore) {
    const auto traced = symbolic_trace(pattern);
    return find(*module, traced->graph(), {.ignore_literals = ignore}).size();
  };
  EXPECT_EQ(count([](auto x) { return x + 2; }, false), 0u);
  EXPECT_EQ(count([](auto x) { return x + 2; }, true), 1u);
  // F16: a node is no literal, whatever is ignored; nor is a type.
  EXPECT_EQ(count([](auto x) { return x + x.relu(); }, true), 0u);
  EXPECT_EQ(count([](auto x) { return x + 1.0; }, false), 0u);
  EXPECT_EQ(count([](auto x) { return x + true; }, false), 0u);
}

// F16: leaves that look alike. A placeholder stands for one thing, two stand for two.
TEST(SubgraphMatcher, P_058_F16_PlaceholdersBindConsistently) {
  const auto same = symbolic_trace([](auto x) { return add(x, x); });
  const auto different = symbolic_trace([](auto x, auto y) { return add(x, y); });
  const auto one = symbolic_trace([](auto a) { return add(a, a); });
  const auto two = symbolic_trace([](auto a, auto b) { return add(a, b); });
  EXPECT_EQ(find(*same, one->graph()).size(), 1u);
  EXPECT_EQ(find(*different, one->graph()).size(), 0u);
  EXPECT_EQ(find(*same, two->graph()).size(), 0u);
  EXPECT_EQ(find(*different, two->graph()).size(), 1u);
  // Literals too: 1 and 1.0 are two.
  const auto literals =
      symbolic_trace([](auto x) { return std::tuple{clamp(x, 1, 1), clamp(x, 1, 1.0)}; });
  const auto clamped = symbolic_trace([](auto x, auto bound) { return clamp(x, bound, bound); });
  const auto matches = find(*literals, clamped->graph());
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].placeholders[1], Argument(1));
}

// R-027 and P-059: an operator's arguments by position, keyword or default; not a method for a
// function.
TEST(SubgraphMatcher, P_059_ArgumentsBySchema) {
  const auto module = parse_module(R"(
%x = placeholder[target=x]
%p = call_function[target=aten::max_pool2d](args = (%x, [2, 2]), kwargs = {stride: [2, 2]})
return %p
)");
  auto count = [&](const std::string& call) {
    return find(*module,
                *parse_text("fx 1\n%x = placeholder[target=x]\n%p = " + call + "\nreturn %p\n"))
        .size();
  };
  const std::string call = "call_function[target=aten::max_pool2d]";
  EXPECT_EQ(count(call + "(args = (%x, [2, 2], [2, 2]))"), 1u);
  EXPECT_EQ(count(call + "(args = (%x, [2, 2], [2, 2], [0, 0]))"), 1u);
  EXPECT_EQ(count(call + "(args = (%x,), kwargs = {stride: [2, 2], kernel_size: [2, 2]})"), 1u);
  EXPECT_EQ(count(call + "(args = (%x, [2, 2]))"), 0u);
  EXPECT_EQ(count(call + "(args = (%x, [2, 2], [2, 2], [1, 1]))"), 0u);
  EXPECT_EQ(count("call_method[target=max_pool2d](args = (%x, [2, 2], [2, 2]))"), 0u);
}

// F34: nodes inside dicts and slices.
TEST(SubgraphMatcher, NodesInDictsAndSlices) {
  const auto module = parse_module(R"(
%x = placeholder[target=x]
%n = call_method[target=size](args = (%x, 0))
%s = call_function[target=operator.getitem](args = (%x, slice(None, %n, None)))
%f = call_function[target=fn](args = ({'a': %s, 'b': 2},))
return %f
)");
  auto count = [&](const std::string& slice, const std::string& dict) {
    return find(*module,
                *parse_text("fx 1\n%x = placeholder[target=x]\n%m = placeholder[target=m]\n%s = "
                            "call_function[target=operator.getitem](args = (%x, " +
                            slice + "))\n%f = call_function[target=fn](args = (" + dict +
                            ",))\nreturn %f\n"))
        .size();
  };
  EXPECT_EQ(count("slice(None, %m, None)", "{'a': %s, 'b': 2}"), 1u);
  EXPECT_EQ(count("slice(%m, None, None)", "{'a': %s, 'b': 2}"), 0u);
  EXPECT_EQ(count("slice(None, %m, None)", "{'c': %s, 'b': 2}"), 0u);
  EXPECT_EQ(count("slice(None, %m, None)", "{'a': %s, 'b': 3}"), 0u);
}

TEST(SubgraphMatcher, P_061_Q_008_ModulesByPathOrType) {
  auto make = [](const std::string& path, std::shared_ptr<torch::nn::Module> called) {
    auto module = parse_module("%x = placeholder[target=x]\n%m = call_module[target=" + path +
                               "](args = (%x,))\nreturn %m\n");
    module->set_submodule(path, std::move(called));
    return module;
  };
  const auto relu_a = make("a", std::make_shared<torch::nn::ReLUImpl>());
  const auto relu_b = make("b", std::make_shared<torch::nn::ReLUImpl>());
  const auto sigmoid_a = make("a", std::make_shared<torch::nn::SigmoidImpl>());
  // P-061: torch.fx compares the path and nothing else.
  EXPECT_EQ(find(*relu_a, sigmoid_a->graph()).size(), 1u);
  EXPECT_EQ(find(*relu_b, relu_a->graph()).size(), 0u);
  const MatchOptions by_type{.modules = MatchOptions::Modules::kByType};
  EXPECT_EQ(find(*relu_a, sigmoid_a->graph(), by_type).size(), 0u);
  EXPECT_EQ(find(*relu_b, relu_a->graph(), by_type).size(), 1u);
}

// P-062: a node of that name stands for any node of the pattern.
TEST(SubgraphMatcher, P_062_NodeNameMatch) {
  const auto module = parse_module(R"(
%x = placeholder[target=x]
%special_add = call_function[target=aten::add.Tensor](args = (%x, 1))
return %special_add
)");
  const auto pattern = parse_text(R"(fx 1
%x = placeholder[target=x]
%mul = call_function[target=aten::mul.Tensor](args = (%x, 1))
return %mul
)");
  EXPECT_EQ(find(*module, *pattern).size(), 0u);
  EXPECT_EQ(find(*module, *pattern, {.node_name_match = "special"}).size(), 1u);
}

// An attribute that is read for others too is no reason against a match.
TEST(SubgraphMatcher, SharedAttributes) {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=w]
%a = call_function[target=aten::mul.Tensor](args = (%x, %w))
%b = call_function[target=aten::mul.Tensor](args = (%a, %w))
%c = call_function[target=aten::add.Tensor](args = (%b, %w))
return %c
)");
  module->set_buffer("w", torch::ones(3));
  auto pattern = parse_module(R"(
%x = placeholder[target=x]
%w = get_attr[target=any]
%a = call_function[target=aten::mul.Tensor](args = (%x, %w))
return %a
)");
  pattern->set_buffer("any", torch::ones(1));
  EXPECT_EQ(find(*module, pattern->graph()).size(), 2u);
}

// Further anchors are looked for near what is matched, also when only an input is shared or
// nothing.
TEST(SubgraphMatcher, SeveralAnchors) {
  const auto module = symbolic_trace(
      [](auto x, auto y) { return std::tuple{relu(x), sigmoid(y), relu(y), sigmoid(x), exp(x)}; });
  const auto shared = symbolic_trace([](auto a) { return std::tuple{relu(a), sigmoid(a)}; });
  auto matches = find(*module, shared->graph());
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(names(matches[0].returning_nodes), (Names{"relu", "sigmoid_1"}));
  EXPECT_EQ(names(matches[1].returning_nodes), (Names{"relu_1", "sigmoid"}));
  const auto apart = symbolic_trace([](auto a, auto b) { return std::tuple{relu(a), exp(b)}; });
  matches = find(*module, apart->graph());
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(names(matches[0].returning_nodes), (Names{"relu_1", "exp"}));
}

TEST(SubgraphMatcher, AcceptRefusesBeforeOverlaps) {
  const auto module = symbolic_trace([](auto x) { return sigmoid(sigmoid(sigmoid(x))); });
  const auto pattern = symbolic_trace([](auto x) { return sigmoid(sigmoid(x)); });
  const SubgraphMatcher matcher(pattern->graph());
  int asked = 0;
  const auto matches =
      matcher.match(module->graph(), [&](const PatternMatch&) { return ++asked > 1; });
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(names(matches[0].returning_nodes), Names{"sigmoid_2"});
}

TEST(SubgraphMatcher, P_040_BadPatterns) {
  Graph empty;
  EXPECT_FX_ERROR(SubgraphMatcher{empty}, PassError, kBadPattern,
                  "SubgraphMatcher cannot be initialized with an empty pattern");
  Graph open;
  open.placeholder("x");
  EXPECT_FX_ERROR(SubgraphMatcher{open}, PassError, kBadPattern, "the pattern has no output");
  Graph dead;
  Node& x = dead.placeholder("x");
  dead.call_function("aten::relu", {x});
  dead.output(dead.call_function("aten::neg", {x}));
  EXPECT_FX_ERROR(SubgraphMatcher{dead}, PassError, kBadPattern, "a pattern with dead code");
  // An effect that no result depends on would never be found.
  Graph effect;
  Node& y = effect.placeholder("y");
  effect.call_function("aten::relu_", {y});
  effect.output(effect.call_function("aten::neg", {y}));
  EXPECT_FX_ERROR(SubgraphMatcher{effect}, PassError, kBadPattern, "relu_");
}

TEST(NodesMap, Lookups) {
  const auto module = symbolic_trace([](auto x) { return clamp(x, 2); });
  const auto pattern =
      symbolic_trace([](auto a, auto bound, auto unused) { return clamp(a, bound); });
  auto matches = find(*module, pattern->graph());
  ASSERT_EQ(matches.size(), 1u);
  NodesMap& map = matches[0].nodes_map;
  const auto inputs = pattern->graph().placeholders();
  EXPECT_EQ(map.at(*inputs[0]).name(), "x");
  EXPECT_EQ(*map.find(*inputs[1]), Argument(2));
  EXPECT_EQ(map.find(*inputs[2]), nullptr);
  EXPECT_TRUE(matches[0].placeholders[2].is_none());
  EXPECT_FX_ERROR(map.at(*inputs[1]), PassError, kBadPattern, "stands for 2, no node");
  EXPECT_FX_ERROR(map.at(*inputs[2]), PassError, kBadPattern, "stands for nothing in this match");
  EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace fx
