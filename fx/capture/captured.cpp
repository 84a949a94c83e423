#include "fx/capture/captured.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "fx/base/text.h"
#include "fx/capture/graph_module_tracing.h"
#include "fx/capture/program_isolation.h"
#include "fx/graph/module_access.h"

namespace fx {
namespace {

/// What a graph takes for granted of a call besides dtypes, sizes and values, which it checks
/// itself.
struct Conditions {
  struct Input {
    c10::Device device;
    c10::Layout layout;
    bool requires_grad;
    bool contiguous;
    bool channels_last;
    std::vector<std::int64_t> strides;
  };
  struct Attribute {
    const c10::TensorImpl* tensor;
    c10::Device device;
    c10::ScalarType dtype;
    std::vector<std::int64_t> sizes;
    bool requires_grad;
    friend bool operator==(const Attribute&, const Attribute&) = default;
  };
  bool gradients;
  bool inference;
  bool autocast;
  c10::ScalarType autocast_dtype;
  std::vector<Input> inputs;
  std::vector<std::pair<std::string, bool>> training;  // by path
  std::vector<Attribute> attributes;
};

void add_module(const torch::nn::Module& module, const std::string& path, Conditions& out) {
  out.training.emplace_back(path, module.is_training());
  for (const auto* table : {&detail::parameters(module), &detail::buffers(module)})
    for (const auto& item : *table)
      if (const at::Tensor& tensor = item.value(); tensor.defined())
        out.attributes.push_back({tensor.unsafeGetTensorImpl(), tensor.device(),
                                  tensor.scalar_type(), tensor.sizes().vec(),
                                  tensor.requires_grad()});
  for (const auto& child : detail::children(module))
    if (child.value()) add_module(*child.value(), detail::join_path(path, child.key()), out);
}

Conditions conditions_of(const torch::nn::Module& root, const std::vector<at::Tensor>& inputs) {
  Conditions out{at::GradMode::is_enabled(),
                 c10::InferenceMode::is_enabled(),
                 at::autocast::is_autocast_enabled(at::kCPU),
                 at::autocast::get_autocast_dtype(at::kCPU),
                 {},
                 {},
                 {}};
  for (const at::Tensor& input : inputs) {
    const bool strided = input.layout() == at::kStrided;
    out.inputs.push_back(
        {input.device(), input.layout(), input.requires_grad(), strided && input.is_contiguous(),
         strided && input.is_contiguous(input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                                         : at::MemoryFormat::ChannelsLast),
         strided ? input.strides().vec() : std::vector<std::int64_t>()});
  }
  add_module(root, "", out);
  return out;
}

const char* on_or_off(bool on) { return on ? "on" : "off"; }

// The first condition of `then` that does not hold `now`; empty if all do.
std::string broken_condition(const Conditions& then, const Conditions& now,
                             const std::vector<InputGuard>& guards) {
  const auto flag = [](const char* what, bool before, bool after) {
    return std::string(what) + " were " + on_or_off(before) + ", and are " + on_or_off(after);
  };
  if (then.inputs.size() != now.inputs.size())
    return "the graph takes " + std::to_string(then.inputs.size()) + " inputs, the call gives " +
           std::to_string(now.inputs.size());
  if (then.gradients != now.gradients) return flag("gradients", then.gradients, now.gradients);
  if (then.inference != now.inference)
    return flag("inference mode and its like", then.inference, now.inference);
  if (then.autocast != now.autocast || (then.autocast && then.autocast_dtype != now.autocast_dtype))
    return flag("casts of autocast, or are other ones,", then.autocast, now.autocast);
  for (std::size_t i = 0; i < then.inputs.size(); ++i) {
    const Conditions::Input &a = then.inputs[i], &b = now.inputs[i];
    const std::string input = "input " + str_repr(guards[i].input);
    if (a.device != b.device)
      return input + " was on " + a.device.str() + ", and is on " + b.device.str();
    if (a.layout != b.layout) return input + " has another layout";
    if (a.requires_grad != b.requires_grad)
      return input + (b.requires_grad ? " requires gradients, and did not"
                                      : " requires no gradients, and did");
    const bool same_order = (a.contiguous && b.contiguous) || (a.channels_last && b.channels_last);
    if (!same_order && a.strides != b.strides)
      return input + " has another order in memory: it was " +
             (a.contiguous ? "contiguous" : "of other strides");
  }
  if (then.training.size() != now.training.size()) return "the module has other submodules";
  for (std::size_t i = 0; i < then.training.size(); ++i)
    if (then.training[i] != now.training[i])
      return then.training[i].first != now.training[i].first
                 ? "the module has other submodules"
                 : "module " + str_repr(now.training[i].first) + " is in " +
                       (now.training[i].second ? "train" : "eval") + " mode, and was not";
  if (then.attributes != now.attributes)
    return "a parameter or buffer of the module is another tensor, or has another dtype, device or "
           "shape";
  return {};
}

// Whether the exception being handled comes from a check of a value that the program read.
bool is_broken_value(const std::exception& error) {
  if (const auto* run = dynamic_cast<const RunError*>(&error);
      run && run->code() == ErrorCode::kAssertionFailed)
    return true;
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& nested) {
    return is_broken_value(nested);
  } catch (...) {
  }
  return false;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

struct Captured::State {
  struct Entry {
    std::shared_ptr<GraphModule> module;
    Conditions conditions;
    bool effects_before_checks = false;
    bool has_checks = false;
  };
  using Entries = std::vector<std::shared_ptr<const Entry>>;

