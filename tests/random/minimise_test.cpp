// A fault put in on purpose is found by random programs and shrunk; what is printed is a program
// and a test of it.

#include "tests/random/minimise.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "fx/graph/text.h"
#include "tests/random/relu_off.h"

namespace fx::fuzz {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr const char* kCall = "check_passes(program, std::vector{relu_off()}, false)";

Failure relu_failure(const Program& program) {
  auto check = [](const Program& other) {
    return check_passes(other, std::vector<CheckedPass>{relu_off()}, /*twice=*/false);
  };
  return {"check_passes", check(program), check, kCall};
}

// The graph text in a printed test.
std::string graph_in(const std::string& test) {
  const std::string begin = "R\"fx(";
  const std::size_t from = test.find(begin) + begin.size();
  return test.substr(from, test.find(")fx\"", from) - from);
}

TEST(Minimise, random_programs_find_a_fault_and_it_shrinks_to_five_nodes) {
  // No modules: a relu in one is out of the fault's reach until functionalize, which may come
  // first, has something to do and inlines it, so that more nodes than the relu would have to stay.
  ProgramOptions options;
  options.module_percent = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 3000 && found < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Choices choices(seed);
    const Program program = random_program(choices, options);
    Tally tally;
    const auto failure =
        check_all(program, choices, tally, {.archive_percent = 0, .more_passes = {relu_off()}});
    if (!failure) continue;
    ++found;
    EXPECT_NE(failure->message.find("relu_off"), std::string::npos) << failure->message;
    const auto start = std::chrono::steady_clock::now();
    const Program small = minimise(program, *failure);
    EXPECT_LT(seconds_since(start), 10);
    EXPECT_LE(small.module->graph().size(), 5u) << failure->call << '\n' << describe(small);
    EXPECT_NE(failure->check(small), "");
    // The printed test holds this very graph.
    const std::string test = cpp_test(small, "Found", "relu_off", failure->call);
    const auto parsed = parse_text(graph_in(test));
    EXPECT_TRUE(parsed->same_structure(small.module->graph())) << test;
    EXPECT_NE(report(program, *failure, "again").find(describe(small)), std::string::npos);
  }
  EXPECT_EQ(found, 12);
}

TEST(Minimise, programs_of_two_hundred_nodes_shrink_in_ten_seconds) {
  ProgramOptions options;
  options.operations = 400;
  int found = 0;
  for (std::uint64_t seed = 0; found < 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, 2000u);
    const Program program = random_program(seed, options);
    const std::size_t nodes = program.module->graph().size();
    if (nodes < 150 || nodes > 200) continue;
    const Failure failure = relu_failure(program);
    if (failure.message.empty()) continue;
    ++found;
    const auto start = std::chrono::steady_clock::now();
    const Program small = minimise(program, failure);
    const double seconds = seconds_since(start);
    std::cout << nodes << " nodes shrink to " << small.module->graph().size() << " in " << seconds
              << " s\n";
    EXPECT_LT(seconds, 10);
    EXPECT_LE(small.module->graph().size(), 5u) << describe(small);
  }
}

std::string kept_tests() {
  std::ifstream file(std::string(FXCPP_SOURCE_DIR) + "/tests/random/printed_test.cpp");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// tests/random/printed_test.cpp holds what is printed here; it is built and run like any other.
TEST(PrintedTest, of_the_fault_is_kept) {
  Program program;
  for (std::uint64_t seed = 0;; ++seed) {
    program = random_program(seed);
    if (!relu_failure(program).message.empty()) break;
  }
  const Program small = minimise(program, relu_failure(program));
  const std::string test = cpp_test(small, "Printed", "relu_off", kCall, /*fails=*/true);
  EXPECT_NE(kept_tests().find(test), std::string::npos) << test;
}

TEST(PrintedTest, of_every_kind_of_module_is_kept) {
  ProgramOptions options;
  options.operations = 5;
  options.sizes = {1, 2, 3};
  options.special_percent = 10;
  const std::string kept = kept_tests();
  for (const char* rule :
       {"conv1d_and_norm", "conv2d_and_norm", "linear_and_norm", "layer_norm_module",
        "embedding_module", "activation_module", "dropout_module", "identity_module", "nested",
        "functional_conv_and_norm", "new_attribute"}) {
    Program program;
    for (std::uint64_t seed = 0;
         !program.rules.contains(rule) || program.rules.contains("sequential_module") ||
         program.module->graph().size() > 12;
         ++seed)
      program = random_program(seed, options);
    const std::string test = cpp_test(program, "Printed", rule, "check_runs(program)");
    EXPECT_NE(kept.find(test), std::string::npos) << test;
  }
}

// A predicate of another kind: two operators, one reading the other through a view.
TEST(Minimise, keeps_what_the_predicate_needs_and_nothing_else) {
  auto graph = parse_text(
      "fx 1\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
      "%a = call_function[target=aten::relu](args = (%x,))\n"
      "%b = call_function[target=aten::add.Tensor](args = (%a, %y), kwargs = {alpha: 2})\n"
      "%c = call_function[target=aten::split.Tensor](args = (%b, 2))\n"
      "%d = call_function[target=operator.getitem](args = (%c, 1))\n"
      "%e = call_function[target=aten::cos](args = (%d,))\n"
      "%f = call_function[target=aten::sum](args = (%e,))\n"
      "%g = call_function[target=aten::mul.Tensor](args = (%f, %f))\n"
      "return (%g, [%a, %y], {'k': %e})\n");
  Program program;
  program.module = std::make_shared<GraphModule>(graph);
  program.inputs = {at::ones({4, 3}), at::ones({4, 3})};
  auto has = [](const Graph& some, const char* name) { return !some.find_calls(name).empty(); };
  const Program small = minimise(program, [&](const Program& other) {
    return has(other.module->graph(), "aten::split.Tensor") &&
           has(other.module->graph(), "aten::cos");
  });
  // Input, split, cos, getitem or not, output.
  EXPECT_LE(small.module->graph().size(), 5u) << describe(small);
  EXPECT_EQ(small.inputs.size(), small.module->graph().placeholders().size());
  EXPECT_EQ(check_runs(small), "");
}

}  // namespace
}  // namespace fx::fuzz
