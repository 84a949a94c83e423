// Programs that are wrong in one place: the error names the place.

#include <gtest/gtest.h>
#include <pthread.h>

#include "fx/io/import_export.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using nlohmann::ordered_json;
using testing::expect_import_error;
using testing::ProgramFile;
using testing::TempDir;

using Edit = std::function<void(ordered_json&)>;

/// Edits the program of `zoo_name` and expects an error.
void expect_model_error(const std::string& zoo_name, ErrorCode code,
                        const std::vector<std::string>& parts, const Edit& edit) {
  TempDir folder;
  ProgramFile file(zoo_name);
  file.edit_model(edit);
  expect_import_error(code, parts, [&] { load(file.write(folder)); });
}

/// Replaces the text of the program, not its JSON.
void expect_text_error(ErrorCode code, const std::vector<std::string>& parts,
                       const std::string& text) {
  TempDir folder;
  ProgramFile file("relu");
  file.record("models/model.json").data = text;
  expect_import_error(code, parts, [&] { load(file.write(folder)); });
}

void expect_load(const std::string& zoo_name, const Edit& edit) {
  TempDir folder;
  ProgramFile file(zoo_name);
  file.edit_model(edit);
  EXPECT_NO_THROW(load(file.write(folder)));
}

ordered_json& graph(ordered_json& model) { return model["graph_module"]["graph"]; }
ordered_json& node(ordered_json& model, std::size_t i) { return graph(model)["nodes"][i]; }

// --- JSON

TEST(JsonErrors, Syntax) {
  const auto code = ErrorCode::kBadJson;
  expect_text_error(code, {"models/model.json", "empty"}, "");
  expect_text_error(code, {"not valid JSON"}, "{");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": 1} x");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": NaN}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": 1e400}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": 01}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": \"\xff\"}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": \"\\ud800\"}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": \"\n\"}");
  expect_text_error(code, {"not valid JSON"}, "{\"a\": 123456789012345678901234567890}");
  expect_text_error(code, {"not valid JSON"}, std::string("{\"a\": 1}\0", 9));
}

TEST(JsonErrors, Depth) {
  auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  expect_text_error(ErrorCode::kBadSchema, {"the top level: an array found, an object"},
                    nested(99));
  expect_text_error(ErrorCode::kBadSchema, {"the top level: an array found"}, nested(100));
  expect_text_error(ErrorCode::kBadJson, {"nested more than 100 deep"}, nested(101));
  expect_text_error(ErrorCode::kBadJson, {"nested more than 100 deep"}, nested(1'000'000));
  expect_text_error(ErrorCode::kBadJson, {"not valid JSON"}, std::string(1'000'000, '['));
}

TEST(SchemaErrors, TopLevel) {
  const auto code = ErrorCode::kBadSchema;
  expect_text_error(code, {"the top level: an array found, an object is wanted"}, "[]");
  expect_text_error(code, {"the top level: the key 'schema_version' is missing"}, "{}");
  expect_model_error("relu", code, {"the key 'graph_module' is missing"},
                     [](ordered_json& m) { m.erase("graph_module"); });
  expect_model_error("relu", ErrorCode::kUnsupportedVersion, {"schema version 99.20", "8.x"},
                     [](ordered_json& m) { m["schema_version"]["major"] = 99; });
}

TEST(SchemaErrors, NewerMinorVersionIsReadWithAWarning) {
  TempDir folder;
  ProgramFile file("relu");
  file.edit_model([](ordered_json& m) {
    m["schema_version"]["minor"] = 999;
    m["brand_new"] = 1;
    node(m, 0)["also_new"] = {{"x", 1}};
    m["opset_version"]["aten"] = 9999;
  });
  auto module = load(file.write(folder));
  const auto* warnings = module->meta().get<std::vector<std::string>>("warnings");
  ASSERT_NE(warnings, nullptr);
  ASSERT_EQ(warnings->size(), 3u);
  EXPECT_NE((*warnings)[0].find("aten 9999"), std::string::npos);
  EXPECT_NE((*warnings)[1].find("brand_new"), std::string::npos);
  EXPECT_NE((*warnings)[2].find("graph_module.graph.nodes[0].also_new"), std::string::npos);
}