  WithProgram program;
  CapturedOptions options;
  mutable std::mutex entries_mutex;
  Entries entries;
  std::mutex capture_mutex;  // held while the program is captured

  Entries snapshot() const {
    const std::lock_guard lock(entries_mutex);
    return entries;
  }

  // Runs the first graph that holds. Otherwise says in `why` what broke, of the newest graph.
  std::optional<Value> run_what_holds(const torch::nn::Module& root,
                                      const std::vector<at::Tensor>& inputs, const Conditions& now,
                                      const Entries& known, std::string& why) {
    for (const auto& entry : known) {
      if (std::string broken =
              broken_condition(entry->conditions, now, entry->module->input_guards());
          !broken.empty()) {
        why = std::move(broken);
        continue;
      }
      if (std::string broken = broken_size(*entry, inputs); !broken.empty()) {
        why = std::move(broken);
        continue;
      }
      if (auto result = run_if_values_hold(root, *entry, inputs, why)) return result;
    }
    return std::nullopt;
  }

  static std::string broken_size(const Entry& entry, const std::vector<at::Tensor>& inputs) {
    std::vector<std::string> names;
    for (const InputGuard& guard : entry.module->input_guards()) names.push_back(guard.input);
    try {
      check_inputs(entry.module->input_guards(), names, Values(inputs.begin(), inputs.end()), {});
    } catch (const RunError& error) {
      return error.text();
    }
    return {};
  }

  static std::optional<Value> run_if_values_hold(const torch::nn::Module& root, const Entry& entry,
                                                 const std::vector<at::Tensor>& inputs,
                                                 std::string& why) {
    if (!entry.has_checks) return entry.module->forward(Values(inputs.begin(), inputs.end()));
    try {
      if (entry.effects_before_checks) {
        // What a graph that turns out not to hold has written by then is nobody's to see.
        const ProgramIsolation isolation(root);
        const auto copies = copies_for_run(inputs);
        entry.module->forward(Values(copies.begin(), copies.end()));
      }
      return entry.module->forward(Values(inputs.begin(), inputs.end()));
    } catch (const std::exception& error) {
      if (!is_broken_value(error)) throw;
      const auto* own = dynamic_cast<const Error*>(&error);
      why = first_line(own ? own->text() : error.what());
      return std::nullopt;
    }
  }

  [[noreturn]] void refuse(const std::string& why, const Entries& known) const {
    std::string text = "no graph of this program holds for the call: " + why;
    // The line that read the value.
    for (const auto& entry : known)
      for (const Assumption& each : *entry->module->meta().get<Assumptions>("assumptions"))
        if (each.kind == Assumption::Kind::kValue &&
            why.find(each.text.substr(0, each.text.find(", in %"))) != std::string::npos)
          if (const std::string source = each.where.source();
              !source.empty() && text.find(source) == std::string::npos)
            text += "; read at " + source;
    if (known.size() >= options.limit && options.on_break == CapturedOptions::OnBreak::kCapture)
      text +=
          "; there are " + std::to_string(known.size()) +
          " graphs, as many as CapturedOptions::limit: mark sizes that change as dynamic, raise "
          "the limit, or have calls run the program (AtLimit::kRunProgram)";
    throw RunError(ErrorCode::kAssertionFailed, text);
  }

