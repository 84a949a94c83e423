// zoo_report FOLDER: loads, checks, runs and writes again every program of the folder that
// scripts/export_zoo.py made, and says in FOLDER/report.json what came of it. One line a program;
// what is written to FOLDER/again is for Python to run (scripts/zoo_table.py).

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "fx/io/save_module.h"
#include "fx/io/save_pt2.h"

namespace {

using fx::Value;
using fx::Values;
using nlohmann::json;

Value read_value(const std::string& folder, const json& item) {
  if (item.contains("file"))
    return fx::io::read_npy(folder + "/" + item["file"].get<std::string>());
  const json& value = item.at("value");
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

void flatten_value(const Value& value, Values& leaves) {
  if (fx::is_sequence(value)) {
    for (const Value& item : fx::elements(value)) flatten_value(item, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten_value(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

/// Calls the module as its users do, structured, by its program or the Interpreter.
Values call(fx::GraphModule& module, const Values& flat, bool interpret) {
  std::size_t position = 0;
  const Values pair = fx::elements(fx::unflatten(*module.in_spec(), flat, position));
  fx::KwValues kwargs;
  for (const auto& item : pair[1].toGenericDict())
    kwargs.push_back({fx::Symbol(item.key().toStringRef()), item.value()});
  Values leaves;
  if (interpret)
    flatten_value(fx::Interpreter(module).run(fx::elements(pair[0]), {.kwargs = kwargs}), leaves);
  else
    flatten_value(module.forward(fx::elements(pair[0]), kwargs), leaves);
  return leaves;
}

/// Compares with what Python gave; adds to the largest difference.
void compare(const Values& found, const json& outputs, const std::string& folder, const json& entry,
             double& worst) {
  if (found.size() != outputs.size()) throw std::runtime_error("another number of outputs");
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Value wanted = read_value(folder, outputs[i]);
    const std::string what = "output " + std::to_string(i);
    if (!wanted.isTensor()) {
      if (fx::to_string(wanted) != fx::to_string(found[i]))
        throw std::runtime_error(what + " is " + fx::to_string(found[i]));
      continue;
    }
    const at::Tensor &a = found[i].toTensor(), &b = wanted.toTensor();
    if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes())
      throw std::runtime_error(what + " is " + fx::describe(found[i]));
    if (a.numel() > 0 && !a.is_complex())
      worst = std::max(
          worst,
          (a.to(at::kDouble) - b.to(at::kDouble)).nan_to_num(0, 0, 0).abs().max().item<double>());
    if (!at::allclose(a, b, entry.at("rtol").get<double>(), entry.at("atol").get<double>(), true))
      throw std::runtime_error(what + " differs by " + std::to_string(worst));
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

json report(const std::string& folder, const json& entry) {
  const std::string path = folder + "/" + entry.at("file").get<std::string>();
  json row{{"name", entry.at("name")}, {"covers", entry.at("covers")}};
  std::string stage = "load";
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto module = fx::load(path);
    row["load_ms"] =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    row["nodes"] = module->graph().size();
    stage = "lint";
    module->graph().lint({.strict = true});
    stage = "print";
    const std::string text = fx::to_text(module->graph());
    if (fx::to_text(*fx::parse_text(text)) != text)
      throw std::runtime_error("the text reads back differently");
    stage = "save .pt2";
    const std::string again = folder + "/again/" + entry.at("name").get<std::string>();
    fx::save_pt2(*module, again + ".pt2");
    stage = "save .fxa";
    fx::save(*module, again + ".fxa");
    double worst = 0;
    const auto fresh = [&](int kind) {
      return kind < 2 ? fx::load(path) : fx::load(again + (kind == 2 ? ".pt2" : ".fxa"));
    };
    const char* stages[] = {"interpret", "run", "run the .pt2 written", "run the .fxa written"};
    for (int kind = 0; kind < 4; ++kind) {
      stage = stages[kind];
      const auto current = fresh(kind);
      if (kind >= 2 && fx::to_text(current->graph()) != text)
        throw std::runtime_error("the graph is another one");
      for (const json& one : entry.at("calls")) {
        Values inputs;
        for (const json& input : one.at("inputs")) inputs.push_back(read_value(folder, input));
        compare(call(*current, inputs, kind == 0), one.at("outputs"), folder, entry, worst);
      }
    }
    std::filesystem::remove(again + ".fxa");
    row["max_error"] = worst;
    row["state"] = "ok";
  } catch (const std::exception& error) {
    row["state"] = stage;
    row["why"] = first_line(error.what());
    // A list of what is not supported stands below the first line.
    const std::string all = error.what();
    if (const auto item = all.find("\n  - "); item != std::string::npos)
      row["why"] = first_line(all.substr(item + 5));
  }
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: zoo_report FOLDER\n";
    return 2;
  }
  const at::NoGradGuard no_grad;
  at::set_num_threads(1);
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder + "/again");
  const json manifest = json::parse(std::ifstream(folder + "/manifest.json"));
  json rows = json::array();
  for (const json& entry : manifest.at("models")) {
    rows.push_back(report(folder, entry));
    const json& row = rows.back();
    std::cout << row["name"].get<std::string>() << ": " << row["state"].get<std::string>()
              << (row.contains("why") ? ", " + row["why"].get<std::string>() : "") << std::endl;
  }
  std::ofstream(folder + "/report.json")
      << json{{"torch", manifest.at("torch")}, {"rows", rows}}.dump(1) << "\n";
}
