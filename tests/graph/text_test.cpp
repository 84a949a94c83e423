#include "fx/graph/text.h"

#include <bit>
#include <limits>
#include <random>
#include <set>

#include "tests/graph/graphs.h"
#include "tests/graph/random_graph.h"

namespace fx {
namespace {

// x + w, a method, a module, and a dict as the result.
std::shared_ptr<Graph> sample() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  graph->placeholder_with_default("scale", 2.0);
  Node& w = graph->get_attr("layer1.weight");
  Node& add = graph->call_function("aten::add.Tensor", {x, w}, {{"alpha", 2}});
  Node& clamp = graph->call_method("clamp", {add}, {{"min", 0.0}, {"max", Argument()}});
  Node& linear = graph->call_module("seq.0", {clamp});
  graph->output(Argument::dict({{"y", linear}, {"shape", Argument::tuple({x})}}));
  return graph;
}

constexpr std::string_view kSample =
    "fx 1\n"
    "%x : Tensor = placeholder[target=x]\n"
    "%scale = placeholder[target=scale](default=2.0)\n"
    "%layer1_weight = get_attr[target=layer1.weight]\n"
    "%add_tensor = call_function[target=aten::add.Tensor](args = (%x, %layer1_weight), kwargs = "
    "{alpha: 2})\n"
    "%clamp = call_method[target=clamp](args = (%add_tensor,), kwargs = {min: 0.0, max: None})\n"
    "%seq_0 = call_module[target=seq.0](args = (%clamp,), kwargs = {})\n"
    "return {'y': %seq_0, 'shape': (%x,)}\n";

void expect_round_trip(const Graph& graph, const TextOptions& options = {}) {
  const std::string text = to_text(graph, options);
  std::shared_ptr<Graph> read;
  ASSERT_NO_THROW(read = parse_text(text)) << text;
  ASSERT_EQ(to_text(*read, options), text);
  ASSERT_TRUE(read->same_structure(graph)) << text;
  ASSERT_EQ(read->structural_hash(), graph.structural_hash()) << text;
  ASSERT_EQ(names(*read), names(graph));
}

TEST(Text, a_graph_prints_as_documented) { EXPECT_EQ(to_text(*sample()), kSample); }

TEST(Text, and_reads_back) {
  auto graph = parse_text(kSample);
  EXPECT_TRUE(graph->same_structure(*sample()));
  EXPECT_EQ(to_text(*graph), kSample);
  EXPECT_EQ(graph->output_node().name(), "output");
  graph->lint({.strict = true});
}

TEST(Text, literals_of_every_kind_are_exact) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<Argument, std::string>> literals = {
      {Argument(), "None"},
      {true, "True"},
      {false, "False"},
      {0, "0"},
      {-7, "-7"},
      {INT64_MIN, "-9223372036854775808"},
      {INT64_MAX, "9223372036854775807"},
      {1.0, "1.0"},
      {-0.0, "-0.0"},
      {0.1, "0.1"},
      {1e16, "1e+16"},
      {1e-5, "1e-05"},
      {5e-324, "5e-324"},
      {kInf, "inf"},
      {-kInf, "-inf"},
      {std::numeric_limits<double>::quiet_NaN(), "nan"},
      {-std::numeric_limits<double>::quiet_NaN(), "nan(0xfff8000000000000)"},
      {std::bit_cast<double>(0x7ff8000000000123ull), "nan(0x7ff8000000000123)"},
      {std::complex<double>(1, -0.0), "complex(1.0, -0.0)"},
      {std::complex<double>(-0.0, kInf), "complex(-0.0, inf)"},
      {"", "''"},
      {"it's", "\"it's\""},
      {"'\"\\", "'\\'\"\\\\'"},
      {"a\nb\r\t", "'a\\nb\\r\\t'"},
      {std::string("\0\x01\x7f", 3), "'\\x00\\x01\\x7f'"},
      {"größe", "'größe'"},
      {"\xff\xc3", "'\\xff\\xc3'"},
      {"\xed\xa0\x80\xc0\x80", "'\\xed\\xa0\\x80\\xc0\\x80'"},
      {"# no comment", "'# no comment'"},
      {c10::ScalarType::Float, "torch.float32"},
      {c10::ScalarType::Float8_e5m2, "torch.float8_e5m2"},
      {c10::ScalarType::QInt8, "torch.qint8"},
      {c10::Device(c10::kCPU), "device(type='cpu')"},
      {c10::Device(c10::kCUDA, 3), "device(type='cuda', index=3)"},
      {c10::Device(c10::kMeta), "device(type='meta')"},
      {c10::kStrided, "torch.strided"},
      {c10::kSparseBsc, "torch.sparse_bsc"},
      {c10::MemoryFormat::Preserve, "torch.preserve_format"},
      {c10::MemoryFormat::ChannelsLast3d, "torch.channels_last_3d"},
      {Argument::ellipsis(), "Ellipsis"},
      {Argument::list({}), "[]"},
      {Argument::list({1, "a"}), "[1, 'a']"},
      {Argument::tuple({}), "()"},
      {Argument::tuple({1}), "(1,)"},
      {Argument::tuple({1, Argument::list({2})}), "(1, [2])"},
      {Argument::dict({}), "{}"},
      {Argument::dict({{"k", 1}, {2, "v"}, {Argument::tuple({1, true}), Argument()}}),
       "{'k': 1, 2: 'v', (1, True): None}"},
      {Argument::slice(1, {}, -1), "slice(1, None, -1)"},
  };
  for (const auto& [argument, text] : literals) {
    EXPECT_EQ(argument_text(argument), text);
    EXPECT_EQ(parse_argument(text), argument) << text;
  }
}