  Value call(std::vector<at::Tensor> inputs) {
    std::optional<Value> result;
    program([&](const torch::nn::Module& root, const Run& run) {
      const Conditions now = conditions_of(root, inputs);
      std::string why;
      Entries known = snapshot();
      if ((result = run_what_holds(root, inputs, now, known, why))) return;
      std::shared_ptr<const Entry> made;
      {
        const std::lock_guard lock(capture_mutex);
        // Somebody else may have made it meanwhile.
        const std::size_t seen = known.size();
        known = snapshot();
        const Entries fresh(known.begin() + static_cast<std::ptrdiff_t>(seen), known.end());
        if ((result = run_what_holds(root, inputs, now, fresh, why))) return;
        const bool may_capture =
            known.empty() || (options.on_break == CapturedOptions::OnBreak::kCapture &&
                              known.size() < options.limit);
        if (may_capture) {
          made = capture(root, run, inputs, now, known);
        } else if (options.on_break == CapturedOptions::OnBreak::kThrow ||
                   options.at_limit == CapturedOptions::AtLimit::kThrow) {
          refuse(why, known);
        }
      }
      if (!made)
        result = detail::value_of(run(inputs));
      else
        result = made->module->forward(Values(inputs.begin(), inputs.end()));
    });
    return std::move(*result);
  }

  std::shared_ptr<const Entry> capture(const torch::nn::Module& root, const Run& run,
                                       const std::vector<at::Tensor>& inputs, const Conditions& now,
                                       const Entries& known) {
    MakeFxOptions how = options.capture;
    if (options.automatic_dynamic && how.dynamic.empty())
      how.dynamic = changed_sizes(inputs, known);
    auto entry = std::make_shared<Entry>();
    entry->conditions = now;
    const ProgramIsolation isolation(root);
    entry->module = record_program(root, copies_for_run(inputs), how, run);
    const bool* effects = entry->module->meta().get<bool>("effects_before_checks");
    entry->has_checks = effects != nullptr;
    entry->effects_before_checks = effects && *effects;
    const std::lock_guard lock(entries_mutex);
    entries.push_back(entry);
    return entry;
  }

  // Sizes in which the call differs from the newest graph, if only sizes do.
  DynamicSizes changed_sizes(const std::vector<at::Tensor>& inputs, const Entries& known) const {
    DynamicSizes out;
    if (known.empty()) return out;
    const auto& guards = known.back()->module->input_guards();
    if (guards.size() != inputs.size()) return out;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const InputGuard& guard = guards[i];
      if (std::ssize(guard.dims) != inputs[i].dim() || guard.dtype != inputs[i].scalar_type())
        return {};
      for (std::size_t d = 0; d < guard.dims.size(); ++d) {
        const std::int64_t size = inputs[i].size(static_cast<std::int64_t>(d));
        const auto& dim = guard.dims[d];
        if (size == 0 || (dim.size && *dim.size == size)) continue;
        const std::string name =
            dim.size ? "s" + std::to_string(*dim.size) + "_" + std::to_string(size) : dim.symbol;
        out[guard.input].emplace(static_cast<std::int64_t>(d), Dim(name));
      }
    }
    return out;
  }
};

Captured::Captured(WithProgram program, CapturedOptions options)
    : state_(std::make_shared<State>()) {
  state_->program = std::move(program);
  state_->options = std::move(options);
}

Value Captured::call(std::vector<at::Tensor> inputs) { return state_->call(std::move(inputs)); }

std::vector<std::shared_ptr<GraphModule>> Captured::graphs() const {
  std::vector<std::shared_ptr<GraphModule>> out;
  for (const auto& entry : state_->snapshot()) out.push_back(entry->module);
  return out;
}

}  // namespace fx
