// The partitions that are proposed, and how modules are split, are those of Python's torch.fx: both
// work on the same random graphs.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "fx/passes/partitioner.h"
#include "fx/passes/split_module.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

// Reads "x NAME", "c NAME TARGET PARTITION INPUT...", "o INPUT...", and "." at the end of a graph.
constexpr const char* kScript = R"(
import operator, sys, torch, torch.fx as fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support
from torch.fx.passes.split_module import split_module

targets = {"operator.add": operator.add, "torch.neg": torch.neg, "operator.mul": operator.mul}
supports = create_op_support(lambda modules, node: node.target is operator.add)

def show(gm, numbers, **options):
    try:
        split = split_module(gm, gm, lambda node: numbers[node.name], **options)
    except RuntimeError as error:
        return print("split:", error)
    print("split:", split.graph)
    for name, part in sorted(split.named_children()):
        print(name, part.graph)

graph, nodes, numbers = fx.Graph(), {}, {}
for line in open("graphs.txt"):
    kind, *words = line.split()
    if kind == "x":
        nodes[words[0]] = graph.placeholder(words[0])
    elif kind == "c":
        name, target, number, *inputs = words
        nodes[name] = graph.create_node("call_function", targets[target],
                                        tuple(nodes[i] for i in inputs), name=name)
        numbers[name] = int(number)
    elif kind == "o":
        graph.output(tuple(nodes[i] for i in words))
    else:
        gm = fx.GraphModule(torch.nn.Module(), graph)
        for skip in (False, True):
            partitions = CapabilityBasedPartitioner(
                gm, supports, allows_single_node_partition=True,
                skip_horizontal_fusion=skip).propose_partitions()
            print("partitions:", [sorted(node.name for node in p.nodes) for p in partitions])
        show(gm, numbers)
        show(gm, numbers, keep_original_node_name=True, keep_original_input_name=False,
             tuple_return=True, partition_affix="p")
        graph, nodes, numbers = fx.Graph(), {}, {}
)";

struct RandomGraph {
  std::shared_ptr<GraphModule> module;
  std::map<std::string, int> numbers;
  std::string text;
};

RandomGraph random_graph(unsigned seed) {
  std::mt19937 random(seed);
  RandomGraph out;
  auto graph = std::make_shared<Graph>();
  std::vector<Node*> values{&graph->placeholder("x"), &graph->placeholder("y")};
  std::ostringstream text;
  text << "x x\nx y\n";
  const int count = 3 + static_cast<int>(random() % 22), parts = 1 + static_cast<int>(random() % 4);
  // Mostly in the order of the partitions, so that not all would be circles.
  const bool is_mixed = random() % 4 == 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    const char* target = random() % 3   ? "operator.add"
                         : random() % 2 ? "torch.neg"
                                        : "operator.mul";
    // Rather what was made lately.
    auto pick = [&] {
      const std::size_t back = std::min<std::size_t>(values.size(), 1 + random() % 6);
      return values[values.size() - back];
    };
    std::vector<Node*> inputs{pick()};
    if (std::string_view(target) != "torch.neg") inputs.push_back(pick());
    const int number = is_mixed ? static_cast<int>(random() % 3) : i * parts / count;
    text << "c " << name << " " << target << " " << number;
    Args args;
    for (Node* input : inputs) {
      text << " " << input->name();
      args.emplace_back(*input);
    }
    text << "\n";
    Node& node = graph->create_node(Opcode::kCallFunction, Target::function(target),
                                    std::move(args), {}, name);
    out.numbers.emplace(name, number);
    values.push_back(&node);
  }
  text << "o";
  std::vector<Argument> results;
  for (std::size_t i = 2; i < values.size(); ++i)
    if (values[i]->num_users() == 0 || random() % 5 == 0) {
      results.emplace_back(*values[i]);
      text << " " << values[i]->name();
    }
  text << "\n.\n";
  graph->output(Argument::tuple(std::move(results)));
  out.module = std::make_shared<GraphModule>(graph);
  out.text = text.str();
  return out;
}

void show(std::ostream& out, const RandomGraph& random, const SplitOptions& options) {
  std::shared_ptr<GraphModule> split;
  try {
    split = split_module(
        *random.module,
        [&](const Node& node) { return random.numbers.at(std::string(node.name())); }, options);
  } catch (const PassError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadPartition);
    out << "split: cycle exists between partitions!\n";
    return;
  }
  out << "split: " << split->graph().str() << "\n";
  std::map<std::string, std::string> parts;
  for (const auto& child : split->named_children())
    parts[child.key()] = std::dynamic_pointer_cast<GraphModule>(child.value())->graph().str();
  for (const auto& [name, text] : parts) out << name << " " << text << "\n";
}

void show_partitions(std::ostream& out, const RandomGraph& random, bool skip_horizontal) {
  CapabilityBasedPartitioner partitioner(
      *random.module,
      [](const GraphModule&, const Node& node) { return node.calls("operator.add"); },
      {.allows_single_node_partition = true, .skip_horizontal_fusion = skip_horizontal});
  out << "partitions: [";
  bool first = true;
  for (const Partition& partition : partitioner.propose_partitions()) {
    std::vector<std::string> names;
    for (const Node* node : partition.nodes) names.emplace_back(node->name());
    std::sort(names.begin(), names.end());
    out << (first ? "" : ", ") << "[";
    for (std::size_t i = 0; i < names.size(); ++i) out << (i ? ", '" : "'") << names[i] << "'";
    out << "]";
    first = false;
  }
  out << "]\n";
}

TEST(PythonPartitions, P_022_P_025_as_in_torch_fx) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fxcpp_partitions_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream graphs(folder / "graphs.txt");
  std::ostringstream expected;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const RandomGraph random = random_graph(seed);
    graphs << random.text;
    for (const bool skip : {false, true}) show_partitions(expected, random, skip);
    show(expected, random, {});
    show(expected, random,
         {.keep_original_node_name = true,
          .keep_original_input_name = false,
          .partition_affix = "p",
          .tuple_return = true});
  }
  graphs.close();
  std::ofstream(folder / "run.py") << kScript;
  const char* python = std::getenv("FXCPP_PYTHON");
  const std::string command = "cd '" + folder.string() + "' && '" +
                              (python ? python : FXCPP_PYTHON_REF) +
                              "' run.py > out.txt 2> log.txt";
  ASSERT_EQ(std::system(command.c_str()), 0) << std::ifstream(folder / "log.txt").rdbuf();
  std::ostringstream found;
  found << std::ifstream(folder / "out.txt").rdbuf();
  std::istringstream theirs(found.str()), ours(expected.str());
  std::string a, b;
  std::size_t line = 0, cycles = 0;
  while (std::getline(theirs, a)) {
    ASSERT_TRUE(std::getline(ours, b));
    ASSERT_EQ(a, b) << "line " << ++line << " of " << folder / "out.txt";
    cycles += a.starts_with("split: cycle");
    ++line;
  }
  EXPECT_FALSE(std::getline(ours, b));
  EXPECT_GT(line, 1000u);
  EXPECT_GT(cycles, 10u);
  EXPECT_LT(cycles, 100u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fx