TEST(Text, every_dtype_layout_and_format_has_its_own_word) {
  std::set<std::string> seen;
  auto check = [&](const Argument& argument) {
    const std::string text = argument_text(argument);
    EXPECT_TRUE(seen.insert(text).second) << text;
    EXPECT_EQ(parse_argument(text), argument) << text;
  };
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i)
    check(static_cast<c10::ScalarType>(i));
  for (int i = 0; i < static_cast<int>(c10::Layout::NumOptions); ++i)
    check(static_cast<c10::Layout>(i));
  for (int i = 0; i < static_cast<int>(c10::MemoryFormat::NumOptions); ++i)
    check(static_cast<c10::MemoryFormat>(i));
  for (int i = 0; i < 21; ++i) check(c10::Device(static_cast<c10::DeviceType>(i)));
}

TEST(Text, quoting_of_targets_types_and_keys) {
  Graph graph;
  Node& x = graph.placeholder("*args", "Tuple[Tensor, ...]");
  graph.placeholder("a b", "int | None");
  graph.placeholder("", "[");
  graph.call_function("<lambda>", {x}, {{"a b", 1}, {"", 2}, {"for", 3}});
  graph.call_function("weird]('\"", {x});
  graph.get_attr("a].b", " padded ");
  EXPECT_EQ(
      to_text(graph),
      "fx 1\n"
      "%_args : Tuple[Tensor, ...] = placeholder[target=*args]\n"
      "%a_b : 'int | None' = placeholder[target='a b']\n"
      "%_unnamed : '[' = placeholder[target='']\n"
      "%_lambda_ = call_function[target=<lambda>](args = (%_args,), kwargs = {'a b': 1, '': 2, "
      "for: 3})\n"
      "%weird_ = call_function[target='weird](\\'\"'](args = (%_args,), kwargs = {})\n"
      "%a_b_1 : ' padded ' = get_attr[target='a].b']\n");
  expect_round_trip(graph);
}

TEST(Text, odd_shapes_of_nodes) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.create_node(Opcode::kPlaceholder, Target::string("two"), {x, 1});
  graph.create_node(Opcode::kPlaceholder, Target::string("kw"), {}, {{"a", x}});
  graph.create_node(Opcode::kGetAttr, Target::string("w"), {x});
  graph.create_node(Opcode::kOutput, Target::string("output"));                      // no value
  graph.create_node(Opcode::kOutput, Target::string("output"), {x, 1}, {{"k", 2}});  // too many
  graph.output(x, "Tensor");
  graph.output(Argument());
  graph.call_function("torch.relu", {x});
  const std::string text = to_text(graph);
  EXPECT_THAT(text,
              ::testing::HasSubstr("%output = output[target=output](args = (), kwargs = {})"));
  EXPECT_THAT(text,
              ::testing::HasSubstr("%output_2 : Tensor = output[target=output](args = (%x,)"));
  expect_round_trip(graph);
}