TEST(SchemaErrors, Values) {
  struct Case {
    std::vector<std::string> parts;
    ordered_json arg;  // in place of the argument of the first node
  };
  const std::string place = "graph_module.graph.nodes[0].inputs[0].arg";
  const std::vector<Case> cases = {
      {{place + ".as_int: 9223372036854775808 does not fit an int64"},
       {{"as_int", 9223372036854775808u}}},
      {{place + ".as_int: 0.5 found, an integer is wanted"}, {{"as_int", 0.5}}},
      {{place + ".as_int: true found"}, {{"as_int", true}}},
      {{place + ".as_int: the string '1' found"}, {{"as_int", "1"}}},
      {{place + ".as_float: the string 'inf' found, a number is wanted"}, {{"as_float", "inf"}}},
      {{place + ".as_ints[1]: null found, an integer is wanted"}, {{"as_ints", {1, nullptr, 3}}}},
      {{place + ": an object with one key (a tagged value) is wanted, 0 keys found"},
       ordered_json::object()},
      {{place + ": an object with one key (a tagged value) is wanted, 2 keys found"},
       {{"as_int", 1}, {"as_bool", true}}},
      {{place + ": unknown tag 'as_zzz' of Argument"}, {{"as_zzz", 1}}},
      {{place + ": null found, an object is wanted"}, nullptr},
      {{place + ".as_tensor: the key 'name' is missing"}, {{"as_tensor", ordered_json::object()}}},
      {{place + ".as_tensor.name: an empty name"}, {{"as_tensor", {{"name", ""}}}}},
      {{place + ".as_tensor.name: a name of 1001 bytes"},
       {{"as_tensor", {{"name", std::string(1001, 'n')}}}}},
      {{place + ".as_tensor.name: the name 'a\\x1bb' holds control characters"},
       {{"as_tensor",
         {{"name",
           "a\x1b"
           "b"}}}}},
      {{place + ".as_scalar_type: unknown value 0"}, {{"as_scalar_type", 0}}},
      {{place + ".as_scalar_type: unknown value 14"}, {{"as_scalar_type", 14}}},
      {{place + ".as_layout: unknown value 8"}, {{"as_layout", 8}}},
      {{place + ".as_memory_format: unknown value -1"}, {{"as_memory_format", -1}}},
      {{place + ".as_device.index: -1 found, a value from 0 to 127 is wanted"},
       {{"as_device", {{"type", "cuda"}, {"index", -1}}}}},
      {{place + ".as_sym_int: unknown tag 'as_bool' of SymIntArgument"},
       {{"as_sym_int", {{"as_bool", true}}}}},
      {{place + ".as_optional_tensors[0]: unknown tag 'as_x' of OptionalTensorArgument"},
       {{"as_optional_tensors", {{{"as_x", 1}}}}}},
      {{place + ".as_complex: the key 'imag' is missing"}, {{"as_complex", {{"real", 1.0}}}}},
      {{place + ".as_nested_tensors[0]: an object found, an array is wanted"},
       {{"as_nested_tensors", ordered_json::array({ordered_json::object()})}}},
      {{place + ".as_string_to_argument.k: unknown tag 'z' of Argument"},
       {{"as_string_to_argument", {{"k", {{"z", 1}}}}}}},
  };
  for (const Case& c : cases)
    expect_model_error("relu", ErrorCode::kBadSchema, c.parts,
                       [&](ordered_json& m) { node(m, 0)["inputs"][0]["arg"] = c.arg; });
}

TEST(SchemaErrors, DuplicateKeys) {
  TempDir folder;
  ProgramFile file("relu");
  file.replace("models/model.json", "\"nodes\": [", "\"nodes\": [], \"nodes\": [");
  expect_import_error(ErrorCode::kBadSchema, {"graph_module.graph: the key 'nodes' occurs twice"},
                      [&] { load(file.write(folder)); });
  ProgramFile map("relu");
  map.replace("models/model.json", "\"tensor_values\": {",
              "\"tensor_values\": {\"x\": {\"dtype\": 7, \"sizes\": [], \"requires_grad\": false, "
              "\"device\": {\"type\": \"cpu\"}, \"strides\": [], \"storage_offset\": {\"as_int\": "
              "0}, \"layout\": 7}, ");
  expect_import_error(ErrorCode::kBadSchema,
                      {"graph_module.graph.tensor_values: the key 'x' occurs twice"},
                      [&] { load(map.write(folder)); });
}

