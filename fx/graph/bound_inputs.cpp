#include "fx/graph/bound_inputs.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/call_recorder.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/mutations.h"

namespace fx {
namespace {

bool is_starred(std::string_view target) { return target.starts_with('*'); }

std::string list_names(const std::vector<const InputSignature::Parameter*>& parameters) {
  std::string out;
  for (const auto* parameter : parameters) out += (out.empty() ? "" : ", ") + parameter->target;
  return out;
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace

detail::CallRecorder*& detail::call_recorder() noexcept {
  thread_local CallRecorder* instance = nullptr;
  return instance;
}

InputSignature::InputSignature(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.is_placeholder()) continue;
    Parameter parameter{
        node.target().str(), std::string(node.name()), node.num_args() > 0, {}, &node};
    // A default is a constant; a graph that says otherwise fails when the placeholder runs.
    if (parameter.has_default && !node.args()[0].has_nodes())
      parameter.default_value = value_of(node.args()[0]);
    takes_any_keyword |= parameter.target.starts_with("**");
    takes_any_positional |= is_starred(parameter.target) && !parameter.target.starts_with("**");
    targets.push_back(parameter.target);
    parameters.push_back(std::move(parameter));
  }
}

BoundInputs::BoundInputs(const InputSignature& signature, Values&& args, KwValues&& kwargs,
                         bool strict, const std::function<bool(const Node&)>& skipped) {
  std::vector<const InputSignature::Parameter*> open;
  for (const auto& parameter : signature.parameters)
    if (!is_starred(parameter.target) && !(skipped && skipped(*parameter.node)))
      open.push_back(&parameter);
  if (strict && !signature.takes_any_positional && args.size() > open.size())
    throw RunError(ErrorCode::kExtraInput, "the graph takes " + counted(open.size(), "input") +
                                               " (" + list_names(open) + "), found " +
                                               std::to_string(args.size()));
  for (KwValue& kwarg : kwargs) {
    const auto found = std::find_if(open.begin(), open.end(), [&](const auto* parameter) {
      return kwarg.key == parameter->target || kwarg.key == parameter->name;
    });
    if (found == open.end()) {
      if (signature.takes_any_keyword) continue;
      std::vector<std::string> names;
      for (const auto* parameter : open) names.push_back(parameter->target);
      const std::string likely = nearest(kwarg.key.str(), names);
      throw RunError(ErrorCode::kUnknownInput,
                     "the graph has no input " + str_repr(kwarg.key.str()) +
                         (likely.empty() ? "" : ", did you mean " + str_repr(likely)) +
                         "? Its inputs are (" + list_names(open) + ")");
    }
    // Positional inputs fill the parameters up to the first "*args".
    if (static_cast<std::size_t>(found - open.begin()) < args.size() &&
        !signature.takes_any_positional)
      throw RunError(ErrorCode::kUnknownInput, "the input " + str_repr((*found)->target) +
                                                   " was given by position and by keyword");
    if (!(kwarg.key == (*found)->target)) kwarg.key = Symbol((*found)->target);
  }
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  args.clear();
  kwargs.clear();
}

Value BoundInputs::take(std::string_view target, const Value* default_value) {
  if (target.starts_with("**")) {
    c10::impl::GenericDict rest(c10::StringType::get(), c10::AnyType::get());
    for (KwValue& kwarg : kwargs_) rest.insert(kwarg.key.str(), std::move(kwarg.value));
    kwargs_.clear();
    return rest;
  }
  if (target.starts_with('*')) {
    c10::impl::GenericList rest(c10::AnyType::get());
    for (; next_ < args_.size(); ++next_) rest.push_back(std::move(args_[next_]));
    return rest;
  }
  for (std::size_t i = 0; i < kwargs_.size(); ++i) {
    if (kwargs_[i].key != target) continue;
    Value value = std::move(kwargs_[i].value);
    kwargs_.erase(kwargs_.begin() + static_cast<std::ptrdiff_t>(i));
    return value;
  }
  if (next_ < args_.size()) return std::move(args_[next_++]);
  if (default_value) return *default_value;
  throw RunError(ErrorCode::kMissingInput, "Expected positional argument for parameter " +
                                               std::string(target) +
                                               ", but one was not passed in!");
}

void flatten_inputs(const GraphModule& module, const InputSignature& signature, Values& args,
                    KwValues& kwargs) {
  if (module.in_spec()) {
    c10::impl::GenericDict keywords(c10::StringType::get(), c10::AnyType::get());
    for (KwValue& kwarg : kwargs) keywords.insert(kwarg.key.str(), std::move(kwarg.value));
    Values leaves;
    flatten(
        *module.in_spec(),
        c10::ivalue::Tuple::create(Values{c10::ivalue::Tuple::create(std::move(args)), keywords}),
        leaves);
    args = std::move(leaves);
    kwargs.clear();
  }
  if (!module.input_guards().empty())
    check_inputs(module.input_guards(), signature.targets, args, kwargs);
  if (!module.mutations().empty()) check_mutations(module, signature.targets, args, kwargs);
}

Value unflatten_output(const GraphModule& module, Value output) {
  if (!module.out_spec()) return output;
  Values leaves;
  if (is_sequence(output))
    leaves = elements(output);
  else
    leaves.push_back(std::move(output));
  std::size_t position = 0;
  return unflatten(*module.out_spec(), leaves, position);
}

}  // namespace fx
