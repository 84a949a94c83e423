// One example for each error that a short program can meet. docs/guide/errors.md is made of this
// file, of fx/base/error_codes.def and of what the examples print: scripts/error_page.py.
//
// The comment before an example is the cause that the page states.

#include <fx/fx.h>
#include <fx/interpret/transformer.h>
#include <fx/passes/extract.h>
#include <fx/passes/functionalize.h>
#include <fx/passes/pass_manager.h>
#include <fx/passes/type_check.h>
#include <torch/torch.h>

#include <optional>

#include "tests/docs/error_examples.h"

// NOLINTBEGIN: the examples are named after the numbers of their errors.
namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

std::map<int, ErrorExample>& table() {
  static std::map<int, ErrorExample> examples;
  return examples;
}

#define EXAMPLE(number)                                                                     \
  void fx##number();                                                                        \
  const bool registered##number = table().emplace(number, ErrorExample(fx##number)).second; \
  void fx##number()

// --- graph ---------------------------------------------------------------------------------------

// FX101: The opcode is none of the six.
EXAMPLE(101) {
  // [fx101]
  fx::Graph graph;
  graph.create_node("call", "torch.relu");
  // [end]
}

// FX102: A `call_function` node got a string as target, or another kind of node a function.
EXAMPLE(102) {
  // [fx102]
  fx::Graph graph;
  graph.create_node(fx::Opcode::kCallFunction, fx::Target::string("relu"));
  // [end]
}

// FX103: A node was to be erased while others still read it.
EXAMPLE(103) {
  // [fx103]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  gm->graph().erase_node(*gm->graph().find_node("relu"));
  // [end]
}

// FX104: A function of one graph was given a node of another graph.
EXAMPLE(104) {
  // [fx104]
  auto one = fx::symbolic_trace([](auto x) { return relu(x); });
  auto other = fx::symbolic_trace([](auto x) { return relu(x); });
  one->graph().erase_node(other->graph().output_node());
  // [end]
}

// FX105: A node was used after it had been erased, or erased twice.
EXAMPLE(105) {
  // [fx105]
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  graph.erase_node(x);
  graph.erase_node(x);
  // [end]
}

// FX106: A node has no positional argument of that index; it may have been given by keyword.
EXAMPLE(106) {
  // [fx106]
  auto gm = fx::symbolic_trace([](auto x) { return clamp(x, fx::kw("min", 0)); });
  gm->graph().find_node("clamp")->update_arg(1, 5);
  // [end]
}

// FX107: A node has no keyword argument of that name.
EXAMPLE(107) {
  // [fx107]
  auto gm = fx::symbolic_trace([](auto x) { return clamp(x, fx::kw("min", 0)); });
  gm->graph().find_node("clamp")->kwarg("max");
  // [end]
}

// FX108: Metadata was to be copied to a node that has some.
EXAMPLE(108) {
  // [fx108]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) + 1; });
  fx::Node& relu = *gm->graph().find_node("relu");
  fx::Node& x = *gm->graph().find_node("x");
  x.meta().set("note", "an input");
  relu.replace_all_uses_with(x, {}, /*propagate_meta=*/true);
  // [end]
}

// FX109: The graph does not end with an output.
EXAMPLE(109) {
  // [fx109]
  fx::Graph graph;
  graph.placeholder("x");
  graph.output_node();
  // [end]
}

// FX110: A graph was to be copied in which a node is used before it is defined.
EXAMPLE(110) {
  // [fx110]
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  fx::Node& sum = graph.call_function("operator.add", {x, 1});
  sum.append(x);  // x now comes after its user
  graph.clone();
  // [end]
}

// FX111: An argument was read as a kind that it is not.
EXAMPLE(111) {
  // [fx111]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  gm->graph().find_node("add")->arg(1).node();
  // [end]
}

// FX112: A node refers to an attribute that the module does not have.
EXAMPLE(112) {
  // [fx112]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  gm->graph().get_attr("scale");
  // [end]
}

// FX113: A path of an attribute is empty, or has an empty part.
EXAMPLE(113) {
  // [fx113]
  fx::GraphModule gm;
  gm.set_buffer("layer..mean", torch::zeros({2}));
  // [end]
}

