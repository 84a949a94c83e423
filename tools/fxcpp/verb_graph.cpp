#include "fx/io/atomic_file.h"
#include "tools/fxcpp/graph_text.h"
#include "tools/fxcpp/inputs.h"
#include "tools/fxcpp/model.h"
#include "tools/fxcpp/pipeline.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {

int run_graph(Args args) {
  Command command("graph", "Writes the graph of a model in the form that is asked for.",
                  {{"fxcpp graph model.pt2", "one line a node, as torch.fx prints it"},
                   {"fxcpp graph model.pt2 --format table", "as print_tabular"},
                   {"fxcpp graph model.pt2 --format dot | dot -Tsvg -o g.svg", "a drawing"},
                   {"fxcpp graph model.pt2 -o model.fx", "text that can be read back"},
                   {"fxcpp graph model.pt2 -o model.py", "a Python module that torch.fx traces"},
                   {"fxcpp graph model.pt2 --after fuse_conv_bn,dce", "after these passes"}});
  std::string file, output, pipeline;
  LoadFlags load_flags;
  InputFlags input_flags;
  command.set_formats(graph_formats());
  add_load_options(command, file, load_flags);
  command.app()
      .add_option("-o,--output", output,
                  "write to a file; its name decides the format: " + graph_extensions())
      ->type_name("PATH");
  command.app()
      .add_option("--after", pipeline, "run these passes first (see `fxcpp passes`)")
      ->type_name("PIPELINE");
  add_input_options(command, input_flags);
  if (!command.parse(args)) return 0;

  std::string format = command.format_name();
  if (!command.format_given() && !output.empty()) format = graph_format_of_file(output);
  Model model = load_model(file, load_flags);
  if (!pipeline.empty()) {
    ModelInputs inputs;
    const bool needed = wants_inputs(pipeline);
    if (needed) inputs = make_inputs(model, input_flags, command.talk());
    run_pipeline(model, pipeline, needed ? &inputs : nullptr, command.talk());
  }
  const std::string text = graph_as(format, model);
  if (output.empty()) {
    write_stdout(stdout_is_terminal() ? printable(text) : text);
    return static_cast<int>(ExitCode::kOk);
  }
  io::AtomicFile out(output);
  out.write(text);
  out.commit();
  command.talk().note("wrote " + output + " (" + format + ")");
  if (format == "python")
    command.talk().note("its weights: " + model.module->class_name() +
                        "().load_state_dict(torch.export.load('" + file + "').state_dict)");
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace fx::cli
