// The zoo of captures through joint graphs and their partitions, and docs/trained.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "fx/base/error.h"
#include "tests/models/zoo.h"
#include "tests/training/joint_check.h"

namespace fx::zoo {
namespace {

struct Row {
  std::size_t cases = 0, equal = 0, rounded = 0, without_gradient = 0;
  std::map<std::string, std::size_t> refused;  // by reason
  std::int64_t whole = 0, cut = 0;             // bytes kept, in the last mode
};

// Functional operators give other strides than in-place ones, and LibTorch's loops over single and
// over packed elements round differently.
constexpr double kRounding = 1e-14;

// Why a program has no joint graph, by what the error says; anything else is a fault.
constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
    {"nothing in the result requires grad", ""},
    {"leaf Variable that requires grad is being used in an in-place operation",
     "writes to an input that requires grad"},
    {"depend on values", "sizes depend on values"},
    {"when it was captured, and now", "reads a number that changes from call to call"},
};

std::optional<std::string> reason_of(const std::string& error) {
  for (const auto& [text, reason] : kReasons)
    if (error.find(text) != std::string::npos) return std::string(reason);
  return std::nullopt;
}

class Zoo {
 public:
  void check(void (*add)(Cases&), const std::string& title) {
    torch::manual_seed(0);
    Cases cases;
    add(cases);
    for (const Case& each : cases)
      for (const bool train : {false, true}) {
        if (!each.module && train) continue;
        if (each.module) each.module->to(at::kDouble);
        if (each.module) each.module->train(train);
        check_case(each, title + ": " + each.name + "(" + each.options + ")" +
                             (train ? " in train mode" : ""));
      }
  }

  const std::vector<std::string>& order() const { return order_; }
  Row& row(const std::string& name) {
    if (!rows_.contains(name)) order_.push_back(name);
    return rows_[name];
  }

 private:
  void check_case(const Case& each, const std::string& where) {
    Row& row = this->row(each.name);
    ++row.cases;
    const test::Trained program{each.module, each.run};
    const auto inputs = [&] {
      test::Tensors made;
      for (const Input& input : each.inputs) {
        made.push_back(input.make(at::kDouble, 2).detach().clone());
        if (input.gradient && made.back().is_floating_point()) made.back().requires_grad_();
      }
      return made;
    };
    try {
      if (test::check_training(program, inputs).empty()) {
        ++row.equal;
      } else {
        EXPECT_EQ(test::check_training(program, inputs, kRounding), "") << where;
        ++row.rounded;
      }
      const auto joint = test::joint_of(program, inputs());
      row.whole = default_partition(*joint).saved_bytes;
      row.cut = min_cut_rematerialization_partition(*joint).saved_bytes;
    } catch (const std::exception& error) {
      const std::optional<std::string> reason = reason_of(error.what());
      EXPECT_TRUE(reason) << where << ": " << error.what();
      if (!reason || reason->empty())
        ++row.without_gradient;
      else
        ++row.refused[*reason];
    }
  }

  std::map<std::string, Row> rows_;
  std::vector<std::string> order_;
};

constexpr std::pair<std::string_view, void (*)(Cases&)> kFamilies[] = {
    {"Modules without weights", &add_modules},
    {"Modules with weights", &add_layers},
    {"Losses", &add_losses},
    {"Functionals", &add_functionals},
    {"Nets and loops", &add_nets},
};

Zoo& zoo_of(std::string_view title) {
  static std::map<std::string_view, Zoo> done;
  const auto [it, is_new] = done.try_emplace(title);
  for (const auto& [name, add] : kFamilies)
    if (is_new && name == title) it->second.check(add, std::string(title));
  return it->second;
}

TEST(JointZoo, modules) { EXPECT_FALSE(zoo_of("Modules without weights").order().empty()); }
TEST(JointZoo, layers) { EXPECT_FALSE(zoo_of("Modules with weights").order().empty()); }
TEST(JointZoo, losses) { EXPECT_FALSE(zoo_of("Losses").order().empty()); }
TEST(JointZoo, functionals) { EXPECT_FALSE(zoo_of("Functionals").order().empty()); }
TEST(JointZoo, nets) { EXPECT_FALSE(zoo_of("Nets and loops").order().empty()); }

std::string table(std::string_view title) {
  std::ostringstream out;
  out << "\n## " << title
      << "\n\n| name | variants | forward and gradients | kept, default | kept, min-cut |\n"
      << "| --- | ---: | --- | ---: | ---: |\n";
  Zoo& zoo = zoo_of(title);
  for (const std::string& name : zoo.order()) {
    const Row& row = zoo.row(name);
    out << "| " << name << " | " << row.cases << " | ";
    std::string separator;
    const auto add = [&](std::size_t count, const std::string& what) {
      if (count == 0) return;
      out << separator << (count < row.cases ? std::to_string(count) + " " : "") << what;
      separator = "; ";
    };
    add(row.equal, "equal");
    add(row.rounded, "equal but for rounding");
    add(row.without_gradient, "without gradient");
    for (const auto& [reason, count] : row.refused) add(count, "refused: " + reason);
    if (row.equal + row.rounded > 0)
      out << " | " << row.whole << " | " << row.cut << " |\n";
    else
      out << " | - | - |\n";
  }
  return out.str();
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(JointZoo, page_is_true) {
  std::ostringstream page;
  page << R"(# What fx::joint trains

The programs of [the zoo of captures](captured.md), nothing of them written for fx, in float64, modules in eval and train
mode. Each becomes one graph of forward and backward by `fx::joint`, which is cut in two by `fx::default_partition` and by
`fx::min_cut_rematerialization_partition` (also `aggressive`). *Equal* means: outputs, gradients of inputs and parameters,
written inputs and buffers are bit by bit those of eager autograd on fresh inputs, by the joint graph (Interpreter and
GraphModule) and by forward and backward of each partition; what draws random numbers or writes runs exactly once. *But for
rounding*: within 1e-14. *Kept* is what the forward hands to the backward, in bytes, inputs included, for the last variant:
the smallest cut never keeps more than the default. [The guide](guide/cpp_model.md) says how to train with these graphs.
`FXCPP_UPDATE_DOCS=1 build/dev/bin/test_joint` writes this page; the test fails where it is not true.
)";
  for (const auto& [title, add] : kFamilies) page << table(title);
  const std::filesystem::path path =
      std::filesystem::path(FXCPP_SOURCE_DIR) / "docs" / "trained.md";
  if (std::getenv("FXCPP_UPDATE_DOCS")) std::ofstream(path) << page.str();
  EXPECT_EQ(text_of(path), page.str()) << "FXCPP_UPDATE_DOCS=1 writes the page anew";
}

}  // namespace
}  // namespace fx::zoo
