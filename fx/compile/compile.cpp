#include "fx/compile/compile.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <mutex>
#include <set>
#include <type_traits>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/graph_module_tracing.h"
#include "fx/capture/program_isolation.h"
#include "fx/compile/backends.h"
#include "fx/compile/pipeline.h"
#include "fx/graph/module_access.h"
#include "fx/graph/tensor_copies.h"
#include "fx/run/plan_profiler.h"

namespace fx {
namespace {

// Captures of one program for other inputs than these are not made: it runs as it is.
constexpr std::size_t kMaxCaptures = 16;

// What the program may write to.
std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& inputs) {
  TensorCopies copies;
  std::vector<at::Tensor> out;
  for (const at::Tensor& input : inputs) out.push_back(copies(input));
  return out;
}

// What a capture of a program holds for, as bytes: all that a program can ask its inputs and its
// model for, but their contents.
class CaptureKey {
 public:
  CaptureKey(const std::vector<at::Tensor>& inputs, const torch::nn::Module* model) {
    add(at::GradMode::is_enabled());
    add(c10::InferenceMode::is_enabled());
    add(at::autocast::is_autocast_enabled(at::kCPU));
    add(at::autocast::get_autocast_dtype(at::kCPU));
    for (const at::Tensor& tensor : inputs) add_tensor(tensor);
    if (model) add_module(*model);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  template <typename T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void add_tensor(const at::Tensor& tensor) {
    add(tensor.defined());
    if (!tensor.defined()) return;
    add(tensor.scalar_type());
    add(tensor.layout());
    add(tensor.device().type());
    add(tensor.device().index());
    add(tensor.requires_grad());
    add(tensor.dim());
    for (const std::int64_t size : tensor.sizes()) add(size);
    if (tensor.layout() != at::kStrided) return;
    add(tensor.is_contiguous());
    if (tensor.is_contiguous()) return;
    for (const std::int64_t stride : tensor.strides()) add(stride);
  }

  // Parameters and buffers that have been replaced are others, too; the capture keeps its own.
  void add_module(const torch::nn::Module& module) {
    add(module.is_training());
    for (const auto* table : {&detail::parameters(module), &detail::buffers(module)})
      for (const auto& item : *table) {
        add(item.value().unsafeGetTensorImpl());
        add_tensor(item.value());
      }
    add(detail::children(module).size());
    for (const auto& child : detail::children(module))
      if (child.value()) add_module(*child.value());
  }

  std::string text_;
};

}  // namespace

struct Compiled::State {
  CompileOptions options;
  std::shared_ptr<torch::nn::Module> model;
  std::shared_ptr<GraphModule> graph;  // of a graph; else:
  detail::ProgramRun program;

  // Entries are added at the front and never change or go.
  struct Entry {
    std::string key;
    loops::Compilation compilation;  // without `run`: the program runs as it is
    std::unique_ptr<const Entry> next;
  };
  std::atomic<const Entry*> entries{nullptr};
  std::mutex mutex;
  std::atomic<std::uint64_t> compilations{0};

  ~State() {
    std::unique_ptr<const Entry> entry(entries.load());
    while (entry) entry = std::move(const_cast<Entry&>(*entry).next);
  }

  const Entry* find_for(const Values& inputs) const {
    for (const Entry* e = entries.load(std::memory_order_acquire); e; e = e->next.get())
      if (!e->compilation.holds_for || e->compilation.holds_for->hold_for(inputs)) return e;
    return nullptr;
  }
  std::size_t num_entries() const {
    std::size_t count = 0;
    for (const Entry* e = entries.load(std::memory_order_acquire); e; e = e->next.get()) ++count;
    return count;
  }
  const Entry* find(std::string_view key) const {
    for (const Entry* e = entries.load(std::memory_order_acquire); e; e = e->next.get())
      if (e->key == key) return e;
    return nullptr;
  }
  const Entry& publish(std::unique_ptr<Entry> entry) {
    entry->next.reset(entries.load());
    const Entry* made = entry.release();
    entries.store(made, std::memory_order_release);
    return *made;
  }

