// Memory runs out at the first, the second, ... request of what works on graphs: it fails, or does
// all it should, and what it was given is as it was.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/save_module.h"
#include "fx/passes/pass_manager.h"
#include "tests/base/counted_new.h"

namespace fx {
namespace {

constexpr const char* kText = R"(fx 1
%x : Tensor = placeholder[target=x]
%w = get_attr[target=w]
%mm = call_function[target=aten::mm](args = (%x, %w), kwargs = {})
%again = call_function[target=aten::mm](args = (%x, %w), kwargs = {})
%total = call_function[target=aten::add.Tensor](args = (%mm, %again), kwargs = {alpha: 2})
%relu = call_method[target=relu](args = (%total,), kwargs = {})
%unused = call_function[target=aten::sigmoid](args = (%relu,), kwargs = {})
%halves = call_function[target=aten::chunk](args = (%relu, 2), kwargs = {dim: 1})
%left = call_function[target=operator.getitem](args = (%halves, 0), kwargs = {})
%right = call_function[target=operator.getitem](args = (%halves, 1), kwargs = {})
return (%left, (%right, [1, 2.5, None], torch.float32))
)";

std::shared_ptr<GraphModule> module() {
  auto module = std::make_shared<GraphModule>();
  module->set_parameter("w", torch::linspace(-1, 1, 16).reshape({4, 4}));
  module->set_graph(parse_text(kText));
  module->recompile();
  return module;
}

at::Tensor first_of(const Value& results) { return results.toTupleRef().elements()[0].toTensor(); }

std::string text_of(const GraphModule& module) { return to_text(module.graph(), {.meta = true}); }

// Has each request of `body` fail in turn. `holds` says what is wrong afterwards; it learns whether
// `body` threw.
void sweep(const std::function<void()>& body, const std::function<std::string(bool threw)>& holds) {
  body();  // caches are filled
  for (std::size_t number = 0; number < 100'000; ++number) {
    bool threw = false;
    bool failed = true;
    try {
      failed = fail_new(number, body);
    } catch (const std::exception&) {
      threw = true;
    }
    const std::string wrong = holds(threw);
    ASSERT_EQ(wrong, "") << "request " << number
                         << (threw ? " failed" : " failed, and nobody heard of it");
    if (!failed) {
      EXPECT_GT(number, 5);
      return;
    }
  }
  FAIL() << "no end of requests";
}

std::string same(const std::string& wanted, const std::string& found) {
  return wanted == found ? "" : "found\n" + found + "instead of\n" + wanted;
}

TEST(OutOfMemory, text_is_read_and_written) {
  const auto wanted = parse_text(kText);
  const std::string text = to_text(*wanted, {.meta = true});
  std::string read;
  sweep(
      [&] {
        read.clear();
        const auto graph = parse_text(text);
        read = to_text(*graph, {.meta = true});
      },
      [&](bool threw) { return threw ? "" : same(text, read); });
}

TEST(OutOfMemory, copies_and_plans) {
  const auto original = module();
  const std::string text = text_of(*original);
  const at::Tensor x = torch::rand({2, 4});
  const at::Tensor wanted = first_of(original->forward({x}));
  std::shared_ptr<GraphModule> copy;
  sweep(
      [&] {
        copy = nullptr;
        copy = original->deep_copy();
        copy->recompile();
      },
      [&](bool threw) -> std::string {
        if (!threw && text_of(*copy) != text) return "another copy";
        if (copy) {
          copy->recompile();
          if (!torch::equal(first_of(copy->forward({x})), wanted))
            return "the copy gives something else";
        }
        return same(text, text_of(*original));
      });
}

TEST(OutOfMemory, edits_are_done_or_not) {
  std::shared_ptr<Graph> graph;
  const auto edits = [&](const std::function<void(Graph&)>& edit) {
    const std::string before = to_text(*parse_text(kText));
    graph = parse_text(kText);
    edit(*graph);
    const std::string after = to_text(*graph);
    ASSERT_NE(before, after);
    for (std::size_t number = 0;; ++number) {
      graph = parse_text(kText);
      bool threw = false;
      bool failed = true;
      try {
        failed = fail_new(number, [&] { edit(*graph); });
      } catch (const std::exception&) {
        threw = true;
      }
      graph->lint({.strict = true});
      ASSERT_EQ(to_text(*graph), threw ? before : after) << "request " << number;
      if (threw) edit(*graph);  // the second time there is memory
      ASSERT_EQ(to_text(*graph), after) << "request " << number;
      if (!failed) break;
    }
  };
  edits([](Graph& g) {
    const auto guard = g.inserting_before(*g.find_node("total"));
    g.call_function("aten::tanh", {*g.find_node("mm")});
  });
  edits([](Graph& g) { g.find_node("mm")->replace_all_uses_with(*g.find_node("w")); });
  edits([](Graph& g) {
    g.find_node("total")->set_args({Argument(*g.find_node("x")), Argument(1.5)});
  });
  edits([](Graph& g) { g.find_node("relu")->rename("a_new_and_quite_long_name_of_a_node"); });
  edits([](Graph& g) { g.erase_node(*g.find_node("unused")); });
}

TEST(OutOfMemory, passes_leave_the_module_as_it_was) {
  auto original = module();
  const std::string text = text_of(*original);
  for (const PassInfo& info : all_passes()) {
    SCOPED_TRACE(std::string(info.name));
    PassManagerOptions options;
    options.example_inputs = Values{torch::ones({2, 4})};
    PassManager manager(std::vector<Pass>{Pass(info, PassOptions(info))}, options);
    const auto copy = original->deep_copy();
    manager.run(*copy);
    const std::string after = text_of(*copy);
    std::shared_ptr<GraphModule> mine;
    for (std::size_t number = 0;; number += number < 50 ? 1 : 7) {
      mine = original->deep_copy();
      bool threw = false;
      bool failed = true;
      try {
        failed = fail_new(number, [&] { manager.run(*mine); });
      } catch (const std::exception&) {
        threw = true;
      }
      ASSERT_EQ(text_of(*mine), threw ? text : after) << "request " << number;
      if (!failed) break;
    }
  }
}

TEST(OutOfMemory, files_are_written_whole_or_not) {
  const auto original = module();
  const std::string path = testing::TempDir() + "/out_of_memory.fxa";
  const std::string text = text_of(*original);
  sweep([&] { save(*original, path, {.flush = false}); },
        [&](bool) { return same(text, text_of(*load(path))); });
  std::shared_ptr<GraphModule> loaded;
  sweep(
      [&] {
        loaded = nullptr;
        loaded = load(path);
      },
      [&](bool threw) { return threw ? "" : same(text, text_of(*loaded)); });
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fx