TEST(Text, empty_and_small_graphs) {
  Graph empty;
  EXPECT_EQ(to_text(empty), "fx 1\n");
  expect_round_trip(empty);
  EXPECT_TRUE(parse_text("fx 1")->empty());
  Graph constant;
  constant.output(Argument());
  EXPECT_EQ(to_text(constant), "fx 1\nreturn None\n");
  expect_round_trip(constant);
}

TEST(Text, what_people_write_by_hand) {
  auto graph = parse_text(
      "# CHECK: %relu\r\n"
      "\n"
      "  fx   1   # version\r\n"
      "   \t \n"
      "%x:Tensor=placeholder[ target = x ]# comment\n"
      "%y : [num_users=0] = placeholder[target=y](default = -1)\n"
      "%z : T [num_users=12] = placeholder[target=z]\n"
      "# CHECK-NEXT: nothing\n"
      "%relu : [num_users=1] = call_function[target=torch.relu](args=(%x))\n"
      "%cat=call_function[target = \"torch.cat\"](args = ([%x , %relu,],), kwargs={\"dim\":0,})  \n"
      "return [+1, (1, 2,), .5]");
  EXPECT_EQ(graph->find_node("x")->type(), "Tensor");
  EXPECT_EQ(graph->find_node("y")->type(), "");
  EXPECT_EQ(graph->find_node("z")->type(), "T");
  EXPECT_EQ(graph->find_node("y")->arg(0).to_int(), -1);
  EXPECT_EQ(graph->find_node("relu")->format_node(),
            "%relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})");
  EXPECT_EQ(
      graph->find_node("cat")->format_node(),
      "%cat : [num_users=0] = call_function[target=torch.cat](args = ([%x, %relu],), kwargs = "
      "{dim: 0})");
  EXPECT_EQ(graph->output_node().arg(0), Argument::list({1, Argument::tuple({1, 2}), 0.5}));
  expect_round_trip(*graph);
}

// What torch.fx prints reads as it is, as long as no text argument stands in it (printed bare
// there).
TEST(Text, reads_lines_of_torch_fx) {
  auto original = sample();
  std::string text = "fx 1\n";
  for (Node& node : original->nodes())
    if (!node.is_output()) text += node.format_node() + "\n";
  auto read = parse_text(text);
  original->erase_node(original->output_node());
  EXPECT_TRUE(read->same_structure(*original));
}

TEST(Text, nodes_before_their_definition_on_demand) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("torch.relu", {x});
  Node& b = graph.call_function("torch.neg", {a});
  a.update_arg(0, Argument::list({b, a}));
  graph.output(b);
  const std::string text = to_text(graph);
  EXPECT_FX_ERROR(parse_text(text), ParseError, kParseUnknownNode,
                  "line 3, column 51: no node %neg is defined above this line");
  auto read = parse_text(text, {.any_order = true});
  EXPECT_EQ(to_text(*read), text);
  EXPECT_TRUE(read->same_structure(graph));
  EXPECT_EQ(names(read->find_node("neg")->users()), (Names{"relu", "output"}));
  EXPECT_FX_ERROR(read->lint(), LintError, kLintOrder, "'neg' of Node 'relu'");
  EXPECT_FX_ERROR(parse_text("fx 1\nreturn %x\n", {.any_order = true}), ParseError,
                  kParseUnknownNode, "no node %x is defined in this text");
}

TEST(Text, meta_on_demand) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().set("stack_trace", "File \"net.py\", line 3\n    y = x");
  x.meta().set("a b", std::int64_t{3});
  x.meta().set("flag", true);
  x.meta().set("scale", 0.5);
  x.meta().set("path", Argument::list({"a", 1}));
  x.meta().set("opaque", std::vector<int>{1});
  graph.output(x).meta().set("k", "v");
  EXPECT_EQ(to_text(graph), "fx 1\n%x = placeholder[target=x]\nreturn %x\n");
  const std::string text = to_text(graph, {.meta = true});
  EXPECT_EQ(text,
            "fx 1\n"
            "%x = placeholder[target=x]\n"
            "  .stack_trace = 'File \"net.py\", line 3\\n    y = x'\n"
            "  .'a b' = 3\n"
            "  .flag = True\n"
            "  .scale = 0.5\n"
            "  .path = ['a', 1]\n"
            "return %x\n"
            "  .k = 'v'\n");
  auto read = parse_text(text);
  EXPECT_EQ(to_text(*read, {.meta = true}), text);
  EXPECT_EQ(read->find_node("x")->stack_trace(), x.stack_trace());
  EXPECT_EQ(*read->find_node("x")->meta().get<std::int64_t>("a b"), 3);
  EXPECT_EQ(*read->output_node().meta().get<std::string>("k"), "v");
}

