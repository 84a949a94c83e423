#include "tools/fxcpp/graph_json.h"

#include <cmath>

#include "fx/io/value_meta.h"
#include "tools/fxcpp/model.h"

namespace fx::cli {
namespace {

Json items_json(std::span<const Argument> items) {
  Json list = Json::array();
  for (const Argument& item : items) list.push_back(argument_json(item));
  return list;
}

}  // namespace

Json argument_json(const Argument& argument) {
  using Kind = Argument::Kind;
  switch (argument.kind()) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return argument.to_bool();
    case Kind::kInt:
      return argument.to_int();
    case Kind::kFloat:
      if (!std::isfinite(argument.to_double()))
        return {{"float", json_number(argument.to_double())}};
      return argument.to_double();
    case Kind::kString:
      return argument.to_string();
    case Kind::kNode:
      return {{"node", argument.node().name()}};
    case Kind::kList:
      return items_json(argument.items());
    case Kind::kTuple:
      return {{"tuple", items_json(argument.items())}};
    case Kind::kSlice:
      return {{"slice", items_json(argument.items())}};
    case Kind::kDict: {
      Json pairs = Json::array();
      for (const DictItem& item : argument.dict_items())
        pairs.push_back(Json::array({argument_json(item.first), argument_json(item.second)}));
      return {{"dict", std::move(pairs)}};
    }
    case Kind::kComplex:
      return {{"complex", Json::array({json_number(argument.to_complex().real()),
                                       json_number(argument.to_complex().imag())})}};
    case Kind::kEllipsis:
      return {{"ellipsis", true}};
    case Kind::kDtype:
    case Kind::kDevice:
    case Kind::kLayout:
    case Kind::kMemoryFormat:
      return {{kind_name(argument.kind()), repr(argument)}};
  }
  return nullptr;
}

Json node_json(const Node& node) {
  Json json{{"name", node.name()}, {"op", opcode_name(node.op())}, {"target", node.target().str()}};
  json["args"] = items_json(node.args());
  json["kwargs"] = Json::object();
  for (const KwArg& kwarg : node.kwargs())
    json["kwargs"][kwarg.key.str()] = argument_json(kwarg.value);
  json["users"] = Json::array();
  for (const Node* user : node.users()) json["users"].push_back(user->name());
  if (const auto* meta = node.meta().get<io::ValueMetaPtr>("val"); meta != nullptr && *meta) {
    Json value = signature_json("", *meta, (*meta)->str());
    value.erase("name");
    json.update(value);
  }
  if (!node.type().empty()) json["annotation"] = node.type();
  using ModuleStack = std::vector<std::pair<std::string, std::string>>;
  if (const auto* stack = node.meta().get<ModuleStack>("nn_module_stack");
      stack != nullptr && !stack->empty())
    json["module"] = stack->back().first;
  if (const std::string trace = node.stack_trace(); !trace.empty()) json["stack_trace"] = trace;
  return json;
}

}  // namespace fx::cli
