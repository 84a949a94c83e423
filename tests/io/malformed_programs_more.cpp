// T, G: damage beside that of malformed_programs.cpp. X: programs of a size that no writer makes.

#include "tests/io/malformed.h"

namespace fx::io::testing {

using namespace std::string_literals;
using enum MalformedCase::Wanted;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

/// A lie about the value "add" of "buffers".
Make lie(const char* key, const Json& value) {
  return model([key, value](Json& m) { graph_of(m)["tensor_values"]["add"][key] = value; });
}

Make guard(const std::string& text) {
  return model([text](Json& m) { m["guards_code"] = Json::array({text}); });
}

/// The graph of the first branch of "cond".
Make branch(const std::function<void(Json&)>& edit) {
  return model([edit](Json& m) { edit(node_of(m, 2)["inputs"][1]["arg"]["as_graph"]["graph"]); });
}

std::string repeated(const std::string& part, std::size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

/// An argument that is a list of that many numbers, as text: nlohmann would take a gigabyte.
Make many_ints(std::size_t count) {
  return replaced(kModel, R"({"as_tensor": {"name": "x"}}, "kind")",
                  R"({"as_ints": [1)" + repeated(",1", count - 1) + R"(]}, "kind")");
}

/// Text in place of the list of nodes of "relu".
Make nodes(const std::string& text) {
  return [text](ProgramFile& file) {
    std::string& data = file.record(kModel).data;
    const std::size_t from = data.find("\"nodes\": ["), to = data.find("\"tensor_values\"");
    data.replace(from, to - from, "\"nodes\": " + text + ", ");
    return file.build();
  };
}

/// A chain of that many nodes, which share the text of their metadata.
Make long_chain(std::size_t count) {
  return [count](ProgramFile& file) {
    std::string list, values;
    const std::string meta =
        R"({"dtype":7,"sizes":[{"as_int":2}],"requires_grad":false,"device":{"type":"cpu"},)"
        R"("strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7})";
    for (std::size_t i = 0; i < count; ++i) {
      const std::string from = i == 0 ? "x" : "r" + std::to_string(i - 1);
      const std::string to = i + 1 == count ? "relu" : "r" + std::to_string(i);
      list += std::string(i == 0 ? "" : ",") +
              R"({"target":"torch.ops.aten.relu.default","inputs":[{"name":"self","arg":)"
              R"({"as_tensor":{"name":")" +
              from + R"("}},"kind":1}],"outputs":[{"as_tensor":{"name":")" + to +
              R"("}}],"metadata":{}})";
      if (i + 1 < count) values += "\"" + to + "\":" + meta + ",";
    }
    file.replace(kModel, "\"tensor_values\": {", "\"tensor_values\": {" + values);
    return nodes("[" + list + "]")(file);
  };
}

/// That many entries of weights that the graph does not have.
Make many_weights(std::size_t count) {
  return [count](ProgramFile& file) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i)
      list += "\"w" + std::to_string(i) +
              R"(":{"path_name":"weight_0","is_param":false,"use_pickle":false,"tensor_meta":)"
              R"({"dtype":7,"sizes":[{"as_int":4}],"requires_grad":false,"device":{"type":"cpu"},)"
              R"("strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}},)";
    file.replace("data/weights/model_weights_config.json", "{\"config\": {",
                 "{\"config\": {" + list);
    return file.build();
  };
}

}  // namespace

