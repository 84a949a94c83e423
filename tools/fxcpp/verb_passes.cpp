#include "fx/passes/pass.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

std::string_view kind_name(PassOptionInfo::Kind kind) {
  switch (kind) {
    case PassOptionInfo::Kind::kBool:
      return "bool";
    case PassOptionInfo::Kind::kInt:
      return "int";
    case PassOptionInfo::Kind::kFloat:
      return "float";
    case PassOptionInfo::Kind::kString:
      return "string";
  }
  return "?";
}

Json pass_json(const PassInfo& pass) {
  Json json{{"name", pass.name}, {"summary", pass.summary}, {"options", Json::array()}};
  for (const PassOptionInfo& option : pass.options)
    json["options"].push_back({{"name", option.name},
                               {"kind", kind_name(option.kind)},
                               {"default", option.default_text},
                               {"summary", option.summary}});
  return json;
}

}  // namespace

int run_passes(Args args) {
  Command command("passes", "Lists the passes that --passes takes, or tells all of one.",
                  {{"fxcpp passes", "all of them"},
                   {"fxcpp passes constant_fold", "one, with its options"},
                   {"fxcpp opt m.pt2 --passes 'dce,constant_fold(max_bytes=4096)'", "used"}});
  std::string name;
  command.app().add_option("NAME", name, "one pass");
  if (!command.parse(args)) return 0;

  Report report("passes");
  report.json()["passes"] = Json::array();
  report.set_csv("passes");
  if (!name.empty()) {
    const PassInfo& pass = find_pass(name);
    report.json()["passes"].push_back(pass_json(pass));
    report.heading(std::string(pass.name));
    report.line({{std::string(pass.summary)}});
    Table options({"option", "kind", "default", "meaning"});
    for (const PassOptionInfo& option : pass.options)
      options.add({std::string(option.name), std::string(kind_name(option.kind)),
                   std::string(option.default_text), std::string(option.summary)});
    report.table("options", std::move(options));
    return command.finish(report);
  }
  Table table({"pass", "what it does", "options"});
  for (const PassInfo& pass : all_passes()) {
    std::string options;
    for (const PassOptionInfo& option : pass.options)
      options += (options.empty() ? "" : ", ") + std::string(option.name) + "=" +
                 std::string(option.default_text);
    table.add({{std::string(pass.name), Style::kBold}, std::string(pass.summary), options});
    report.json()["passes"].push_back(pass_json(pass));
  }
  report.table("", std::move(table));
  return command.finish(report);
}

}  // namespace fx::cli
