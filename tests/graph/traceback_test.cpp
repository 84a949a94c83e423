// Where nodes come from: annotations, meta that a re-trace keeps, chains of sources.
#include "fx/graph/traceback.h"

#include <thread>

#include "fx/graph/graph_module.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using traceback::annotate;
using traceback::preserve_node_meta;

// What a tracer does with each node that it makes.
Node& stamped(Graph& graph) {
  Node& node = graph.call_function("f");
  traceback::stamp(node);
  return node;
}

Meta entries(std::initializer_list<std::pair<const char*, int>> items) {
  Meta meta;
  for (const auto& [key, value] : items) meta.set(key, value);
  return meta;
}

int custom(const Node& node, std::string_view key) {
  const Meta* meta = node.meta().get<Meta>("custom");
  const int* value = meta ? meta->get<int>(key) : nullptr;
  return value ? *value : -1;
}

TEST(Traceback, G_113_G_127_annotations_nest_and_end_with_their_guard) {
  Graph graph;
  EXPECT_TRUE(stamped(graph).meta().empty());
  {
    auto outer = annotate(entries({{"stage", 1}, {"tag", 7}}));
    EXPECT_EQ(custom(stamped(graph), "stage"), 1);
    {
      auto inner = annotate(entries({{"stage", 2}}));
      Node& node = stamped(graph);
      EXPECT_EQ(custom(node, "stage"), 2);
      EXPECT_EQ(custom(node, "tag"), 7);
      EXPECT_EQ(traceback::get_current_annotation().size(), 2u);
    }
    EXPECT_EQ(custom(stamped(graph), "stage"), 1);
    try {
      auto lost = annotate(entries({{"stage", 3}}));
      throw std::runtime_error("stop");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(custom(stamped(graph), "stage"), 1);
  }
  EXPECT_TRUE(stamped(graph).meta().empty());
  EXPECT_TRUE(traceback::get_current_annotation().empty());
  const auto staged = traceback::annotate_fn(entries({{"stage", 5}}),
                                             [](Graph& made) -> Node& { return stamped(made); });
  static_assert(std::is_invocable_v<decltype(staged), Graph&>);
  EXPECT_EQ(custom(*graph.find_node(staged(graph).name()), "stage"), 5);
  EXPECT_TRUE(traceback::get_current_meta().empty());
}

TEST(Traceback, G_114_G_130_only_the_copied_fields_go_to_new_nodes) {
  Graph graph;
  Node& old = graph.call_function("g", {}, {}, "old");
  for (const std::string_view key : traceback::kCopyMetaFields)
    if (key != "from_node") old.meta().set(key, std::string(key));
  old.meta().set("tensor_meta", 1);
  old.meta().set("val", 2);
  old.set_stack_trace("line 3");
  EXPECT_FALSE(traceback::has_preserved_node_meta());
  {
    auto ignored = traceback::set_current_meta(old);
    EXPECT_TRUE(stamped(graph).meta().empty()) << "nothing is kept unless it is asked for";
  }
  auto preserve = preserve_node_meta();
  EXPECT_TRUE(traceback::has_preserved_node_meta());
  {
    auto current = traceback::set_current_meta(old, "my_pass");
    Node& made = stamped(graph);
    for (const std::string_view key : traceback::kCopyMetaFields) {
      if (key == "from_node") continue;
      ASSERT_NE(made.meta().get<std::string>(key), nullptr) << key;
      EXPECT_EQ(*made.meta().get<std::string>(key), key);
    }
    EXPECT_EQ(made.stack_trace(), "line 3");
    EXPECT_FALSE(made.meta().contains("tensor_meta"));
    EXPECT_FALSE(made.meta().contains("val"));
    ASSERT_EQ(from_node(made).size(), 1u);
    EXPECT_EQ(from_node(made)[0], NodeSource(old, "my_pass", {NodeSourceAction::kCreate}));
    auto off = preserve_node_meta(false);
    EXPECT_FALSE(traceback::has_preserved_node_meta());
  }
  EXPECT_TRUE(stamped(graph).meta().empty());
}

TEST(Traceback, G_115_G_125_stack_traces_and_sequence_numbers_of_new_nodes) {
  Graph graph;
  traceback::set_stack_trace("ignored");
  traceback::set_grad_fn_seq_nr(1);
  EXPECT_TRUE(stamped(graph).meta().empty());
  EXPECT_NE(traceback::format_stack(), "") << "the call stack of this program";
  {
    auto preserve = preserve_node_meta();
    traceback::set_stack_trace("forward, line 3");
    EXPECT_EQ(traceback::format_stack(), "forward, line 3");
    EXPECT_EQ(stamped(graph).stack_trace(), "forward, line 3");
    traceback::set_stack_trace("");
    EXPECT_FALSE(stamped(graph).meta().contains("stack_trace"));
    traceback::set_grad_fn_seq_nr(4);
    traceback::set_grad_fn_seq_nr(5);
    EXPECT_EQ(*stamped(graph).meta().get<std::int64_t>("seq_nr"), 5);
    traceback::reset_grad_fn_seq_nr();
    EXPECT_EQ(*stamped(graph).meta().get<std::int64_t>("seq_nr"), 4);
    traceback::reset_grad_fn_seq_nr();
    EXPECT_FALSE(stamped(graph).meta().contains("seq_nr"));
    EXPECT_FX_ERROR(traceback::reset_grad_fn_seq_nr(), GraphError, kIndexOutOfRange,
                    "without a set_grad_fn_seq_nr");
    traceback::set_stack_trace("left behind");
  }
  EXPECT_TRUE(stamped(graph).meta().empty()) << "the guard puts everything back";
}

TEST(Traceback, state_belongs_to_its_thread) {
  auto preserve = preserve_node_meta();
  auto annotation = annotate(entries({{"a", 1}}));
  bool clean = false;
  std::thread([&] {
    clean = !traceback::has_preserved_node_meta() && traceback::get_current_annotation().empty();
  }).join();
  EXPECT_TRUE(clean);
}

TEST(Traceback, G_116_R_075_sources_are_chains_that_print_compare_and_hash) {
  Graph first, second;
  Node& neg = first.call_function("torch.neg", {}, {}, "neg");
  Node& relu = second.call_function("torch.relu", {}, {}, "relu");
  const NodeSource of_neg(neg, "lower", {NodeSourceAction::kCreate});
  relu.meta().set("from_node", std::vector<NodeSource>{of_neg});
  const NodeSource chain(relu, "fuse", {NodeSourceAction::kReplace, NodeSourceAction::kCreate});
  const std::string one = std::to_string(of_neg.graph_id), two = std::to_string(chain.graph_id);
  EXPECT_NE(one, two);
  EXPECT_EQ(chain.print_readable(),
            "(name=relu, pass_name=fuse, action=replace+create, graph_id=" + two +
                ")\n"
                "    (name=neg, pass_name=lower, action=create, graph_id=" +
                one + ")\n");
  EXPECT_EQ(chain.to_json(),
            "{\"name\": \"relu\", \"target\": \"torch.relu\", \"graph_id\": " + two +
                ", \"pass_name\": \"fuse\", \"action\": \"replace+create\", "
                "\"from_node\": [{\"name\": \"neg\", \"target\": \"torch.neg\", "
                "\"graph_id\": " +
                one +
                ", \"pass_name\": \"lower\", \"action\": \"create\", "
                "\"from_node\": []}]}");
  const NodeSource same(relu, "fuse", {NodeSourceAction::kReplace, NodeSourceAction::kCreate});
  EXPECT_EQ(chain, same);
  EXPECT_EQ(std::hash<NodeSource>{}(chain), std::hash<NodeSource>{}(same));
  const NodeSource other(relu, "fuse", {NodeSourceAction::kReplace});
  EXPECT_NE(chain, other);
  EXPECT_NE(chain.hash(), other.hash());
  EXPECT_EQ(NodeSource().print_readable(), "(name=, pass_name=, action=, graph_id=0)\n");
  EXPECT_EQ(get_graph_provenance_json(second), "{\"relu\": [" + of_neg.to_json() + "]}");
  EXPECT_EQ(get_graph_provenance_json(first), "{}");
}

TEST(Traceback, chains_are_shown_ten_levels_deep_and_text_is_escaped) {
  Graph graph;
  Node& node = graph.call_function("f");
  for (int i = 0; i < 20; ++i)
    node.meta().set("from_node", std::vector<NodeSource>{NodeSource(node, "a\"\\\n")});
  const std::string text = NodeSource(node).print_readable();
  EXPECT_EQ(std::count(text.begin(), text.end(), ')'), 10);
  EXPECT_THAT(NodeSource(node, "a\"\\\n").to_json(),
              ::testing::HasSubstr("\"pass_name\": \"a\\\"\\\\\\u000a\""));
}

TEST(Traceback, I_009_I_016_an_interpreter_says_which_node_it_executes) {
  struct Rebuild : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      traceback::stamp(made.call_function(target, {}));
      return Interpreter::call_function(target, std::move(args), std::move(kwargs));
    }
    Graph made;
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& neg = graph->call_function("operator.neg", {x});
  neg.set_stack_trace("net.cpp, line 8");
  neg.meta().set("nn_module_stack", std::string("encoder"));
  neg.meta().set("note", 1);
  graph->output(graph->call_function("operator.pos", {neg}));
  GraphModule module(graph);
  for (const bool preserve : {false, true}) {
    Rebuild rebuild(module);
    auto guard = preserve_node_meta(preserve);
    rebuild.run({1});
    const Node& made = *rebuild.made.find_node("neg");
    if (!preserve) {
      EXPECT_TRUE(made.meta().empty());
      continue;
    }
    EXPECT_EQ(made.stack_trace(), "net.cpp, line 8");
    EXPECT_EQ(*made.meta().get<std::string>("nn_module_stack"), "encoder");
    EXPECT_FALSE(made.meta().contains("note"));
    ASSERT_EQ(from_node(made).size(), 1u);
    EXPECT_EQ(from_node(made)[0].name, "neg");
    EXPECT_EQ(from_node(*rebuild.made.find_node("pos"))[0].name, "pos");
  }
  EXPECT_TRUE(traceback::get_current_meta().empty());
}

TEST(Traceback, F_088_I_019_I_021_a_transformer_keeps_origins_also_of_get_attr) {
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_parameter("w", torch::ones({2}));
  Node& w = graph->get_attr("w");
  w.meta().set("nn_module_stack", std::string("layer"));
  w.meta().set("source_fn_stack", std::string("getattr"));
  w.meta().set("note", std::string("of this value"));
  w.set_stack_trace("net.cpp, line 2");
  graph->output(graph->call_function("torch.neg", {w}));
  for (const bool preserve : {true, false}) {
    auto made = Transformer(module, {.preserve = preserve}).transform();
    const Meta& meta = made->graph().find_node("w")->meta();
    for (const auto& [key, value] : {std::pair{"nn_module_stack", "layer"},
                                     {"source_fn_stack", "getattr"},
                                     {"stack_trace", "net.cpp, line 2"}}) {
      ASSERT_NE(meta.get<std::string>(key), nullptr) << key;
      EXPECT_EQ(*meta.get<std::string>(key), value);
    }
    EXPECT_EQ(meta.contains("note"), preserve);
    EXPECT_EQ(from_node(*made->graph().find_node("w")).size(), preserve ? 0u : 1u);
  }
}

}  // namespace
}  // namespace fx