std::vector<MalformedCase> malformed_programs_more() {
  const std::string b = "buffers", r = "relu", c = "cond", s = "symbolic_sizes";
  const auto unsupported = ErrorCode::kUnsupported, forbidden = ErrorCode::kForbiddenOperator;
  const auto tree = ErrorCode::kBadTreespec, expr = ErrorCode::kBadExpression;
  const auto syntax = ErrorCode::kBadJson;
  const Json self = Json::array({named("self", tensor("x"))});
  return {
      {"T01", b, meta([](Json& m) { m["dtype"] = 99; }), kRefused, kSchema, "unknown value 99"},
      {"T04", b, shape(sizes({std::int64_t{1} << 40}), sizes({1})), kRefused, kWeightError,
       "of its record"},
      {"T07", b, shape(sizes({4}), sizes({std::int64_t{1} << 40})), kRefused, kWeightError,
       "elements of its record, which has 4"},
      {"T09", b, meta([](Json& m) { m["storage_offset"] = {{"as_int", 1}}; }), kRefused,
       kWeightError, "needs 5 elements of its record, which has 4"},
      {"T12", b, contents(kWeight, std::string(12, 'x')), kRefused, kWeightError,
       "needs 4 elements of its record, which has 3"},
      {"T14b", b,
       stored("",
              [](Json& m) {
                m["sizes"] = sizes({1 << 20, 512});
                m["strides"] = sizes({512, 1});
              }),
       kRefused, kWeightError, "elements of its record, which has 0"},
      {"T14c", b, shape(sizes({0, kHuge, kHuge}), sizes({1, 1, 1})), kRefused, kWeightError,
       "overflow"},
      {"T17", b, meta([](Json& m) { m["device"] = {{"type", "cuda"}, {"index", 0}}; }), kRefused,
       unsupported, "exported on device cuda:0"},
      {"T17b", b, meta([](Json& m) { m["device"]["index"] = 1'000'000; }), kRefused, kSchema,
       "device.index"},
      {"T20", b, meta([](Json& m) { m["sizes"][0] = {{"as_expr", {{"expr_str", "s0"}}}}; }),
       kRefused, kWeightError, "a size is symbolic"},
      {"T23", b, meta([](Json& m) { m["dtype"] = 30; }), kRefused, kWeightError, ""},

      {"G01", r, call("torch.ops.aten.no_such.default", self), kRefused, unsupported,
       "'aten::no_such' is not in this process"},
      {"G01b", r, call("torch.ops.aten.relu.no_such", self), kRefused, unsupported,
       "'aten::relu.no_such'"},
      {"G04", r, call("", self), kRefused, kSchema, "target"},
      {"G04b", r, call("builtins.eval", self), kRefused, unsupported, "'builtins.eval'"},
      {"G07", b, node([](Json& n) { n["inputs"][0]["arg"] = tensor("mul"); }), kRefused, kProgram,
       "uses the value 'mul' before it is made"},
      {"G10", r, call("torch.ops.aten.relu.default", Json::array()), kRefused, kProgram,
       "lacks its argument 'self'"},
      {"G10b", r, node([](Json& n) { n["inputs"].push_back(n["inputs"][0]); }), kRefused, kProgram,
       "argument 'self' of aten::relu twice"},
      {"G13", r, node([](Json& n) { n["outputs"] = Json::array(); }), kRefused, kProgram,
       "the node has 0"},
      {"G16", r,
       model([](Json& m) { m["graph_module"]["signature"]["input_specs"] = Json::array(); }),
       kRefused, kProgram, "1 inputs and its signature 0"},
      {"G16b", b, model([](Json& m) {
         m["graph_module"]["signature"]["input_specs"][0]["buffer"]["arg"]["name"] = "b_scale";
       }),
       kRefused, kProgram, ""},
      {"G19", b, lie("dtype", 12), kBothAreFine, {}, {}},
      {"G19b", b, lie("strides", sizes({kHuge, kHuge})), kBothAreFine, {}, {}},
      {"G19c", b, lie("sizes", sizes({1 << 30, 4})), kBothAreFine, {}, {}},
      {"G22", s, expression(repeated("(", 10'000)), kRefused, expr, "nested more than 100 deep"},
      {"G22b", s, expression("1 // 0"), kBothAreFine, expr, {}},
      {"G22c", s, expression("9223372036854775808"), kRefused, expr, "does not fit an int64"},
      {"G22d", s, expression(repeated("1", 70'000)), kRefused, kSchema,
       "an expression of 70000 bytes"},
      {"G25", r, guard("__import__('os').system('touch executed')"), kAccepted, {}, {}},
      {"G25b", r, guard("\x1b]0;owned\x07"), kAccepted, {}, {}},
      {"G28", r,
       call("torch.ops.aten.from_file.default",
            {named("filename", {{"as_string", "/etc/passwd"}}), named("size", {{"as_int", 4}})}),
       kRefused, forbidden, "'aten::from_file' is refused"},
      {"G28b", r, call("torch.ops.profiler._record_function_enter_new.default", self), kRefused,
       forbidden, "operators of namespace profiler"},
      {"G31",
       r,
       call("torch.ops.aten.empty.memory_format",
            Json::array({named("size", {{"as_ints", {kHuge, kHuge}}})})),
       kRunFails,
       {},
       "overflow"},
      {"G31b",
       r,
       call("torch.ops.aten.empty.memory_format",
            Json::array({named("size", {{"as_ints", {-3}}})})),
       kRunFails,
       {},
       "negative"},
      {"G34", c, branch([](Json& g) { g["inputs"] = Json::array(); }), kRefused, kProgram, ""},
      {"G34b", c, branch([](Json& g) { g["outputs"].push_back(g["outputs"][0]); }), kRefused,
       kProgram, ""},
      {"G34c", c,
       branch([](Json& g) { g["nodes"][0]["target"] = "torch.ops.aten.from_file.default"; }),
       kRefused, forbidden, "'aten::from_file' is refused"},
      {"G34d", c, model([](Json& m) { node_of(m, 2)["inputs"][1]["arg"] = tensor("x"); }), kRefused,
       kProgram, ""},
      {"G37", r,
       in_spec(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": []}])"),
       kRefused, tree, "in_spec"},
      {"G37b", r, in_spec("[2, {}]"), kRefused, tree, "protocol 1 is wanted"},
      {"G37c", r,
       in_spec("[1, " +
               repeated(R"({"type":"builtins.tuple","context":"null","children_spec":[)", 200) +
               R"({"type":null,"context":null,"children_spec":[]})" + repeated("]}", 200) + "]"),
       kRefused, tree, ""},
      {"G40", r, model([](Json& m) {
         const Json evil = tensor("relu\x1b[2J");
         node_of(m, 0)["outputs"][0] = evil;
         graph_of(m)["outputs"][0] = evil;
       }),
       kRefused, kSchema, "control characters"},
      {"G43",
       "dynamic_batch",
       model([](Json& m) { m["range_constraints"] = Json::object(); }),
       kBothAreFine,
       {},
       {}},

      {"X06", b, many_weights(100'000), kBothAreFine, kWeightError, {}, false, 3},
      {"X07", r, long_chain(100'000), kAccepted, {}, {}, false, 3, 100'000},
      {"X08", r, many_ints(10'000'000), kRefused, syntax, "commas, colons and brackets"},
      {"X08d", r, many_ints(1'000'000), kRefused, kProgram, "found as_ints [1, 1, 1"},
      {"X08b", r, nodes("[" + repeated("{},", 5'000'000) + "{}]"), kRefused, syntax,
       "commas, colons and brackets"},
      {"X08c", r, nodes("{" + repeated("\"a\":[],", 5'000'000) + "\"b\":0}"), kRefused, syntax,
       "commas, colons and brackets"},
  };
}

}  // namespace fx::io::testing
