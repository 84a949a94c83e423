#include "fx/capture/symbolic_trace.h"

#include <algorithm>

#include "fx/base/text.h"

namespace fx::detail {

std::vector<std::string> default_input_names(std::size_t count, const TraceOptions& options) {
  if (options.input_names.size() > count)
    throw TraceError(ErrorCode::kConcreteArgs,
                     "found " + std::to_string(options.input_names.size()) +
                         " input names for a function of " + std::to_string(count) + " inputs");
  std::vector<std::string> names = options.input_names;
  constexpr std::string_view kUsual[] = {"x", "y", "z", "w"};
  while (names.size() < count)
    names.push_back(names.size() < std::size(kUsual) ? std::string(kUsual[names.size()])
                                                     : "arg" + std::to_string(names.size()));
  return names;
}

const Argument& concrete_value(const TraceOptions& options, const std::string& name,
                               const Proxy& input, std::string_view type) {
  auto found = options.concrete_args.find(name);
  if (found == options.concrete_args.end())
    throw TraceError(ErrorCode::kConcreteArgs,
                     "input " + str_repr(name) + " is a " + std::string(type) +
                         ", which has no proxy: give its value in TraceOptions::concrete_args");
  const Argument& value = found->second;
  const Proxy same = record_call("operator.eq", {input, TraceArg(value)});
  record_call("torch._assert", {same, TraceArg(name + " has been specialized to have value " +
                                               repr(value) + " but got another value")});
  return value;
}

void check_concrete_args(const TraceOptions& options, const std::vector<std::string>& names) {
  for (const auto& [name, value] : options.concrete_args) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string known;
    for (const std::string& input : names) known += (known.empty() ? "" : ", ") + input;
    throw TraceError(ErrorCode::kConcreteArgs, "there is no input " + str_repr(name) +
                                                   " to specialise, the inputs are: " + known);
  }
}

std::shared_ptr<GraphModule> make_graph_module(const Tracer& tracer, const torch::nn::Module& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name) {
  return std::make_shared<GraphModule>(root, std::move(graph), std::move(class_name),
                                       GraphModule::Share::kAll, tracer.constants());
}

}  // namespace fx::detail