TEST(Text, parse_argument_with_nodes) {
  auto graph = sample();
  EXPECT_EQ(
      parse_argument("[%x, slice(%x, None, 2)] # comment", graph.get()),
      Argument::list({*graph->find_node("x"), Argument::slice(*graph->find_node("x"), {}, 2)}));
  EXPECT_FX_ERROR(parse_argument("%nope", graph.get()), ParseError, kParseUnknownNode,
                  "the graph has no node %nope");
  EXPECT_FX_ERROR(parse_argument("%x"), ParseError, kParseSyntax, "no node may stand here");
  EXPECT_FX_ERROR(parse_argument(""), ParseError, kParseSyntax, "wanted a value");
  EXPECT_FX_ERROR(parse_argument("1 2"), ParseError, kParseSyntax, "wanted the end of the text");
  EXPECT_FX_ERROR(parse_argument("1\n2"), ParseError, kParseSyntax, "wanted the end of the text");
}

TEST(TextError, shows_line_column_and_place) {
  try {
    parse_text(
        "fx 1\n%x = placeholder[target=x]\n%y = call_function[target=f](args = (%x, ], "
        "kwargs = {})\n");
    FAIL();
  } catch (const ParseError& error) {
    EXPECT_EQ(error.line(), 3u);
    EXPECT_EQ(error.column(), 42u);
    EXPECT_EQ(error.text(),
              "line 3, column 42: wanted a value, found ']'\n"
              "    %y = call_function[target=f](args = (%x, ], kwargs = {})\n"
              "                                             ^\n");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("docs/text-format.md"));
  }
}

TEST(TextError, long_and_dirty_lines_are_cut) {
  const std::string line =
      "%x = placeholder[target=x](default = [" + std::string(5000, ' ') + "\x01 ?";
  try {
    parse_text("fx 1\n" + line);
    FAIL();
  } catch (const ParseError& error) {
    EXPECT_LT(error.text().size(), 400u);
    EXPECT_THAT(error.text(), ::testing::HasSubstr("wanted a value, found '\\x01'"));
  }
}

struct BadText {
  const char* text;  // below the version line unless it starts with '!'
  ErrorCode code;
  const char* message;
};

class BadTextTest : public ::testing::TestWithParam<BadText> {};

TEST_P(BadTextTest, is_refused) {
  const BadText& bad = GetParam();
  const std::string text = bad.text[0] == '!'
                               ? bad.text + 1
                               : "fx 1\n%x = placeholder[target=x]\n" + std::string(bad.text);
  for (bool any_order : {false, true}) {
    try {
      parse_text(text, {.any_order = any_order});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const ParseError& error) {
      EXPECT_EQ(error.code(), bad.code) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr(bad.message));
    }
  }
}

