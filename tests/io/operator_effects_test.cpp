// What each operator of LibTorch may do when a file asks for it: every one that the policy lets
// through is in the table operator_effects.tsv, which a person looked at.

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "fx/io/operator_policy.h"
#include "fx/ops/effects.h"
#include "fx/ops/schemas.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

constexpr const char* kTable = "tests/io/operator_effects.tsv";

/// "pure", "random", "mutates", "effect" or "external" of an overload, "aten::add.Tensor".
std::string effect_class(const std::string& name) {
  const std::size_t dot = name.find('.', name.find("::"));
  if (OperatorPolicy().refusal(name.substr(0, dot))) return "external";
  const Effects effects = effects_of(*Function::get(name), [](std::string_view) { return true; });
  return effects.other     ? "effect"
         : effects.random  ? "random"
         : effects.mutates ? "mutates"
                           : "pure";
}

/// Line of each operator of the namespaces that files may use: its name without overload, and the
/// overloads of each class.
std::map<std::string, std::string> found_table() {
  std::map<std::string, std::map<std::string, std::string>> classes;
  for (const std::string& name : registered_operators()) {
    const std::size_t dot = name.find('.', name.find("::"));
    const std::string base = name.substr(0, dot);
    const std::string space = base.substr(0, base.find("::"));
    if (OperatorPolicy().refusal(space + "::")) continue;
    classes[base][effect_class(name)] +=
        dot == std::string::npos ? " default" : " " + name.substr(dot + 1);
  }
  std::map<std::string, std::string> lines;
  for (const auto& [base, overloads] : classes) {
    std::string& line = lines[base];
    for (const auto& [kind, names] : overloads) line += "\t" + kind + ":" + names;
  }
  return lines;
}

std::map<std::string, std::string> kept_table() {
  std::map<std::string, std::string> lines;
  std::istringstream in(testing::read_file(testing::source_path(kTable)));
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#'))
      lines[line.substr(0, line.find('\t'))] = line.substr(line.find('\t'));
  return lines;
}

TEST(OperatorEffects, EveryOperatorOfTheDispatcherIsClassed) {
  const auto found = found_table();
  EXPECT_GT(found.size(), 1000u);
  if (std::getenv("FXCPP_UPDATE_OPERATORS") != nullptr) {
    std::ofstream out(testing::source_path(kTable));
    out << "# Operators of the namespaces that files may use, and what each overload does besides "
           "returning values.\n# Written by FXCPP_UPDATE_OPERATORS=1 test_io "
           "--gtest_filter=OperatorEffects.*: look at each new line. `external` is refused in "
           "files.\n";
    for (const auto& [name, line] : found) out << name << line << '\n';
  }
  const auto kept = kept_table();
  for (const auto& [name, line] : found) {
    const auto it = kept.find(name);
    if (it == kept.end())
      ADD_FAILURE() << name << line << " is in no class: does it only compute? (" << kTable << ")";
    else
      EXPECT_EQ(it->second, line) << name << " changed its effects";
  }
}

/// Kinds of types whose values hold more than numbers.
bool is_opaque(const c10::TypePtr& type) {
  using Kind = c10::TypeKind;
  switch (type->kind()) {
    case Kind::StorageType:
    case Kind::StreamObjType:
    case Kind::CapsuleType:
    case Kind::ClassType:
    case Kind::FutureType:
    case Kind::RRefType:
    case Kind::AwaitType:
    case Kind::PyObjectType:
    case Kind::QuantizerType:
    case Kind::InterfaceType:
    case Kind::FunctionType:
      return true;
    default:
      return std::ranges::any_of(type->containedTypes(), is_opaque);
  }
}

TEST(OperatorEffects, OtherFormsOfARefusedOperatorAreRefused) {
  std::vector<std::string> refused, allowed;
  for (const auto& [name, line] : kept_table())
    (line.find("\texternal:") != std::string::npos ? refused : allowed).push_back(name);
  ASSERT_GT(refused.size(), 30u);
  // In place, functional, copying, and behind an underscore: one kernel.
  const auto plain = [](std::string name) {
    name.erase(0, name.find("::") + 2);
    if (name.ends_with("_copy")) name.resize(name.size() - 5);
    while (name.ends_with('_')) name.pop_back();
    return name.substr(name.find_first_not_of('_'));
  };
  for (const std::string& name : allowed)
    for (const std::string& other : refused)
      EXPECT_NE(plain(name), plain(other)) << name << " is allowed, " << other << " is not";
}

/// Operators without tensors and those that take or give objects, which a person looked at: what
/// they ask is harmless, and no file holds a storage.
constexpr std::string_view kKnown[] = {
    "aten::_assert_scalar",
    "aten::_cufft_get_plan_cache_max_size",
    "aten::_cufft_get_plan_cache_size",
    "aten::_nnpack_available",
    "aten::_use_cudnn_rnn_flatten_weight",
    "aten::can_cast",
    "aten::is_vulkan_available",
    "aten::promote_types",
    "aten::quantized_gru",
    "aten::quantized_lstm",
    "aten::result_type",
    "aten::set",
    "aten::set_",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
    "mkldnn::_is_mkldnn_acl_supported",
    "mkldnn::_is_mkldnn_bf16_supported",
    "mkldnn::_is_mkldnn_fp16_supported",
};
/// Namespaces whose weights are packed into objects, by operators of theirs.
constexpr std::string_view kPacked[] = {"_quantized::", "quantized::", "mkldnn_prepacked::"};

TEST(OperatorEffects, WhatTakesOrGivesMoreThanNumbersIsKnown) {
  std::string listed;
  for (const std::string& name : registered_operators()) {
    const std::size_t dot = name.find('.', name.find("::"));
    const std::string base = name.substr(0, dot);
    if (OperatorPolicy().refusal(base) || std::ranges::find(kKnown, base) != std::end(kKnown) ||
        std::ranges::any_of(kPacked,
                            [&](std::string_view space) { return base.starts_with(space); }))
      continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(
        {base, dot == std::string::npos ? "" : name.substr(dot + 1)});
    if (!handle) continue;
    bool opaque = false, tensors = false;
    for (const auto* list : {&handle->schema().arguments(), &handle->schema().returns()})
      for (const c10::Argument& argument : *list) {
        opaque |= is_opaque(argument.type());
        tensors |= argument.type()->str().find("Tensor") != std::string::npos;
      }
    if (opaque || !tensors) listed += name + (opaque ? " opaque" : " no tensor") + "\n";
  }
  EXPECT_EQ(listed, "");
}

}  // namespace
}  // namespace fx::io
