#include "fx/graph/namespace.h"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "tests/graph/graphs.h"

namespace fx {
namespace {

// Golden vector A.1: placeholders created in this order, probed on torch 2.15.
TEST(Names, A_1_placeholders_G_007_G_008_G_011) {
  const std::vector<std::pair<const char*, const char*>> golden = {
      {"x", "x"},
      {"x", "x_1"},
      {"x_1", "x_2"},
      {"x_5", "x_5"},
      {"x", "x_6"},
      {"x_5", "x_7"},
      {"X", "x_8"},
      {"fooBar", "foo_bar"},
      {"ALL_CAPS", "all_caps"},
      {"a.b.c", "a_b_c"},
      {"0abc", "_0abc"},
      {"", "_unnamed"},
      {"*args", "_args"},
      {"**kw", "_kw"},
      {"__foo__", "foo"},
      {"for", "for_1"},
      {"len", "len_1"},
      {"torch", "torch_1"},
      {"inf", "inf_1"},
      {"device", "device_1"},
      {"foo_1_1", "foo_1_1"},
      {"foo_1", "foo_1"},
      {"foo_1_1", "foo_1_2"},
      {"foo", "foo_2"},
      {"x_01", "x_01"},
      {"_", "_"},
      {"__", "_unnamed_1"},
      {"sum", "sum_1"},
      {"None", "none"},
      {"π", "__1"},
  };
  Graph graph;
  for (const auto& [target, name] : golden) {
    Node& node = graph.placeholder(target);
    EXPECT_EQ(node.name(), name) << "for target '" << target << "'";
    EXPECT_EQ(node.target().str(), target);
  }
}

// Golden vector A.2: names given by the caller.
TEST(Names, G_023_A_2_given_names_G_009_G_010) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Names got;
  for (const char* name :
       {"add", "add_1", "add_1", "add", "add_3", "add", "add_2", "add_10", "add"})
    got.emplace_back(graph.call_function("operator.add", {x, x}, {}, name).name());
  EXPECT_EQ(got, (Names{"add", "add_1", "add_2", "add_3", "add_4", "add_5", "add_6", "add_10",
                        "add_11"}));
}

TEST(Names, given_names_keep_their_case) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(graph.call_function("torch.relu", {x}, {}, "ReLU").name(), "ReLU");
  EXPECT_EQ(graph.call_function("torch.relu", {x}, {}, "my relu!").name(), "my_relu_");
  EXPECT_EQ(graph.call_function("torch.relu", {x}, {}, "9").name(), "_9");
}

TEST(Names, G_014_operators) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(graph.call_function("aten::add.Tensor", {x, x}).name(), "add_tensor");
  EXPECT_EQ(graph.call_function("aten::add", {x, x}).name(), "add");
  EXPECT_EQ(graph.call_function("torch.add", {x, x}).name(), "add_1");
  EXPECT_EQ(graph.call_function("operator.add", {x, x}).name(), "add_2");
  EXPECT_EQ(graph.call_function("aten::relu_", {x}).name(), "relu_");
}

TEST(Names, G_016_F35_keywords_and_builtins_are_never_names) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(graph.call_function("builtins.getattr", {x, "shape"}).name(), "getattr_1");
  EXPECT_EQ(graph.call_function("builtins.getattr", {x, "shape"}).name(), "getattr_2");
  EXPECT_EQ(graph.call_method("float", {x}).name(), "float_1");
  EXPECT_EQ(graph.placeholder("lambda").name(), "lambda_1");
  EXPECT_EQ(graph.placeholder("class").name(), "class_1");
  EXPECT_EQ(graph.placeholder("input").name(), "input_1");
  for (const char* reserved : {"for", "len", "torch", "inf", "nan", "device", "NoneType", "pytree",
                               "fx_pytree", "print", "True"})
    EXPECT_TRUE(is_reserved_name(reserved)) << reserved;
  EXPECT_FALSE(is_reserved_name("relu"));
}