using enum ErrorCode;
INSTANTIATE_TEST_SUITE_P(
    All, BadTextTest,
    ::testing::Values(
        BadText{"!", kParseVersion, "wanted the version line 'fx 1'"},
        BadText{"!%x = placeholder[target=x]", kParseVersion,
                "line 1, column 1: wanted the version"},
        BadText{"!fx 2\n", kParseVersion, "the text is of version 2, this library reads version 1"},
        BadText{"!fx\n", kParseVersion, "the text is of version None"},
        BadText{"!fx 1.0\n", kParseVersion, "version 1.0"},
        BadText{"!fx 1 2\n", kParseSyntax, "wanted the end of the line, found '2'"},
        BadText{"hello", kParseSyntax, "wanted a node (%name = ...), 'return' or '.key = value'"},
        BadText{"= 1", kParseSyntax, "wanted a node"},
        BadText{"% = placeholder[target=y]", kParseSyntax, "wanted the name of a node after '%'"},
        BadText{"%1 = placeholder[target=y]", kParseSyntax, "wanted the name of a node"},
        BadText{"%y placeholder[target=y]", kParseSyntax, "wanted '=' after the node's name"},
        BadText{"%y : = placeholder[target=y]", kParseSyntax, "wanted a type such as Tensor"},
        BadText{"%y : Dict[str = placeholder[target=y]", kParseSyntax, "wanted a type"},
        BadText{"%y : [num_users=x] = placeholder[target=y]", kParseSyntax, "']' after num_users"},
        BadText{"%y = call[target=y]", kParseSyntax, "wanted one of the opcodes placeholder,"},
        BadText{"%y = placeholder(target=y)", kParseSyntax, "wanted '[' before the target"},
        BadText{"%y = placeholder[y]", kParseSyntax, "wanted target="},
        BadText{"%y = placeholder[target=]", kParseSyntax, "wanted a target, found ']'"},
        BadText{"%y = placeholder[target=a b]", kParseSyntax, "wanted ']' after the target"},
        BadText{"%y = placeholder[target='a]", kParseSyntax, "this string has no closing '"},
        BadText{"%y = placeholder[target=y] 1", kParseSyntax, "wanted '(' before the arguments"},
        BadText{"%y = placeholder[target=y](1)", kParseSyntax, "wanted args = (...), found '1'"},
        BadText{"%y = placeholder[target=y](default=1", kParseSyntax, "')' after the default"},
        BadText{"%y = placeholder[target=y](default=1) 2", kParseSyntax, "the end of the line"},
        BadText{"%y = call_method[target=y](default=1)", kParseSyntax,
                "only a placeholder has a default"},
        BadText{"%y = call_function[target=''](args = ())", kParseTarget,
                "a function name must be non-empty"},
        BadText{"%y = call_function[target='a b'](args = ())", kParseTarget, "free of white space"},
        BadText{"%y = call_function[target=f](args = [%x])", kParseSyntax,
                "wanted '(' before the positional arguments"},
        BadText{"%y = call_function[target=f](args = (%x), kw = {})", kParseSyntax,
                "wanted kwargs = {...}"},
        BadText{"%y = call_function[target=f](args = (%x), kwargs = {1: 2})", kParseSyntax,
                "wanted a keyword"},
        BadText{"%y = call_function[target=f](args = (%x), kwargs = {a 2})", kParseSyntax,
                "wanted ':' after the keyword"},
        BadText{"%y = call_function[target=f](args = (%x), kwargs = {a: 2, a: 3})", kParseSyntax,
                "the keyword argument 'a' is given twice"},
        BadText{"%y = call_function[target=f](args = (%x), kwargs = {a: 2)", kParseSyntax,
                "wanted ',' or '}'"},
        BadText{"%y = call_function[target=f](args = (%x %x))", kParseSyntax, "wanted ',' or ')'"},
        BadText{"%y = call_function[target=f](args = (x))", kParseSyntax,
                "a string is quoted, a node is %x"},
        BadText{"%x = placeholder[target=y]", kParseDuplicate, "a node %x is there already"},
        BadText{"return 1\nreturn 2", kParseDuplicate, "a node %output is there already"},
        BadText{"%for = placeholder[target=y]", kParseSyntax, "'for' is a reserved word"},
        BadText{"return", kParseSyntax, "wanted a value, found the end of the line"},
        BadText{"return # nothing", kParseSyntax, "wanted a value"},
        BadText{"return %y", kParseUnknownNode, "no node %y is defined"},
        BadText{"return (1)", kParseSyntax, "a tuple of one value is written with a comma"},
        BadText{"return [1", kParseSyntax, "wanted ',' or ']', found the end of the line"},
        BadText{"return [,]", kParseSyntax, "wanted a value, found ','"},
        BadText{"return {1}", kParseSyntax, "wanted ':' after the key"},
        BadText{"return {%x: 1}", kParseSyntax, "no node may stand here"},
        BadText{"return {[%x]: 1}", kParseSyntax, "no node may stand here"},
        BadText{"return 9223372036854775808", kParseSyntax, "does not fit in 64 bits"},
        BadText{"return 1e999", kParseSyntax, "does not fit in a double"},
        BadText{"return 1.2.3", kParseSyntax, "this is no number"},
        BadText{"return 0x10", kParseSyntax, "this is no number"},
        BadText{"return -", kParseSyntax, "this is no number"},
        BadText{"return --1", kParseSyntax, "this is no number"},
        BadText{"return -nan", kParseSyntax, "this is no number"},
        BadText{"return nan(0x1)", kParseSyntax, "these are not the bits of a NaN"},
        BadText{"return nan(0xfffffffffffffffff)", kParseSyntax, "these are not the bits"},
        BadText{"return nan(1)", kParseSyntax, "the bits of a double"},
        BadText{"return complex(1)", kParseSyntax, "between real and imaginary part"},
        BadText{"return complex([1], 2)", kParseSyntax, "wanted a number, found '['"},
        BadText{"return complex('a', 2)", kParseSyntax, "wanted a number"},
        BadText{"return slice(1, 2)", kParseSyntax, "wanted slice(start, stop, step)"},
        BadText{"return torch.float33", kParseSyntax, "wanted a value, found 'torch.float33'"},
        BadText{"return device(type='gpu')", kParseSyntax, "there is no device type 'gpu'"},
        BadText{"return device('cpu')", kParseSyntax, "wanted type='cpu'"},
        BadText{"return device(type='cuda', index=128)", kParseSyntax, "index from 0 to 127"},
        BadText{"return device(type='cuda', index=-1)", kParseSyntax, "index from 0 to 127"},
        BadText{"return device(type='cpu', index=1)", kParseSyntax, "0 for the CPU"},
        BadText{"return 'a\\q'", kParseSyntax, "unknown escape"},
        BadText{"return 'a\\", kParseSyntax, "unknown escape"},
        BadText{"return '\\x1'", kParseSyntax, "two hexadecimal digits"},
        BadText{"return 'ab", kParseSyntax, "no closing '"},
        BadText{"return True False", kParseSyntax, "wanted the end of the line"},
        BadText{"!fx 1\n.k = 1", kParseSyntax, "metadata stands below a node"},
        BadText{". = 1", kParseSyntax, "wanted the key of a meta entry"},
        BadText{".k 1", kParseSyntax, "wanted '=' after the key"},
        BadText{".k = %x", kParseSyntax, "no node may stand here"},
        BadText{".k = 1 2", kParseSyntax, "wanted the end of the line"}));