struct Unknown : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return x; }
};

// FX114: A graph calls a module of a class that nobody registered.
EXAMPLE(114) {
  // [fx114]
  fx::GraphModule gm;
  gm.set_submodule("own", std::make_shared<Unknown>());
  fx::Interpreter(gm).call_module("own", {torch::ones({1})}, {});
  // [end]
}

// FX115: A module was to be copied whose class has no `clone`.
EXAMPLE(115) {
  // [fx115]
  fx::GraphModule gm;
  gm.set_submodule("own", std::make_shared<Unknown>());
  gm.deep_copy();
  // [end]
}

// FX117: Lists, tuples and dicts are nested more than 200 levels deep.
EXAMPLE(117) {
  // [fx117]
  fx::Argument nested;
  for (int i = 0; i < 300; ++i) nested = fx::Argument::list({nested});
  // [end]
}

// FX118: A keyword argument was given twice.
EXAMPLE(118) {
  // [fx118]
  fx::Graph graph;
  graph.call_function("torch.zeros", {}, {{"size", 1}, {"size", 2}});
  // [end]
}

// FX119: Something in the graph has no form in C++ or Python source code.
EXAMPLE(119) {
  // [fx119]
  fx::wrap("errors.half", [](at::Tensor x) { return x / 2; });
  fx::GraphModule gm;
  fx::Node& x = gm.graph().placeholder("x");
  gm.graph().output(gm.graph().call_function("errors.half", {x}));
  gm.code();
  // [end]
}

// --- lint ----------------------------------------------------------------------------------------

// FX151: A node in the list belongs to another graph. Only a bug can do this.

// FX152: A node reads a node of another graph.
EXAMPLE(152) {
  // [fx152]
  fx::Graph one, other;
  fx::Node& x = one.placeholder("x");
  other.output(x);
  other.lint();
  // [end]
}

// FX153: A node is read before it is defined. Nodes run in the order of the list.
EXAMPLE(153) {
  // [fx153]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  gm->graph().find_node("mul")->append(*gm->graph().find_node("add"));
  gm->graph().lint();
  // [end]
}

// FX154: A node reads one that has been erased.
EXAMPLE(154) {
  // [fx154]
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  fx::Node& dead = graph.call_function("torch.relu", {x});
  graph.erase_node(dead);
  graph.output(dead);
  graph.lint();
  // [end]
}

// FX155: Two nodes have the same name. Only a bug can do this.

// FX156: A target does not fit its opcode. Only a bug can do this.

// FX157: The target of a `get_attr` or `call_module` node is not in the module that owns the graph.
EXAMPLE(157) {
  // [fx157]
  fx::GraphModule gm;
  gm.set_buffer("mean", torch::zeros({2}));
  gm.graph().output(gm.graph().get_attr("mean"));
  gm.graph().find_node("mean")->set_target("average");
  gm.graph().lint();
  // [end]
}

// FX158: The target of a `call_module` node is a tensor.
EXAMPLE(158) {
  // [fx158]
  fx::GraphModule gm;
  gm.set_buffer("mean", torch::zeros({2}));
  fx::Node& read = gm.graph().get_attr("mean");
  read.set_op(fx::Opcode::kCallModule, fx::Target::string("mean"));
  gm.graph().lint();
  // [end]
}

// FX159: A placeholder stands behind other nodes.
EXAMPLE(159) {
  // [fx159]
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  fx::Node& sum = graph.call_function("operator.add", {x, 1});
  graph.placeholder("y");
  graph.output(sum);
  graph.lint({.strict = true});
  // [end]
}

// FX160: There is no output node, there are several, or it is not the last node.
EXAMPLE(160) {
  // [fx160]
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  graph.output(x);
  graph.call_function("torch.relu", {x});
  graph.lint({.strict = true});
  // [end]
}

// FX161: Arguments and users of a node disagree. Only a bug can do this.

// FX162: Two placeholders have the same target.
EXAMPLE(162) {
  // [fx162]
  fx::Graph graph;
  graph.placeholder("x");
  graph.output(graph.placeholder("x"));
  graph.lint({.strict = true});
  // [end]
}

// FX163: A node has an opcode that does not exist. Only a bug can do this.