TEST(SchemaErrors, NestedGraphsAreBoundedByTheDepthOfTheJson) {
  TempDir folder;
  ProgramFile file("relu");
  file.edit_model([](ordered_json& m) {
    ordered_json inner = graph(m);
    for (int i = 0; i < 200; ++i) {
      ordered_json outer = graph(m);
      outer["nodes"][0]["inputs"][0]["arg"] = {{"as_graph", {{"name", "g"}, {"graph", inner}}}};
      inner = outer;
    }
    graph(m) = inner;
  });
  expect_import_error(ErrorCode::kBadJson, {"nested more than 100 deep"},
                      [&] { load(file.write(folder)); });
}

TEST(SchemaErrors, Ranges) {
  expect_model_error("dynamic_batch", ErrorCode::kBadSchema,
                     {"range_constraints", "an empty range, from 64 to 2"}, [](ordered_json& m) {
                       auto& range = m["range_constraints"].begin().value();
                       range["min_val"] = 64;
                       range["max_val"] = 2;
                     });
  expect_load("dynamic_batch", [](ordered_json& m) {
    auto& range = m["range_constraints"].begin().value();
    range["min_val"] = nullptr;
    range["max_val"] = nullptr;
  });
}

TEST(SchemaErrors, OtherUnions) {
  const auto code = ErrorCode::kBadSchema;
  auto& signature = "signature";
  expect_model_error(
      "relu", code, {"graph_module.signature.input_specs[0]: unknown tag 'zzz' of InputSpec"},
      [&](ordered_json& m) { m["graph_module"][signature]["input_specs"][0] = {{"zzz", 1}}; });
  expect_model_error(
      "relu", code, {"graph_module.signature.output_specs[0]: unknown tag 'zzz' of OutputSpec"},
      [&](ordered_json& m) { m["graph_module"][signature]["output_specs"][0] = {{"zzz", 1}}; });
  expect_model_error("constant_inputs", code, {"unknown tag 'as_list' of ConstantValue"},
                     [&](ordered_json& m) {
                       m["graph_module"][signature]["input_specs"][1]["constant_input"]["value"] = {
                           {"as_list", 1}};
                     });
  expect_model_error("symbolic_sizes", code, {"unknown tag 'as_x' of SymInt"},
                     [](ordered_json& m) { graph(m)["sym_int_values"]["mul"] = {{"as_x", 1}}; });
  expect_model_error("symbolic_sizes", code, {"unknown tag 'as_str' of SymExprHint"},
                     [](ordered_json& m) {
                       graph(m)["sym_int_values"]["mul"]["as_expr"]["hint"] = {{"as_str", "6"}};
                     });
}

// --- symbolic expressions

