// Runs the zoo, and keeps docs/captured.md true: FXCPP_UPDATE_DOCS=1 writes it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "fx/graph/module_types.h"
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace fs = std::filesystem;

struct Family {
  std::string title;
  void (*add)(Cases&);
  Cases cases = {};
  std::vector<Outcome> outcomes = {};
};

// The cases with what came out, each checked once.
const Family& family(std::string_view title) {
  static std::vector<Family> families{{"Modules without weights", &add_modules},
                                      {"Modules with weights", &add_layers},
                                      {"Losses", &add_losses},
                                      {"Functionals", &add_functionals},
                                      {"Nets and loops", &add_nets}};
  Family& found = *std::find_if(families.begin(), families.end(),
                                [&](const Family& each) { return each.title == title; });
  if (!found.cases.empty()) return found;
  torch::manual_seed(0);
  found.add(found.cases);
  for (const Case& each : found.cases) found.outcomes.push_back(check_case(each));
  return found;
}

constexpr std::string_view kTitles[] = {"Modules without weights", "Modules with weights", "Losses",
                                        "Functionals", "Nets and loops"};

void expect_as_eager(std::string_view title) {
  const Family& made = family(title);
  ASSERT_FALSE(made.cases.empty());
  for (std::size_t i = 0; i < made.cases.size(); ++i)
    EXPECT_EQ(made.outcomes[i].fault, "")
        << made.cases[i].name << "(" << made.cases[i].options << ")";
}

TEST(CaptureZoo, modules) { expect_as_eager("Modules without weights"); }
TEST(CaptureZoo, layers) { expect_as_eager("Modules with weights"); }
TEST(CaptureZoo, losses) { expect_as_eager("Losses"); }
TEST(CaptureZoo, functionals) { expect_as_eager("Functionals"); }
TEST(CaptureZoo, nets) { expect_as_eager("Nets and loops"); }

std::set<std::string> names_of_cases() {
  std::set<std::string> names;
  for (auto add : {&add_modules, &add_layers, &add_losses, &add_functionals}) {
    Cases cases;
    add(cases);
    for (const Case& each : cases) names.insert(each.name);
  }
  return names;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the headers of LibTorch declare.
TEST(CaptureZoo, has_every_module_and_functional) {
  const fs::path root = fs::path(FXCPP_TORCH_NN);
  ASSERT_TRUE(fs::exists(root / "modules")) << root;
  const std::set<std::string> names = names_of_cases();
  auto expect_all = [&](const fs::path& folder, const std::regex& declaration) {
    std::size_t count = 0;
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      const std::string text = file.is_regular_file() ? text_of(file.path()) : "";
      for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
        const std::string name = (*it)[1];
        // A macro's documentation, and a helper of the convolutions.
        if (name == "M" || name == "padding_unwrap") continue;
        EXPECT_TRUE(names.contains(name)) << name << " of " << file.path();
        ++count;
      }
    }
    EXPECT_GT(count, 90u) << folder;
  };
  // Sequential is declared by hand; unfinished helpers begin with an underscore.
  expect_all(root / "modules", std::regex("TORCH_MODULE\\((\\w+)\\)"));
  expect_all(root / "functional", std::regex("\\ninline [\\w:<>, ]+ ([a-z]\\w*)\\("));
}

std::string joined(const std::set<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : "; ") + item;
  return out;
}

// One row for each name, over all its cases.
std::string table(const Family& made) {
  struct Row {
    std::size_t cases = 0, captured = 0, with_gradients = 0;
    std::size_t gradients = 0;
    std::set<std::string> refusals, baked;
    bool any_size = false, reads_value = false;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  for (std::size_t i = 0; i < made.cases.size(); ++i) {
    const auto& [each, outcome] = std::tie(made.cases[i], made.outcomes[i]);
    if (!rows.contains(each.name)) order.push_back(each.name);
    Row& row = rows[each.name];
    ++row.cases;
    row.captured += outcome.captured && outcome.fault.empty();
    row.with_gradients += outcome.differentiable;
    row.gradients = std::max(row.gradients, outcome.gradients);
    if (!each.refused.empty()) row.refusals.insert("no: " + each.refused);
    if (!each.refused_with_gradients.empty())
      row.refusals.insert("no: " + each.refused_with_gradients);
    row.reads_value |= each.reads_value;
    if (outcome.baked == "-") continue;
    if (outcome.baked.empty()) row.any_size = true;
    if (!outcome.baked.empty()) row.baked.insert(outcome.baked);
  }
  std::ostringstream out;
  out << "## " << made.title
      << "\n\n| name | variants | captured and replayed | gradients | batch |\n"
      << "| --- | ---: | --- | --- | --- |\n";
  for (const std::string& name : order) {
    const Row& row = rows[name];
    out << "| " << name << " | " << row.cases << " | "
        << (row.captured == row.cases ? "equal" : std::to_string(row.captured) + " of them equal")
        << (row.reads_value ? ", once it does not check a value that it reads" : "") << " | ";
    if (!row.refusals.empty())
      out << joined(row.refusals);
    else if (row.with_gradients == 0)
      out << "none";
    else
      out << "equal, of " << row.gradients << (row.gradients == 1 ? " tensor" : " tensors");
    out << " | "
        << (!row.baked.empty() ? joined(row.baked) : std::string(row.any_size ? "any" : "-"))
        << " |\n";
  }
  return out.str();
}

TEST(CaptureZoo, page_is_true) {
  std::size_t count = 0;
  std::ostringstream body;
  for (const std::string_view title : kTitles) {
    count += family(title).cases.size();
    body << "\n" << table(family(title));
  }
  std::ostringstream page;
  page
      << "# What make_fx captures\n\n"
      << count
      << R"( programs on stock LibTorch, nothing of them written for fx: each module and functional of `torch::nn` with its
options, and whole nets (`tests/models/`). Each is captured by `fx::make_fx` in float32 and float64, in train and eval mode,
without and with gradients. *Equal* means: outputs, inputs that are written to, buffers, which outputs share memory with
inputs, and gradients of inputs and parameters are bit by bit those of eager, on fresh inputs, through `GraphModule` and
through `Interpreter`; random numbers with the same seed. Outputs, inputs and buffers stay so when the graph is made
functional (`fx::functionalize`). *Batch* says whether one graph, captured with a symbolic batch size (`MakeFxOptions::dynamic`) on
a batch of 2, is equal on batches of 1, 3 and 7, with gradients too, or what keeps it from it.
[The guide](guide/cpp_model.md) says what to do where the answer is no.
`FXCPP_UPDATE_DOCS=1 build/dev/bin/test_models` writes this page; the test fails where it is not true.
)" << body.str();
  const fs::path path = fs::path(FXCPP_SOURCE_DIR) / "docs" / "captured.md";
  if (std::getenv("FXCPP_UPDATE_DOCS")) std::ofstream(path) << page.str();
  EXPECT_EQ(text_of(path), page.str()) << "FXCPP_UPDATE_DOCS=1 writes the page anew";
}

}  // namespace
}  // namespace fx::zoo