// FX164: A `call_module` node has too many, too few or unknown arguments for the `forward` of its
// module. Checked by the strict rules.

// --- text ----------------------------------------------------------------------------------------

// FX181: The first line is not the version line of this version.
EXAMPLE(181) {
  // [fx181]
  fx::parse_text("%x = placeholder[target=x]\n");
  // [end]
}

// FX182: A line does not follow the grammar of the text form.
EXAMPLE(182) {
  // [fx182]
  fx::parse_text(
      "fx 1\n"
      "%x = placeholder[target=x]\n"
      "%y = call_function[target=torch.relu](args = (%x, ])\n");
  // [end]
}

// FX183: A node is used that is not defined, or only further down.
EXAMPLE(183) {
  // [fx183]
  fx::parse_text(
      "fx 1\n"
      "return %y\n");
  // [end]
}

// FX184: Two nodes have the same name.
EXAMPLE(184) {
  // [fx184]
  fx::parse_text(
      "fx 1\n"
      "%x = placeholder[target=x]\n"
      "%x = placeholder[target=y]\n");
  // [end]
}

// FX185: The target of a `call_function` is no name of a function.
EXAMPLE(185) {
  // [fx185]
  fx::parse_text(
      "fx 1\n"
      "%x = call_function[target='']()\n");
  // [end]
}

// FX186: Values are nested more than 200 levels deep.
EXAMPLE(186) {
  // [fx186]
  fx::parse_argument(std::string(300, '[') + std::string(300, ']'));
  // [end]
}

// --- trace ---------------------------------------------------------------------------------------

// FX201: A branch or a loop depends on a traced value.
EXAMPLE(201) {
  // [fx201]
  fx::symbolic_trace([](auto x) { return x.sum() > 0 ? x : -x; });
  // [end]
}

// FX202: A traced value was iterated, but its length is not known while tracing.
EXAMPLE(202) {
  // [fx202]
  fx::symbolic_trace([](fx::Proxy x) {
    fx::Proxy sum = x[0];
    for (fx::Proxy row : x) sum = sum + row;
    return sum;
  });
  // [end]
}

// FX203: The program asked for a value, size or type, which do not exist while tracing.
EXAMPLE(203) {
  // [fx203]
  fx::symbolic_trace([](const at::Tensor& x) { return x.view({x.size(0), -1}); });
  // [end]
}

// FX204: A value of one trace is used in another one.
EXAMPLE(204) {
  // [fx204]
  fx::Tracer tracer;
  fx::trace(tracer, [&](fx::Proxy x) {
    fx::symbolic_trace([&](fx::Proxy y) { return x + y; });
    return x;
  });
  // [end]
}

// FX205: A proxy is used after its trace has ended, or where no trace runs.
EXAMPLE(205) {
  // [fx205]
  std::optional<fx::Proxy> kept;
  fx::symbolic_trace([&](fx::Proxy x) {
    kept = x;
    return x;
  });
  *kept + 1;
  // [end]
}

// FX207: A module is called that is no submodule of what is traced: it was made inside of
// `forward`, or not registered.
EXAMPLE(207) {
  // [fx207]
  nn::Linear outside(4, 4);
  fx::symbolic_trace([&](auto x) { return outside(x); });
  // [end]
}

// FX208: A value has no form as an argument of a node, or the program does not take what it was
// given.
EXAMPLE(208) {
  // [fx208]
  auto program = [](at::Tensor x) { return x + 1; };
  fx::make_fx(program, {torch::ones({1}), torch::ones({1})});
  // [end]
}

// FX209: An operator that writes into its argument was traced by a tracer that refuses them.
EXAMPLE(209) {
  // [fx209]
  fx::Tracer tracer;
  tracer.check_mutable_operations = true;
  fx::trace(tracer, [](fx::Proxy x) { return x.add_(1); });
  // [end]
}

// FX210: An input that is no tensor has no value, or a value was given for an input that does not
// exist.
EXAMPLE(210) {
  // [fx210]
  fx::symbolic_trace([](fx::Proxy x, bool twice) { return twice ? x * 2 : x; });
  // [end]
}

// FX211: A value got a second type annotation.
EXAMPLE(211) {
  // [fx211]
  fx::symbolic_trace([](fx::Proxy x) { return annotate(annotate(x, "Tensor"), "int"); });
  // [end]
}

