// T: tensors of the file. G: the graph.

#include "tests/io/malformed.h"

namespace fx::io::testing {

using namespace std::string_literals;
using enum MalformedCase::Wanted;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 61;

/// The graph of "relu" with that many nodes.
Make chain(std::size_t count) {
  return model([count](Json& m) {
    Json& graph = graph_of(m);
    const Json first = graph["nodes"][0], value = graph["tensor_values"]["relu"];
    std::string before = "x";
    graph["nodes"] = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = i + 1 == count ? "relu" : "relu_" + std::to_string(i);
      Json next = first;
      next["inputs"][0]["arg"] = tensor(before.c_str());
      next["outputs"][0] = tensor(name.c_str());
      next["name"] = name;
      next["metadata"] = Json::object();
      graph["nodes"].push_back(std::move(next));
      graph["tensor_values"][name] = value;
      before = name;
    }
  });
}

}  // namespace

std::vector<MalformedCase> malformed_programs() {
  const std::string b = "buffers", r = "relu";
  const auto unsupported = ErrorCode::kUnsupported, forbidden = ErrorCode::kForbiddenOperator;
  const auto tree = ErrorCode::kBadTreespec, expr = ErrorCode::kBadExpression;
  return {
      {"T02", b, meta([](Json& m) { m["dtype"] = 0; }), kRefused, kSchema, "unknown value 0"},
      {"T03", b, shape(sizes({-3, 4}), sizes({4, 1})), kRefused, kWeightError,
       "a size is negative (-3)"},
      {"T05", b, shape(sizes({2 * kHuge + 1, 4}), sizes({4, 1})), kRefused, kWeightError,
       "overflow"},
      {"T06", b, shape(sizes({4}), sizes({-1})), kRefused, kWeightError, "a stride is negative"},
      {"T07b", b, shape(sizes({3, 4}), sizes({kHuge, 1})), kRefused, kWeightError, "overflow"},
      {"T08", b, meta([](Json& m) { m["storage_offset"] = {{"as_int", -1}}; }), kRefused,
       kWeightError, "a storage offset is negative"},
      {"T10", b, meta([](Json& m) { m["storage_offset"] = {{"as_int", 2 * kHuge}}; }), kRefused,
       kWeightError, "overflow"},
      {"T11", b, shape(sizes({2, 2}), sizes({1})), kRefused, kWeightError, "2 sizes and 1 strides"},
      {"T13", b, contents(kWeight, std::string(15, 'x')), kRefused, kWeightError,
       "15 bytes, no multiple of the 4 bytes"},
      {"T14", b,
       stored("",
              [](Json& m) {
                m["sizes"] = sizes({1 << 20, 1 << 20});
                m["strides"] = sizes({1 << 20, 1});
              }),
       kRefused, kWeightError, "elements of its record, which has 0"},
      {"T15", b, meta([](Json& m) {
         m["sizes"] = Json::array();
         for (int i = 0; i < 1000; ++i) m["sizes"].push_back({{"as_int", 1}});
         m["strides"] = m["sizes"];
       }),
       kRefused, kWeightError, "1000 dimensions"},
      {"T16", b, meta([](Json& m) { m["layout"] = 2; }), kRefused, unsupported, "sparse"},
      {"T18", b, meta([](Json& m) { m["device"]["type"] = "evil"; }), kRefused, kSchema,
       "unknown device 'evil'"},
      {"T18b", b, meta([](Json& m) { m["device"]["index"] = 7; }), kRefused, kSchema,
       "there is no device cpu:7"},
      {"T19", b,
       json("data/weights/model_weights_config.json",
            [](Json& c) { c["config"]["steps"]["path_name"] = "weight_0"; }),
       kRefused, kWeightError, "holds Float elements for 'mean' and Long elements here"},
      {"T21", b,
       stored("\1\0\1\1"s,
              [](Json& m) {
                m["dtype"] = 12;
                m["requires_grad"] = true;
              }),
       kRefused, kWeightError, "requires_grad on a tensor of type Bool"},
      {"T22", b, stored("\2\xff\0\1"s, [](Json& m) { m["dtype"] = 12; }), kRefused, kWeightError,
       "neither 0 nor 1"},
      {"T24", b, shape(sizes({2, 2}), sizes({2, 1})), kRefused, kWeightError,
       "the graph has 'mean' as f32[4], the stored tensor is a Tensor f32[2, 2]"},
      {"T25", b, meta([](Json& m) {
         m["dtype"] = 5;
         m["sizes"] = sizes({2});
       }),
       kRefused, kWeightError, "the stored tensor is a Tensor i64[2]"},

      {"G02", r, call("os.system", Json::array({named("", tensor("x"))})), kRefused, unsupported,
       "'os.system'"},
      {"G03", r, call("torch.ops.aten.__class__.__init__", Json::array({named("", tensor("x"))})),
       kRefused, unsupported, "__class__"},
      {"G05", r, node([](Json& n) { n["inputs"][0]["arg"] = tensor("relu"); }), kRefused, kProgram,
       "uses the value 'relu' before it is made"},
      {"G06", r, node([](Json& n) { n["inputs"][0]["arg"] = tensor("ghost"); }), kRefused, kProgram,
       "unknown value 'ghost'"},
      {"G08", r, node([](Json& n) { n["outputs"][0] = tensor("x"); }), kRefused, kProgram,
       "defines the value 'x' a second time"},
      {"G09", r, node([](Json& n) { n["inputs"].push_back(named("more", tensor("x"))); }), kRefused,
       kProgram, "aten::relu has no argument 'more'"},
      {"G11", r, node([](Json& n) { n["inputs"][0]["arg"] = {{"as_string", "str"}}; }), kRefused,
       kProgram, "wants a Tensor, found as_string"},
      {"G12", r, node([](Json& n) { n["outputs"].push_back(tensor("more")); }), kRefused, kProgram,
       "returns 1 values, the node has 2"},
      {"G14", r, model([](Json& m) {
         graph_of(m)["outputs"][0] = tensor("ghost");
         m["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"] = tensor("ghost");
       }),
       kRefused, kProgram, "unknown value 'ghost'"},
      {"G15", b, model([](Json& m) {
         m["graph_module"]["signature"]["input_specs"][0]["buffer"]["buffer_name"] = "no.such";
       }),
       kRefused, kProgram, "'no.such' is not among the weights"},
      {"G17", "buffer_mutation_functional", model([](Json& m) {
         m["graph_module"]["signature"]["output_specs"][0]["buffer_mutation"]["buffer_name"] = "no";
       }),
       kRefused, kProgram, "changes the unknown tensor 'no'"},
      {"G18",
       b,
       model([](Json& m) { graph_of(m)["tensor_values"]["add"]["sizes"] = sizes({1}); }),
       kBothAreFine,
       {},
       {}},
      {"G20", r, model([](Json& m) { graph_of(m)["tensor_values"].erase("relu"); }), kRefused,
       kProgram, "the value 'relu' has no metadata"},
      {"G21", "symbolic_sizes", expression("__import__('os').system('touch executed')"), kRefused,
       expr, "cannot read the expression"},
      {"G23", "symbolic_sizes", expression("9**9**9"), kRefused, expr, "exponent from 0 to 63"},
      {"G24", "dynamic_batch", model([](Json& m) {
         Json& range = m["range_constraints"].begin().value();
         range["min_val"] = 64;
         range["max_val"] = 2;
       }),
       kRefused, kSchema, "an empty range, from 64 to 2"},
      {"G26", r, model([](Json& m) {
         std::string guard = "L['x'].size()[0] > 0";
         for (int i = 0; i < 100'000; ++i) guard += " + 1";
         m["guards_code"] = Json::array({guard});
       }),
       kRefused, kSchema, "a guard of more than 64 kB"},
      {"G27",
       r,
       call("torch.ops.aten.as_strided.default",
            {named("self", tensor("x")), named("size", {{"as_ints", {1 << 20}}}),
             named("stride", {{"as_ints", {1}}})}),
       kRunFails,
       {},
       "out of bounds for storage"},
      {"G29", r,
       call("torch.ops.aten.from_file.default",
            {named("filename", {{"as_string", "made"}}), named("shared", {{"as_bool", true}}),
             named("size", {{"as_int", 4}})}),
       kRefused, forbidden, "'aten::from_file' is refused"},
      {"G30",
       r,
       call("torch.ops.aten.empty.memory_format",
            Json::array({named("size", {{"as_ints", {std::int64_t{1} << 50}}})})),
       kRunFails,
       {},
       "allocate"},
      {"G32", r, chain(20'000), kAccepted, {}, {}, false, 0.5, 20'000},
      {"G33", r, model([](Json& m) {
         Json inner = graph_of(m);
         for (int i = 0; i < 200; ++i) {
           Json outer = graph_of(m);
           outer["nodes"][0]["inputs"][0]["arg"] = {
               {"as_graph", {{"name", "g"}, {"graph", inner}}}};
           inner = std::move(outer);
         }
         graph_of(m) = std::move(inner);
       }),
       kRefused, ErrorCode::kBadJson, "nested more than 100 deep"},
      {"G35", r, in_spec(R"([1, {"type": "os.system", "context": "null", "children_spec": []}])"),
       kRefused, tree, "unknown container type 'os.system'"},
      {"G36", r, in_spec("__import__('os')"), kRefused, tree, "not valid JSON"},
      {"G38", r, model([](Json& m) { m["opset_version"]["aten"] = 9999; }), kAccepted, {}, {}},
      {"G39", b,
       json("data/weights/model_weights_config.json",
            [](Json& c) { c["config"]["l\0/../x"s] = c["config"]["mean"]; }),
       kRefused, kSchema, ""},
      {"G41",
       r,
       call("torch.ops.aten.select.int", {named("self", tensor("x")), named("dim", {{"as_int", 0}}),
                                          named("index", {{"as_int", 99}})}),
       kRunFails,
       {},
       "out of range"},
      {"G42",
       b,
       model([](Json& m) {
         node_of(m, 3)["target"] = "torch.ops.aten.matmul.default";
         node_of(m, 3)["inputs"] = {named("self", tensor("mul")), named("other", tensor("x"))};
       }),
       kRunFails,
       {},
       "matmul"},
  };
}

}  // namespace fx::io::testing
