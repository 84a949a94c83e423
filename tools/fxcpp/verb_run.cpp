#include <ATen/core/Tensor.h>

#include <filesystem>

#include "fx/base/error.h"
#include "fx/io/npy.h"
#include "tools/fxcpp/backend.h"
#include "tools/fxcpp/inputs.h"
#include "tools/fxcpp/model.h"
#include "tools/fxcpp/values.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

namespace fs = std::filesystem;

/// Where each output goes: the file itself for one output, else NAME.npy in a folder.
/// @throws UsageError when several outputs would go into one file, before anything has run.
std::vector<std::string> output_paths(const std::string& target, const Model& model) {
  std::vector<std::string> paths;
  if (target.empty()) return paths;
  std::error_code ignored;
  const bool folder = target.ends_with('/') || fs::is_directory(target, ignored);
  if (!folder && !target.ends_with(".npy"))
    throw UsageError(ErrorCode::kBadOption,
                     "-o '" + target +
                         "' is neither a .npy file nor a folder (end the name "
                         "of a new folder with '/')");
  if (!folder && model.outputs.size() != 1)
    throw UsageError(ErrorCode::kBadOption, "-o '" + target + "' is one file, the model has " +
                                                counted(model.outputs.size(), "output") +
                                                ": give a folder, as in -o out/");
  for (const ModelOutput& output : model.outputs)
    paths.push_back(folder ? (fs::path(target) / (output.name + ".npy")).string() : target);
  return paths;
}

/// @throws ImportError kWriteFailed
void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw ImportError(ErrorCode::kWriteFailed,
                      "cannot make the folder '" + folder + "': " + error.message());
}

}  // namespace

int run_run(Args args) {
  Command command(
      "run", "Runs a model and tells what it returned.",
      {{"fxcpp run model.pt2", "on inputs generated from the signature"},
       {"fxcpp run model.pt2 -i x=@x.npy -o y.npy", "from file to file"},
       {"fxcpp run model.pt2 --dim s0=8", "generated, with a batch of 8"},
       {"fxcpp run model.pt2 -i 'f32[1,3,224,224]:rand(0,1)'", "by position, uniform in [0, 1)"},
       {"fxcpp run model.pt2 --format json | jq .outputs[0].mean", "for a script"}});
  std::string file, output, backend_text = "plan";
  LoadFlags load_flags;
  InputFlags input_flags;
  int threads = 0;
  add_load_options(command, file, load_flags);
  add_input_options(command, input_flags);
  command.app()
      .add_option("-o,--output", output,
                  "write the outputs: a .npy file, or a folder for NAME.npy of each")
      ->type_name("PATH");
  command.app()
      .add_option("--backend", backend_text, "interpret or plan (default: plan)")
      ->type_name("NAME");
  add_threads_option(command, threads);
  if (!command.parse(args)) return 0;
  const Backend backend = backend_from_name(backend_text);
  set_threads(threads);

  const Model model = load_model(file, load_flags);
  const std::vector<std::string> paths = output_paths(output, model);
  const ModelInputs inputs = make_inputs(model, input_flags, command.talk());
  const Values outputs =
      run_backend(*model.module, backend, inputs.clone(), input_flags.seed, command.talk());
  FX_ASSERT(outputs.size() == model.outputs.size(), "a model returned another number of outputs");

  if (output.ends_with('/')) make_folder(output);
  Report report("run");
  Json& json = report.json();
  json["file"] = file;
  json["backend"] = backend_name(backend);
  json["seed"] = input_flags.seed;
  json["symbols"] = Json::object();
  for (const auto& [symbol, size] : inputs.dims) json["symbols"][symbol] = size;
  json["inputs"] = inputs_json(inputs);
  json["outputs"] = Json::array();
  Table table({"output", "dtype", "shape", ">min", ">max", ">mean"});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.outputs[i].name;
    Json entry{{"name", name}};
    entry.update(value_json(outputs[i]));
    const ValueStats stats = stats_of(outputs[i]);
    auto number = [](const std::optional<double>& v) { return v ? short_number(*v) : ""; };
    table.add(
        {name, stats.dtype, stats.shape, number(stats.min), number(stats.max), number(stats.mean)});
    if (!paths.empty() && outputs[i].isTensor()) {
      io::write_npy(paths[i], outputs[i].toTensor());
      entry["file"] = paths[i];
      command.talk().note("wrote " + paths[i]);
    }
    json["outputs"].push_back(std::move(entry));
  }
  report.set_csv("outputs");
  report.table("", std::move(table));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueStats stats = stats_of(outputs[i]);
    const std::string& name = model.outputs[i].name;
    if (stats.nan_count + stats.inf_count > 0)
      report.line({{name + ": " + std::to_string(stats.nan_count) + " NaN and " +
                        std::to_string(stats.inf_count) + " infinite elements",
                    Style::kWarn}});
    if (is_small(outputs[i])) report.line({{name + " = " + to_string(outputs[i])}});
  }
  return command.finish(report);
}

}  // namespace fx::cli