// FX212: A name for a wrapped function belongs to an operator or a built-in.
EXAMPLE(212) {
  // [fx212]
  fx::wrap("aten::relu", [](at::Tensor x) { return x; });
  // [end]
}

// FX214: The traced program returned something that a graph cannot return.

// --- run -----------------------------------------------------------------------------------------

// FX301: An input has neither a value nor a default.
EXAMPLE(301) {
  // [fx301]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return x + y; });
  (*gm)(torch::ones({1}));
  // [end]
}

// FX302: There are more values than inputs.
EXAMPLE(302) {
  // [fx302]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  (*gm)(torch::ones({1}), torch::ones({1}));
  // [end]
}

// FX303: A value was given for an input that does not exist.
EXAMPLE(303) {
  // [fx303]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  gm->forward({torch::ones({1})}, {{fx::Symbol("scale"), 2}});
  // [end]
}

// FX304: A node was run before one that it reads: the order of the graph is broken.
EXAMPLE(304) {
  // [fx304]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  gm->graph().find_node("mul")->append(*gm->graph().find_node("add"));
  fx::Interpreter(*gm).run({torch::ones({1})});
  // [end]
}

// FX305: The module that a graph runs on lacks an attribute.
EXAMPLE(305) {
  // [fx305]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  fx::Interpreter(*gm).fetch_attr("layer.weight");
  // [end]
}

// FX306: There is no operator or method of that name.
EXAMPLE(306) {
  // [fx306]
  fx::GraphModule gm;
  fx::Node& x = gm.graph().placeholder("x");
  gm.graph().output(gm.graph().call_function("mylib::op", {x}));
  fx::Interpreter(gm).call_function(fx::Target::function("mylib::op"), {torch::ones({1})}, {});
  // [end]
}

// FX307: No overload of the operator takes these arguments.
EXAMPLE(307) {
  // [fx307]
  fx::GraphModule gm;
  fx::Interpreter(gm).call_function(fx::Target::function("torch.relu"), {"text"}, {});
  // [end]
}

// FX308: An operator or module failed while a node ran; the message begins with its own words.
EXAMPLE(308) {
  // [fx308]
  auto gm = fx::symbolic_trace([](auto x) { return matmul(x, x); });
  (*gm)(torch::ones({2, 3}));
  // [end]
}

// FX309: A value has the wrong kind.
EXAMPLE(309) {
  // [fx309]
  fx::elements(fx::Value(3));
  // [end]
}

// FX310: Tensors of one call are on different devices.
EXAMPLE(310) {
  // [fx310]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return x + y; });
  (*gm)(torch::ones({2}), torch::ones({2}, torch::TensorOptions().device(torch::kMeta)));
  // [end]
}

// FX311: A tensor has another shape than the program was captured or exported for.
EXAMPLE(311) {
  // [fx311]
  auto gm = fx::load(FXCPP_SOURCE_DIR "/models/digits.pt2");
  (*gm)(torch::ones({2, 1, 7, 8}));
  // [end]
}

// FX312: A wrapped function has no implementation in this program.
EXAMPLE(312) {
  // [fx312]
  fx::GraphModule gm;
  fx::Interpreter(gm).call_function(fx::Target::function("my_function"), {torch::ones({1})}, {});
  // [end]
}

// FX313: An input has another value than the one the graph was captured for.
EXAMPLE(313) {
  // [fx313]
  fx::GraphModule gm;
  fx::Interpreter(gm).call_function(fx::Target::function("torch._assert"),
                                    {false, "wanted an even number"}, {});
  // [end]
}

// FX314: A run was stopped because its caller asked for it.
EXAMPLE(314) {
  // [fx314]
  auto gm = fx::symbolic_trace([](auto x) { return x + 1; });
  std::stop_source stop;  // request_stop() may come from any thread
  fx::StopScope scope(stop.get_token());
  stop.request_stop();
  (*gm)(torch::ones({2}));
  // [end]
}