TEST(ExpressionErrors, AreNeverRunAsCode) {
  auto with_expression = [](const std::string& text) {
    return [text](ordered_json& m) {
      graph(m)["sym_int_values"]["mul"]["as_expr"]["expr_str"] = text;
    };
  };
  const auto code = ErrorCode::kBadExpression;
  expect_model_error("symbolic_sizes", code, {"value 'mul'", "cannot read the expression"},
                     with_expression("__import__('os').system('touch executed')"));
  expect_model_error("symbolic_sizes", code, {"exponent from 0 to 63"}, with_expression("9**9**9"));
  expect_model_error("symbolic_sizes", code, {"nested more than 100 deep"},
                     with_expression(std::string(10'000, '(')));
  expect_model_error("symbolic_sizes", code, {"does not fit an int64"},
                     with_expression("9223372036854775808"));
  expect_model_error("symbolic_sizes", ErrorCode::kBadSchema, {"an expression of 70000 bytes"},
                     with_expression(std::string(70'000, '1')));
}

// --- tree specs

TEST(TreespecErrors, InAndOut) {
  auto in_spec = [](const std::string& text) {
    return [text](ordered_json& m) {
      m["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = text;
    };
  };
  auto tree = [](const std::string& type, const std::string& context, const std::string& children) {
    return R"([1, {"type": )" + type + R"(, "context": )" + context + R"(, "children_spec": [)" +
           children + "]}]";
  };
  const auto code = ErrorCode::kBadTreespec;
  expect_model_error("relu", code, {"in_spec", "not valid JSON"}, in_spec("__import__('os')"));
  expect_model_error("relu", code, {"unknown container type 'os.system'"},
                     in_spec(tree("\"os.system\"", "\"null\"", "")));
  expect_model_error("relu", code, {"is no pair of arguments and keyword arguments"},
                     in_spec(tree("null", "null", "")));
  expect_model_error("relu", code, {"protocol 1 is wanted"}, in_spec("[2, {}]"));
  expect_model_error(
      "relu", code, {"in_spec ((*, *), {}) does not have the 1 inputs of the graph"},
      in_spec(
          R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": )"
          R"("builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, )"
          R"("children_spec": []}, {"type": null, "context": null, "children_spec": []}]}, {"type": )"
          R"("builtins.dict", "context": "[]", "children_spec": []}]}])"));
  expect_model_error(
      "relu", code, {"out_spec (*, *) does not have the 1 outputs"}, [](ordered_json& m) {
        m["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] =
            R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": )"
            R"([{"type": null, "context": null, "children_spec": []}, {"type": null, )"
            R"("context": null, "children_spec": []}]}])";
      });
  expect_model_error("namedtuple_io", code,
                     {"the fields of the named tuple 'zoo.Point' are not in the file"},
                     [](ordered_json& m) {
                       m["graph_module"]["treespec_namedtuple_fields"] = ordered_json::object();
                     });
}

// --- weights

void expect_weight_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::function<void(ordered_json& meta, ProgramFile& file)>& edit) {
  TempDir folder;
  ProgramFile file("buffers");
  file.edit("data/weights/model_weights_config.json",
            [&](ordered_json& config) { edit(config["config"]["mean"], file); });
  std::vector<std::string> all = parts;
  all.push_back("mean");
  expect_import_error(code, all, [&] { load(file.write(folder)); });
}

ordered_json ints(std::initializer_list<std::int64_t> values) {
  ordered_json list = ordered_json::array();
  for (std::int64_t value : values) list.push_back({{"as_int", value}});
  return list;
}

TEST(WeightErrors, Metadata) {
  using File = ProgramFile;
  const auto bad = ErrorCode::kBadWeight;
  auto meta = [](ordered_json& m) -> ordered_json& { return m["tensor_meta"]; };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  expect_weight_error(bad, {"a size is negative (-3)"},
                      [&](ordered_json& m, File&) { meta(m)["sizes"] = ints({-3}); });
  expect_weight_error(bad, {"a stride is negative (-1)"},
                      [&](ordered_json& m, File&) { meta(m)["strides"] = ints({-1}); });
  expect_weight_error(bad, {"a storage offset is negative (-1)"}, [&](ordered_json& m, File&) {
    meta(m)["storage_offset"] = {{"as_int", -1}};
  });
  expect_weight_error(bad, {"overflow"}, [&](ordered_json& m, File&) {
    meta(m)["sizes"] = ints({kHuge + 1, 4});
    meta(m)["strides"] = ints({4, 1});
  });
  expect_weight_error(bad, {"overflow"}, [&](ordered_json& m, File&) {
    meta(m)["sizes"] = ints({3, 4});
    meta(m)["strides"] = ints({kHuge, 1});
  });
  expect_weight_error(bad, {"overflow"}, [&](ordered_json& m, File&) {
    meta(m)["storage_offset"] = {{"as_int", kHuge}};
  });
  expect_weight_error(bad, {"overflow"}, [&](ordered_json& m, File&) {
    meta(m)["sizes"] = ints({0, kHuge, kHuge});
    meta(m)["strides"] = ints({1, 1, 1});
  });
  expect_weight_error(bad, {"needs 5 elements of its record, which has 4"},
                      [&](ordered_json& m, File&) { meta(m)["sizes"] = ints({5}); });
  expect_weight_error(bad, {"needs 7 elements of its record, which has 4"},
                      [&](ordered_json& m, File&) { meta(m)["strides"] = ints({2}); });
  expect_weight_error(bad, {"needs 5 elements"},
                      [&](ordered_json& m, File&) { meta(m)["storage_offset"] = {{"as_int", 1}}; });
  expect_weight_error(bad, {"2 sizes and 1 strides"},
                      [&](ordered_json& m, File&) { meta(m)["sizes"] = ints({2, 2}); });
  expect_weight_error(bad, {"1000 dimensions"}, [&](ordered_json& m, File&) {
    meta(m)["sizes"] = ordered_json::array();
    for (int i = 0; i < 1000; ++i) meta(m)["sizes"].push_back({{"as_int", 1}});
    meta(m)["strides"] = meta(m)["sizes"];
  });
  expect_weight_error(bad, {"a size is symbolic"}, [&](ordered_json& m, File&) {
    meta(m)["sizes"][0] = {{"as_expr", {{"expr_str", "s0"}}}};
  });
  expect_weight_error(bad, {"it has no tensor_meta"},
                      [&](ordered_json& m, File&) { m["tensor_meta"] = nullptr; });
  expect_weight_error(ErrorCode::kBadSchema, {"dtype: unknown value 0"},
                      [&](ordered_json& m, File&) { meta(m)["dtype"] = 0; });
  expect_weight_error(ErrorCode::kBadSchema, {"unknown device 'evil'"},
                      [&](ordered_json& m, File&) { meta(m)["device"]["type"] = "evil"; });
  expect_weight_error(
      ErrorCode::kUnsupported, {"exported on device cuda:0"},
      [&](ordered_json& m, File&) { meta(m)["device"] = {{"type", "cuda"}, {"index", 0}}; });
  expect_weight_error(ErrorCode::kUnsupported, {"sparse"},
                      [&](ordered_json& m, File&) { meta(m)["layout"] = 2; });
  expect_weight_error(bad, {"requires_grad on a tensor of type Int"}, [&](ordered_json& m, File&) {
    meta(m)["dtype"] = 4;
    meta(m)["requires_grad"] = true;
  });
  expect_weight_error(ErrorCode::kPickledWeight, {"Python pickle", "never opened"},
                      [&](ordered_json& m, File&) { m["use_pickle"] = true; });
  expect_weight_error(ErrorCode::kUnsupported, {"custom object"},
                      [&](ordered_json& m, File&) { m["path_name"] = "custom_obj_0"; });
  expect_weight_error(ErrorCode::kBadSchema, {"a bare record name is wanted"},
                      [&](ordered_json& m, File&) { m["path_name"] = "../../models/model.json"; });
  expect_weight_error(ErrorCode::kMissingRecord, {"weight_77"},
                      [&](ordered_json& m, File&) { m["path_name"] = "weight_77"; });
}

TEST(WeightErrors, Records) {
  const auto bad = ErrorCode::kBadWeight;
  using File = ProgramFile;
  expect_weight_error(
      bad, {"15 bytes, no multiple of the 4 bytes of a Float element"},
      [](ordered_json&, File& f) { f.record("data/weights/weight_0").data.pop_back(); });
  expect_weight_error(
      bad, {"needs 4 elements of its record, which has 0"},
      [](ordered_json&, File& f) { f.record("data/weights/weight_0").data.clear(); });
  expect_weight_error(bad, {"neither 0 nor 1"}, [](ordered_json& m, File& f) {
    m["tensor_meta"]["dtype"] = 12;
    f.record("data/weights/weight_0").data = "\x01\x02\xff\x01";
  });
  // Two names for one record have to agree on what it holds.
  TempDir folder;
  ProgramFile file("buffers");
  file.edit("data/weights/model_weights_config.json",
            [](ordered_json& config) { config["config"]["steps"]["path_name"] = "weight_0"; });
  expect_import_error(bad, {"'steps'", "holds Float elements for 'mean' and Long elements here"},
                      [&] { load(file.write(folder)); });
}

TEST(WeightErrors, DifferFromTheGraph) {
  TempDir folder;
  ProgramFile file("buffers");
  file.edit("data/weights/model_weights_config.json", [](ordered_json& config) {
    config["config"]["mean"]["tensor_meta"]["sizes"] = ints({2});
  });
  expect_import_error(ErrorCode::kBadWeight,
                      {"the graph has 'mean' as f32[4], the stored tensor is a Tensor f32[2]"},
                      [&] { load(file.write(folder)); });
}

TEST(WeightErrors, Names) {
  for (const char* name : {"a..b", ".a", "a.", "l\x01x"}) {
    TempDir folder;
    ProgramFile file("buffers");
    file.edit("data/weights/model_weights_config.json", [&](ordered_json& config) {
      ordered_json meta = config["config"]["mean"];
      config["config"].erase("mean");
      config["config"][name] = meta;
    });
    EXPECT_THROW(load(file.write(folder)), ImportError) << name;
  }
}

// --- graphs

TEST(GraphErrors, Targets) {
  for (const char* target :
       {"os.system", "torch.ops.aten.__class__.__init__", "torch.ops.aten.relu", "torch.load",
        "_operator.delitem", "operator.attrgetter", "builtins.eval", "relu", "#ext:op",
        "torch.ops.aten.relu.default.x"})
    expect_model_error("relu", ErrorCode::kUnsupported, {"'" + std::string(target) + "'", "'relu'"},
                       [&](ordered_json& m) { node(m, 0)["target"] = target; });
  expect_model_error(
      "relu", ErrorCode::kUnsupported, {"operator 'aten::relux' is not in this process"},
      [](ordered_json& m) { node(m, 0)["target"] = "torch.ops.aten.relux.default"; });
  expect_model_error("relu", ErrorCode::kUnsupported, {"operator 'aten::relu.foo'"},
                     [](ordered_json& m) { node(m, 0)["target"] = "torch.ops.aten.relu.foo"; });
}

TEST(GraphErrors, ForbiddenOperators) {
  auto from_file = [](ordered_json& m) {
    node(m, 0)["target"] = "torch.ops.aten.from_file.default";
    node(m, 0)["inputs"] = {
        {{"name", "filename"}, {"arg", {{"as_string", "/etc/passwd"}}}, {"kind", 1}}};
  };
  expect_model_error("relu", ErrorCode::kForbiddenOperator,
                     {"'aten::from_file' is refused: it reads and writes files"}, from_file);
  expect_model_error("relu", ErrorCode::kForbiddenOperator, {"operators of namespace profiler"},
                     [](ordered_json& m) {
                       node(m, 0)["target"] =
                           "torch.ops.profiler._record_function_enter_new.default";
                     });
}

TEST(GraphErrors, References) {
  const auto code = ErrorCode::kBadProgram;
  expect_model_error(
      "relu", code, {"node 0 'relu'", "uses the unknown value 'ghost'"},
      [](ordered_json& m) { node(m, 0)["inputs"][0]["arg"]["as_tensor"]["name"] = "ghost"; });
  expect_model_error(
      "relu", code, {"uses the value 'relu' before it is made"},
      [](ordered_json& m) { node(m, 0)["inputs"][0]["arg"]["as_tensor"]["name"] = "relu"; });
  expect_model_error("relu", code, {"node 0 'relu' defines the value 'x' a second time"},
                     [](ordered_json& m) { node(m, 0)["outputs"][0]["as_tensor"]["name"] = "x"; });
  expect_model_error(
      "relu", code, {"graph output 0 is 'ghost', in the signature 'relu'"},
      [](ordered_json& m) { graph(m)["outputs"][0]["as_tensor"]["name"] = "ghost"; });
  expect_model_error("relu", code, {"graph output 0 uses the unknown value 'ghost'"},
                     [](ordered_json& m) {
                       graph(m)["outputs"][0]["as_tensor"]["name"] = "ghost";
                       m["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"] =
                           graph(m)["outputs"][0];
                     });
  expect_model_error("relu", code, {"the value 'relu' has no metadata"},
                     [](ordered_json& m) { graph(m)["tensor_values"].erase("relu"); });
  expect_model_error("relu", code, {"1 inputs and its signature 0"}, [](ordered_json& m) {
    m["graph_module"]["signature"]["input_specs"] = ordered_json::array();
  });
}

TEST(GraphErrors, Arguments) {
  const auto code = ErrorCode::kBadProgram;
  expect_model_error("relu", code, {"aten::relu has no argument 'zzz'"}, [](ordered_json& m) {
    node(m, 0)["inputs"].push_back({{"name", "zzz"}, {"arg", {{"as_int", 1}}}, {"kind", 1}});
  });
  expect_model_error("relu", code, {"argument 'self' of aten::relu twice"}, [](ordered_json& m) {
    node(m, 0)["inputs"].push_back(node(m, 0)["inputs"][0]);
  });
  expect_model_error("relu", code, {"aten::relu lacks its argument 'self'"},
                     [](ordered_json& m) { node(m, 0)["inputs"] = ordered_json::array(); });
  expect_model_error(
      "relu", code, {"argument 'self' of aten::relu wants a Tensor, found as_string"},
      [](ordered_json& m) { node(m, 0)["inputs"][0]["arg"] = {{"as_string", "str"}}; });
  expect_model_error("relu", code, {"aten::relu returns 1 values, the node has 2"},
                     [](ordered_json& m) {
                       node(m, 0)["outputs"].push_back({{"as_tensor", {{"name", "more"}}}});
                     });
  expect_model_error("arguments", code, {"'approximate' of aten::gelu is keyword only"},
                     [](ordered_json& m) { node(m, 1)["inputs"][1]["kind"] = 1; });
  expect_model_error("arguments", code, {"'train' of aten::dropout is at position 1"},
                     [](ordered_json& m) {
                       node(m, 3)["inputs"][1]["kind"] = 2;
                       node(m, 3)["inputs"][2]["kind"] = 1;
                     });
}

TEST(GraphErrors, KindsFromOlderVersionsAreInferred) {
  expect_load("arguments", [](ordered_json& m) {
    for (ordered_json& n : graph(m)["nodes"]) {
      for (ordered_json& input : n["inputs"]) input.erase("kind");
      n.erase("name");
      n.erase("is_hop_single_tensor_return");
    }
    graph(m).erase("custom_obj_values");
    graph(m).erase("sym_float_values");
    m.erase("guards_code");
    m.erase("verifiers");
  });
}

TEST(GraphErrors, Signature) {
  const auto code = ErrorCode::kBadProgram;
  expect_model_error(
      "buffers", code, {"the tensor 'no.such' is not among the weights"}, [](ordered_json& m) {
        m["graph_module"]["signature"]["input_specs"][0]["buffer"]["buffer_name"] = "no.such";
      });
  expect_model_error(
      "buffer_mutation_functional", code, {"changes the unknown tensor 'no_such'"},
      [](ordered_json& m) {
        m["graph_module"]["signature"]["output_specs"][0]["buffer_mutation"]["buffer_name"] =
            "no_such";
      });
  expect_model_error("input_mutation_functional", code, {"uses the unknown value 'no_such'"},
                     [](ordered_json& m) {
                       m["graph_module"]["signature"]["output_specs"][0]["user_input_mutation"]
                        ["user_input_name"] = "no_such";
                     });
}

TEST(GraphErrors, EverythingUnsupportedIsListedAtOnce) {
  expect_model_error("multiple_outputs", ErrorCode::kForbiddenOperator,
                     {"'aten::no_such' is not in this process", "node 0 'topk'",
                      "higher-order operator 'flex_attention'", "node 1 'split_with_sizes'",
                      "'aten::from_file' is refused", "node 2 'max_1'"},
                     [](ordered_json& m) {
                       node(m, 0)["target"] = "torch.ops.aten.no_such.default";
                       node(m, 1)["target"] = "torch.ops.higher_order.flex_attention";
                       node(m, 2)["target"] = "torch.ops.aten.from_file.default";
                     });
}

TEST(GraphErrors, DevicesThatAreNotThere) {
  expect_model_error(
      "lstm", ErrorCode::kUnsupported, {"device cuda:0 is not there"}, [](ordered_json& m) {
        node(m, 0)["inputs"][2]["arg"]["as_device"] = {{"type", "cuda"}, {"index", 0}};
      });
}

TEST(Hostile, TextFromTheFileIsShownWithoutTerminalCodes) {
  expect_model_error("relu", ErrorCode::kUnsupported, {"\\x1b]0;owned\\x07"}, [](ordered_json& m) {
    node(m, 0)["inputs"][0]["arg"] = {
        {"as_custom_obj", {{"name", "x"}, {"class_fqn", "\x1b]0;owned\x07"}}}};
  });
}

TEST(Hostile, SmallStackIsEnough) {
  // What nests deepest is read within 256 kB of stack.
  TempDir folder;
  ProgramFile deep("relu");
  deep.edit_model([](ordered_json& m) {
    ordered_json arg = {{"as_int", 1}};
    for (int i = 0; i < 40; ++i) arg = {{"as_string_to_argument", {{"k", arg}}}};
    node(m, 0)["inputs"][0]["arg"] = arg;
  });
  std::vector<std::string> paths = {deep.write(folder, "deep.pt2"),
                                    testing::source_path("tests/io/zoo/symbolic_sizes.pt2")};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  auto run = [](void* argument) -> void* {
    for (const std::string& path : *static_cast<std::vector<std::string>*>(argument)) {
      try {
        inspect(path);
        load(path);
      } catch (const Error&) {
      }
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &paths), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

}  // namespace
}  // namespace fx::io
