// What Python evaluates of an archive is written only as far as it was understood.

#include "fx/io/python_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/io/import_export.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/save_module.h"
#include "fx/io/save_pt2.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using Json = nlohmann::ordered_json;
using testing::ProgramFile;
using testing::TempDir;

Json model_of(const std::string& path) {
  return Json::parse(Pt2Archive::open(path).text("models/model.json"));
}

TEST(PythonText, GuardsArePrintedFromWhatWasUnderstood) {
  const std::pair<const char*, const char*> same[] = {
      {"L['y'].size()[0] == L['x'].size()[0]", "L['y'].size()[0] == L['x'].size()[0]"},
      {"((L['i'][1].size()[1]*L['i'][1].size()[0]) % L['i'][0].size()[0]) == 0",
       "((L['i'][1].size()[1]*L['i'][1].size()[0]) % L['i'][0].size()[0]) == 0"},
      {"2*L['a']['key 1'].stride()[1] + 1 <= 64", "((2*L['a']['key 1'].stride()[1]) + 1) <= 64"},
      {"L['x'].storage_offset() == 0 and not L['x'].size()[0] > 3",
       "(L['x'].storage_offset() == 0) and (not (L['x'].size()[0] > 3))"},
      {"max(1, L['x'].size()[0]) // 2 != 7 or Min(L['x'].size()[0], 3) < 2",
       "((max(1, L['x'].size()[0]) // 2) != 7) or (min(L['x'].size()[0], 3) < 2)"},
      {"L['x'].size()[0]**2 - 1 >= -3", "((L['x'].size()[0]**2) + -1) >= -3"},
  };
  for (const auto& [text, wanted] : same) {
    EXPECT_EQ(rewritten_guard(text), wanted) << text;
    EXPECT_EQ(rewritten_guard(wanted), wanted) << "a fixed point";
  }
}

TEST(PythonText, AnythingElseIsNotWritten) {
  for (const char* text : {
           "__import__('os').system('touch x')",
           "L['x'].size()[0] == __import__('os').system('x')",
           "L['x'].size()[0] == 1), exec(1",
           "exec(L['x'].size()[0])",
           "L['x'].__class__ == 1",
           "L['x'].size().__class__ == 1",
           "L['x\\'].size()[0] == L[', open(\"f\")]",
           "L['x\"+f()+\"'].size()[0] == 1",
           "L['{x}'].size()[0] == 1",
           "L['x'].size()[0] == 1 # comment",
           "L['x'].size()[0] == 1\nimport os",
           "L[open('f')].size()[0] == 1",
           "L['x'].size()[0:1] == 1",
           "L['x'].size()[99999999999999999999] == 1",
           "L['x'].size()[0]9 == 1",
           "aL['x'].size()[0] == 1",
           "_source_7 == 1",
           "x == 1",
           "torch.load == 1",
           "1 if L['x'].size()[0] else 2",
           "lambda: 1",
           "",
           "CeilDiv(L['x'].size()[0], 2) == 1",
       })
    EXPECT_EQ(rewritten_guard(text), std::nullopt) << text;
  std::string deep = "L['x'].size()[0]";
  for (int i = 0; i < 1000; ++i) deep = "(" + deep + " + 1)";
  EXPECT_EQ(rewritten_guard(deep + " == 1"), std::nullopt);
}

TEST(PythonText, GuardsOfAFileThatAreCodeAreDropped) {
  const std::string sound = "L['y'].size()[0] == L['x'].size()[0]",
                    code = "__import__('os').system('touch was_here')";
  ProgramFile program("dynamic_batch");
  program.edit_model([&](Json& m) { m["guards_code"] = Json::array({code, sound}); });
  const TempDir folder;
  const auto module = load(program.write(folder));
  const std::string again = folder.path("again.pt2");
  save_pt2(*module, again);
  EXPECT_EQ(model_of(again).at("guards_code"), Json::array({sound}));
  // By way of an archive of this library too.
  save(*module, folder.path("kept.fxa"));
  save_pt2(*load(folder.path("kept.fxa")), again);
  EXPECT_EQ(model_of(again).at("guards_code"), Json::array({sound}));
}

TEST(PythonText, NamesOfArgumentsAreIdentifiers) {
  const TempDir folder;
  const auto names = [&](const std::string& name) {
    ProgramFile program("dynamic_batch");
    program.edit_model([&](Json& m) {
      m["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] =
          Json::array({"x", name});
    });
    save_pt2(*load(program.write(folder)), folder.path("again.pt2"));
    return model_of(folder.path(
        "again.pt2"))["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"];
  };
  EXPECT_EQ(names("y"), Json::array({"x", "y"}));
  const Json dropped = names("y=print(1)");
  EXPECT_TRUE(dropped.is_null() || dropped.empty()) << dropped;
}

TEST(PythonText, KeywordsAreIdentifiers) {
  const TempDir folder;
  ProgramFile program("keyword_inputs");
  program.replace("models/model.json", "scale\\\\\\\"", "scale=f()\\\\\\\"");
  const auto module = load(program.write(folder));
  testing::expect_import_error(ErrorCode::kNotExportable, {"scale=f()", "identifier"},
                               [&] { save_pt2(*module, folder.path("again.pt2")); });
}

TEST(PythonText, ExpressionsCallFunctionsOfSympyAlone) {
  for (const char* text :
       {"floor(s0/2)", "ToFloat(s0)", "Max(s0, 2*s1) + 1", "OpaqueUnaryFn_sqrt(s0)"})
    EXPECT_EQ(expression_for_python(parse_symbolic_expr(text, "test")),
              parse_symbolic_expr(text, "test").srepr());
  for (const char* text : {"exit(1)", "1 + exec(s0)", "__import__(s0)", "Max(1, open(s0))"})
    testing::expect_import_error(ErrorCode::kUnsupported, {"sympy"},
                                 [&] { expression_for_python(parse_symbolic_expr(text, "test")); });
}

}  // namespace
}  // namespace fx::io