// FX315: A functional graph was given tensors that share memory, and writes one of them.
EXAMPLE(315) {
  // [fx315]
  const auto program = [](at::Tensor x, at::Tensor y) {
    x.add_(1);
    return y * 2;
  };
  const at::Tensor one = torch::ones({2}), two = torch::ones({2});
  auto gm = fx::make_fx(program, {one, two});
  fx::functionalize(*gm, {one, two});
  (*gm)(one, one);  // y is x here: a call of the program would read the new contents
  // [end]
}

// --- import --------------------------------------------------------------------------------------

// FX401: The file does not exist or cannot be read.
EXAMPLE(401) {
  // [fx401]
  fx::load("no_such_model.pt2");
  // [end]
}

// FX402: The file is of another kind: ONNX, safetensors, a script, text.
// FX403: The archive holds a compiled model (AOTInductor), not an exported program.
// FX404: The file is a pickle: torch.save, or TorchScript.
// FX405: The archive is cut or damaged.
// FX406: The archive has entries that overlap, are compressed, or have names that lead elsewhere.
// FX407: A part of the archive is missing.
// FX408: The contents do not fit their checksum.
// FX409: The file was written by a torch version that is not supported.
// FX410: A part of the archive is no valid JSON.
// FX411: The JSON does not follow the schema of exported programs.
// FX412: Inputs or outputs have a structure that cannot be read.
// FX413: A symbolic size is an expression that cannot be read.
// FX414: A weight is a pickled object instead of a plain tensor.
// FX415: A weight does not fit its description.
// FX416: The program contradicts itself: an unknown name, an argument that no schema takes.
// FX417: The program uses what fxcpp does not support. Everything is listed at once.
// FX418: The program calls an operator that files may not use, since it reads or writes outside of
// its tensors.
// FX419: A part of the file is larger than the limit.

// FX420: The file is no array of NumPy.
EXAMPLE(420) {
  // [fx420]
  fx::io::read_npy(FXCPP_SOURCE_DIR "/models/digits.pt2");
  // [end]
}

// FX421: The array has an element type that torch does not have.

// FX422: A file cannot be written.
EXAMPLE(422) {
  // [fx422]
  fx::io::write_npy("/no/such/folder/x.npy", torch::ones({1}));
  // [end]
}

// FX423: `fx::save` met what a file cannot hold: a module of an own class, a tensor that is not
// dense or not on the CPU.
EXAMPLE(423) {
  // [fx423]
  fx::GraphModule module;
  module.set_buffer("edges", torch::eye(2).to_sparse());
  fx::save(module, "module.fxa");
  // [end]
}

// FX426: `fx::save_pt2`, or `fx::save` to a path that ends with `.pt2`, met what an exported
// program has no form for: calls that are no operators, a sparse tensor, inputs of unknown shape.
// All of it is listed.
EXAMPLE(426) {
  // [fx426]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) * 2; });
  fx::save_pt2(*gm, "model.pt2");
  // [end]
}

// FX427: A safetensors file contradicts itself: overlaps, holes, a shape that does not fit its
// bytes, a key twice. Or a tensor to be written has no form in it.
EXAMPLE(427) {
  // [fx427]
  fx::save_safetensors({{"edges", torch::eye(2).to_sparse()}}, "weights.safetensors");
  // [end]
}

// FX424: A file of `fx::save` contradicts itself.
// FX425: A file of `fx::save` is of a version that this library does not know.

// --- passes --------------------------------------------------------------------------------------

// FX501: There is no pass of that name.
EXAMPLE(501) {
  // [fx501]
  fx::PassManager manager("dce,csee");
  // [end]
}

// FX502: A pass has no option of that name, the value does not fit, or the pipeline cannot be read.
EXAMPLE(502) {
  // [fx502]
  fx::PassManager manager("constant_fold(max_byte=4096)");
  // [end]
}

// FX503: A pass left a graph that breaks a rule. The module is what it was before.
EXAMPLE(503) {
  // [fx503]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Pass breaks("breaks", [](fx::GraphModule& module) {
    module.graph().find_node("mul")->append(*module.graph().find_node("add"));
  });
  fx::PassManager({breaks}).run(*gm);
  // [end]
}

// FX504: Pattern and replacement do not fit together, or the pattern has no operations.
EXAMPLE(504) {
  // [fx504]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x); });
  fx::replace_pattern(*gm, [](auto x) { return relu(x); }, [](auto x, auto y) { return x + y; });
  // [end]
}