  Value run_graph(Values inputs, KwValues kwargs);
  Value run_program(Values inputs, KwValues kwargs);
  std::unique_ptr<Entry> capture(const std::string& key, const std::vector<at::Tensor>& inputs);
};

Value Compiled::State::run_graph(Values inputs, KwValues kwargs) {
  // The example run takes positional inputs: calls with keywords wait for one without.
  const Entry* entry = find_for(inputs);
  if (!entry) {
    const std::lock_guard lock(mutex);
    entry = find_for(inputs);
    if (!entry) {
      if (!kwargs.empty() || num_entries() >= kMaxCaptures)
        return graph->forward(std::move(inputs), std::move(kwargs));
      auto made = std::make_unique<Entry>();
      made->compilation = loops::compile_with_backend(loops::share_module(*graph), inputs, options);
      ++compilations;
      entry = &publish(std::move(made));
    }
  }
  return entry->compilation.run(std::move(inputs), std::move(kwargs));
}

std::unique_ptr<Compiled::State::Entry> Compiled::State::capture(
    const std::string& key, const std::vector<at::Tensor>& inputs) {
  auto entry = std::make_unique<Entry>();
  entry->key = key;
  static const torch::nn::Module kNoModule;
  std::shared_ptr<GraphModule> module;
  try {
    const torch::nn::Module& root = model ? *model : kNoModule;
    const ProgramIsolation isolation(root, ProgramIsolation::Of::kBuffers);
    module = record_program(root, copies_of(inputs), {}, program);
  } catch (const TraceError& e) {
    entry->compilation.explanation =
        std::string("the program runs as it is: it cannot be captured: ") + e.what() + "\n";
    return entry;
  }
  if (const auto* assumptions = module->meta().get<Assumptions>("assumptions"))
    for (const Assumption& assumption : *assumptions)
      if (assumption.kind == Assumption::Kind::kValue) {
        entry->compilation.explanation =
            "the program runs as it is: what it does depends on values: " + assumption.text + "\n";
        return entry;
      }
  const Values values(inputs.begin(), inputs.end());
  entry->compilation = loops::compile_with_backend(module, values, options);
  ++compilations;
  return entry;
}

Value Compiled::State::run_program(Values values, KwValues kwargs) {
  if (!kwargs.empty())
    throw RunError(ErrorCode::kUnknownInput, "a compiled C++ program takes no keywords, found " +
                                                 str_repr(kwargs[0].key.str()));
  std::vector<at::Tensor> inputs;
  for (const Value& value : values) {
    if (!value.isTensor())
      throw RunError(ErrorCode::kWrongType,
                     "a compiled C++ program takes tensors, found " + describe(value));
    inputs.push_back(value.toTensor());
  }
  const CaptureKey made_for(inputs, model.get());
  const std::string& key = made_for.text();
  const Entry* entry = find(key);
  if (!entry) {
    const std::lock_guard lock(mutex);
    entry = find(key);
    if (!entry && num_entries() < kMaxCaptures) entry = &publish(capture(key, inputs));
  }
  if (!entry || !entry->compilation.run) return detail::value_of(program(inputs));
  return entry->compilation.run(std::move(values), {});
}

Value Compiled::forward(Values inputs, KwValues kwargs) const {
  if (state_->graph) return state_->run_graph(std::move(inputs), std::move(kwargs));
  return state_->run_program(std::move(inputs), std::move(kwargs));
}

std::uint64_t Compiled::num_compilations() const { return state_->compilations.load(); }

std::uint64_t Compiled::num_kernel_codes() const {
  std::uint64_t count = 0;
  for (const State::Entry* e = state_->entries.load(std::memory_order_acquire); e;
       e = e->next.get())
    for (const auto& kernel : e->compilation.kernels) count += kernel->statistics().codes;
  return count;
}

const std::shared_ptr<torch::nn::Module>& Compiled::model() const { return state_->model; }

std::vector<std::pair<std::string, at::Tensor>> Compiled::state_dict() const {
  if (state_->graph) return state_->graph->state_dict();
  std::vector<std::pair<std::string, at::Tensor>> out;
  if (!state_->model) return out;
  for (const auto& item : state_->model->named_parameters())
    out.emplace_back(item.key(), item.value());
  for (const auto& item : state_->model->named_buffers())
    out.emplace_back(item.key(), item.value());
  return out;
}

std::shared_ptr<GraphModule> Compiled::graph_module() const {
  const State::Entry* entry = state_->entries.load(std::memory_order_acquire);
  return entry ? entry->compilation.module : nullptr;
}

std::string Compiled::explain() const {
  const State::Entry* entry = state_->entries.load(std::memory_order_acquire);
  if (!entry) return "not compiled yet: that happens at the first call\n";
  std::string out = entry->compilation.explanation;
  for (const auto& kernel : entry->compilation.kernels) {
    const loops::FusedKernel::Statistics s = kernel->statistics();
    out += kernel->kernel_name() + ": " + std::to_string(s.kernel_calls) +
           " calls of machine code, " + std::to_string(s.operator_calls) + " of operators, " +
           std::to_string(s.variants) + " variants, " + std::to_string(s.codes) + " pieces of code";
    if (!s.problem.empty()) out += "; " + s.problem;
    out += "\n";
  }
  if (entry->compilation.replay) out += entry->compilation.replay->summary() + "\n";
  return out;
}

std::string Compiled::explain(const Values& inputs) const {
  constexpr int kCalls = 10;
  for (int call = 0; call < 2; ++call) forward(inputs);  // compiles; notes sizes
  PlanProfiler profiler;
  {
    const RunObserver::Scope scope(profiler);
    for (int call = 0; call < kCalls; ++call) forward(inputs);
  }
  if (profiler.rows().empty()) return explain() + "no plan runs, so there are no times of steps\n";
  return explain() + profiler.table(memory_bandwidth());
}

std::vector<CompileStage> Compiled::stages() const {
  std::vector<CompileStage> out;
  const State::Entry* entry = state_->entries.load(std::memory_order_acquire);
  if (!entry) return out;
  for (const CompileStage& stage : entry->compilation.stages) {
    // Kernels stand between the graph that calls them and the plan.
    if (stage.name == "plan") {
      std::string expressions;
      std::string loops;
      std::string llvm;
      std::string assembly;
      std::set<const loops::Kernel*> printed;  // equal groups share theirs
      for (const auto& fused : entry->compilation.kernels)
        for (const loops::Kernel* kernel : fused->kernels()) {
          if (!printed.insert(kernel).second) {
            expressions += fused->kernel_name() + " is " + kernel->nest().name + "\n";
            continue;
          }
          expressions += fused->kernel_name() + "\n" + kernel->program().str();
          loops += kernel->nest().str(kernel->program().shapes());
          llvm += kernel->code_text(loops::CodeStage::kLlvm);
          assembly += kernel->code_text(loops::CodeStage::kAssembly);
        }
      if (!entry->compilation.kernels.empty()) {
        out.push_back({"expressions", std::move(expressions)});
        out.push_back({"loops", std::move(loops)});
        out.push_back({"llvm", std::move(llvm)});
        out.push_back({"assembly", std::move(assembly)});
      }
    }
    out.push_back(stage);
    if (stage.name == "plan" && entry->compilation.replay)
      out.back().text = entry->compilation.replay->str();
  }
  return out;
}

std::vector<CompileStep> Compiled::steps() const {
  const State::Entry* entry = state_->entries.load(std::memory_order_acquire);
  return entry ? entry->compilation.steps : std::vector<CompileStep>();
}

std::string Compiled::stage(std::string_view name) const {
  std::string names;
  for (CompileStage& stage : stages()) {
    if (stage.name == name) return std::move(stage.text);
    names += (names.empty() ? "" : ", ") + stage.name;
  }
  throw CompileError(ErrorCode::kCompileOption,
                     "there is no stage " + str_repr(name) +
                         "; there are: " + (names.empty() ? "none before the first call" : names));
}

Compiled compile(std::shared_ptr<GraphModule> module, CompileOptions options) {
  loops::check_options(options);
  Compiled out;
  out.state_ = std::make_shared<Compiled::State>();
  out.state_->options = std::move(options);
  out.state_->model = module;
  // Of its own, so that later edits do not show before the first call.
  out.state_->graph = loops::share_module(*module);
  return out;
}

Compiled compile(GraphModule& module, CompileOptions options) {
  return compile(std::shared_ptr<GraphModule>(&module, [](GraphModule*) {}), std::move(options));
}

Compiled detail::compile_program(std::shared_ptr<torch::nn::Module> model, ProgramRun run,
                                 CompileOptions options) {
  loops::check_options(options);
  Compiled out;
  out.state_ = std::make_shared<Compiled::State>();
  out.state_->options = std::move(options);
  out.state_->model = std::move(model);
  out.state_->program = std::move(run);
  return out;
}

}  // namespace fx