TEST(Names, G_012_erase_and_rename_never_free_a_name) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {x});
  graph.erase_node(relu);
  EXPECT_EQ(graph.find_node("relu"), nullptr);
  Node& again = graph.call_function("torch.relu", {x});
  EXPECT_EQ(again.name(), "relu_1");
  EXPECT_EQ(again.rename("activation"), "activation");
  EXPECT_EQ(graph.find_node("relu_1"), nullptr);
  EXPECT_EQ(graph.find_node("activation"), &again);
  EXPECT_EQ(graph.call_function("torch.relu", {x}).name(), "relu_2");
}

TEST(Names, N_007_Q_003_a_failed_create_burns_no_name) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_FX_ERROR(graph.create_node(Opcode::kCallFunction, Target::string("relu"), {x}), GraphError,
                  kBadTarget, "'relu'");
  EXPECT_EQ(graph.call_function("torch.relu", {x}).name(), "relu");
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_EQ(x.num_users(), 1u);
}

TEST(Names, N_051_rename_is_made_unique) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  const std::uint64_t version = graph.version();
  EXPECT_EQ(y.rename("y"), "y");
  EXPECT_EQ(graph.version(), version) << "the same name is no edit";
  EXPECT_EQ(y.rename("x"), "x_1");
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ(y.rename("for"), "for_1");
  EXPECT_GT(graph.version(), version);
  graph.lint();
}

// A base whose counter is far behind finds the next free number.
TEST(Names, G_013_many_of_one_base_stay_unique_and_linear) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (int i = 0; i < 20000; ++i) graph.call_function("torch.relu", {x});
  EXPECT_EQ(graph.nodes().back().name(), "relu_19999");
  graph.lint();
}

TEST(Names, long_digits_are_text) {
  Graph graph;
  const std::string longest = "a_999999999999999999";     // 18 digits: a number
  const std::string longer = "a_9999999999999999999999";  // 22 digits: text
  EXPECT_EQ(graph.placeholder(longest).name(), longest);
  EXPECT_EQ(graph.placeholder(longest).name(), "a_1000000000000000000");
  EXPECT_EQ(graph.placeholder(longer).name(), longer);
  EXPECT_EQ(graph.placeholder(longer).name(), longer + "_1");
}

// torch.fx's _Namespace.create_name, word for word: a dict of counts and a set of used names.
class PlainNamespace {
 public:
  std::string create(const std::string& candidate) {
    std::string base = candidate;
    std::optional<std::uint64_t> number;
    const std::size_t bar = candidate.find_last_not_of("0123456789");
    if (bar != std::string::npos && bar > 0 && bar + 1 < candidate.size() &&
        candidate[bar] == '_') {
      base = candidate.substr(0, bar);
      number = std::stoull(candidate.substr(bar + 1));
    }
    std::string name = candidate;
    std::uint64_t n = number.value_or(0);
    if (!number || used_.contains(candidate)) {
      n = counts_[base];
      if (is_reserved_name(candidate)) name = base + "_" + std::to_string(++n);
    }
    while (used_.contains(name)) name = base + "_" + std::to_string(++n);
    used_.insert(name);
    counts_[base] = n;
    return name;
  }
  bool used(const std::string& name) const { return used_.contains(name); }

 private:
  std::set<std::string> used_;
  std::map<std::string, std::uint64_t> counts_;
};

TEST(Names, G_007_G_013_as_a_dict_of_counts_and_a_set_would) {
  const std::vector<std::string> bases = {"a", "b", "for", "a_1", "a_2", "b_3_1", "x_"};
  const std::vector<std::uint64_t> ranges = {4, 40, 400, 1'000'000'000'000};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Namespace names;
    PlainNamespace plain;
    for (int i = 0; i < 150; ++i) {
      std::string candidate = bases[random() % bases.size()];
      if (random() % 2) candidate += "_";
      if (random() % 4 == 0) candidate += "0";
      if (random() % 2) candidate += std::to_string(random() % ranges[seed % ranges.size()]);
      const detail::NameEntry* made = names.create(candidate);
      ASSERT_EQ(made->text, plain.create(candidate)) << candidate << ", seed " << seed;
      ASSERT_EQ(names.find(made->text), made) << made->text;
      const detail::NameEntry* found = names.find(candidate + "1");
      ASSERT_EQ(found && found->used, plain.used(candidate + "1")) << candidate << "1";
    }
  }
}

}  // namespace
}  // namespace fx