// FX505: The constraints on the order of passes contradict each other.
EXAMPLE(505) {
  // [fx505]
  fx::PassManager manager("dce,cse");
  manager.add_constraint(fx::this_before_that("dce", "cse"));
  manager.add_constraint(fx::this_before_that("cse", "dce"));
  manager.solve_constraints();
  // [end]
}

// FX506: A pass threw an exception, which is nested. The module is what it was before.
EXAMPLE(506) {
  // [fx506]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x); });
  fx::Pass fails("fails", [](fx::GraphModule& module) { module.graph().find_calls("x").at(0); });
  fx::PassManager({fails}).run(*gm);
  // [end]
}

// FX507: A pass claimed to have changed nothing and did, or the reverse.
EXAMPLE(507) {
  // [fx507]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x); });
  fx::Pass lies("lies", [](fx::GraphModule& module) {
    module.graph().find_node("relu")->set_target("torch.sigmoid");
    return false;
  });
  fx::PassManager({lies}, {.check_claims = true}).run(*gm);
  // [end]
}

// FX508: The passes stand in an order that a constraint forbids.
EXAMPLE(508) {
  // [fx508]
  fx::PassManager manager("dce,cse");
  manager.add_constraint(fx::this_before_that("cse", "dce"));
  manager.validate_constraints();
  // [end]
}

// FX509: Results before and after a pass differ by more than the tolerance.
EXAMPLE(509) {
  // [fx509]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x); });
  fx::Pass changes("changes", [](fx::GraphModule& module) {
    module.graph().find_node("relu")->set_target("torch.sigmoid");
  });
  fx::PassManagerOptions options;
  options.example_inputs = fx::Values{torch::ones({2})};
  options.verify_results = true;
  fx::PassManager({changes}, options).run(*gm);
  // [end]
}

// FX510: Passes that were to run until nothing changes never came to rest.
EXAMPLE(510) {
  // [fx510]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x); });
  fx::Pass restless("restless", [](fx::GraphModule& module) {
    fx::Node& node = *module.graph().find_node("relu");
    node.set_target(node.calls("torch.relu") ? "torch.sigmoid" : "torch.relu");
  });
  fx::PassManager({restless}, {.until_stable = true}).run(*gm);
  // [end]
}

// FX511: A part was to be extracted, but nodes are missing or inputs do not cover what it needs.
EXAMPLE(511) {
  // [fx511]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return relu(x) + y; });
  fx::extract_subgraph(*gm, {"relu"}, {"add"});
  // [end]
}

// FX512: Nodes were to be grouped that cannot become one: a placeholder or an output, a node in two
// groups, or a group that depends on its own result by a way through other nodes.

// FX513: Annotations of shapes and what operators need of them cannot both hold (`fx::type_check`).
EXAMPLE(513) {
  // [fx513]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return x + y; });
  gm->graph().find_node("x")->set_type("TensorType[2, 3]");
  gm->graph().find_node("y")->set_type("TensorType[2, 4]");
  fx::type_check(*gm);
  // [end]
}

// FX514: Something writes and has no functional form: an input that changes its shape, memory that
// two attributes share, an operator that LibTorch knows no other form of (`fx::functionalize`).
EXAMPLE(514) {
  // [fx514]
  auto gm = fx::make_fx([](at::Tensor x) { return x.unsqueeze_(0).add_(1); }, {torch::ones({2})});
  fx::functionalize(*gm, {torch::ones({2})});
  // [end]
}

// --- compile -------------------------------------------------------------------------------------

// FX602: `fx::compile` was asked for a mode or a step, or a compiled model for a stage, that there
// is not; or a backend was registered under a name that is taken, or returned nothing to call.
EXAMPLE(602) {
  // [fx602]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) * 2; });
  fx::compile(gm, {.mode = "fastest"});
  // [end]
}

// --- the command line ----------------------------------------------------------------------------

// FX601: `--backend` names a backend that does not exist.
// FX701: An input on the command line cannot be read.
// FX702: An option of the command line cannot be read.

}  // namespace

const std::map<int, ErrorExample>& error_examples() { return table(); }

}  // namespace fx::docs_test
// NOLINTEND