TEST(TextError, nesting_is_bounded) {
  auto nested = [](int levels, char open, char close) {
    return "fx 1\nreturn " + std::string(static_cast<std::size_t>(levels), open) +
           std::string(static_cast<std::size_t>(levels), close);
  };
  EXPECT_EQ(parse_text(nested(Argument::kMaxDepth, '[', ']'))->output_node().arg(0).depth(),
            Argument::kMaxDepth);
  EXPECT_FX_ERROR(parse_text(nested(Argument::kMaxDepth + 1, '[', ']')), ParseError, kParseTooDeep,
                  "values nest at most 200 levels");
  EXPECT_FX_ERROR(parse_text(nested(1000000, '(', ')')), ParseError, kParseTooDeep, "line 2");
  EXPECT_FX_ERROR(parse_text(nested(1000000, '{', '}')), ParseError, kParseTooDeep, "line 2");
  std::string slices = "fx 1\nreturn ";
  for (int i = 0; i < 300; ++i) slices += "slice(";
  EXPECT_FX_ERROR(parse_text(slices), ParseError, kParseTooDeep, "line 2");
}

TEST(TextProperty, random_graphs_round_trip) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto graph = random_graph(seed);
    expect_round_trip(*graph);
    expect_round_trip(*graph, {.meta = true});
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST(TextProperty, clones_print_the_same) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    auto graph = random_graph(seed);
    auto clone = graph->clone();
    ASSERT_EQ(to_text(*clone, {.meta = true}), to_text(*graph, {.meta = true})) << seed;
    ASSERT_TRUE(clone->same_structure(*graph));
    graph->lint();
    clone->lint();
  }
}

// Every cut and every changed byte either parses or is a ParseError; never anything else.
TEST(TextProperty, damaged_texts_are_refused_cleanly) {
  std::mt19937 random(1);
  int parsed = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = to_text(*random_graph(seed, 8), {.meta = true});
    for (int i = 0; i < 40; ++i) {
      std::string damaged = text;
      if (i % 2)
        damaged.resize(random() % (text.size() + 1));
      else
        damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
      try {
        auto graph = parse_text(damaged);
        ++parsed;
        expect_round_trip(*graph);
      } catch (const ParseError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(parsed, 100);
  EXPECT_GT(refused, 100);
}

TEST(Text, large_graphs_are_linear) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 50000; ++i) last = &graph.call_function("operator.add", {*last, i});
  std::vector<Argument> all;
  for (Node& node : graph.nodes()) all.emplace_back(node);
  graph.output(Argument::list(all));
  expect_round_trip(graph);
}

}  // namespace
}  // namespace fx
