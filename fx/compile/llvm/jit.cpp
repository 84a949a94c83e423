#include "fx/compile/jit.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/compile/llvm/emit.h"
#include "fx/compile/llvm/vector_ops.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

namespace orc = ::llvm::orc;

std::string text_of(::llvm::Error error) { return ::llvm::toString(std::move(error)); }

// FXCPP_VECTOR_BITS=256 in the environment makes code for AVX2 on a processor that has AVX-512. It
// is for tests, and is read once.
bool narrow_wanted() {
  const char* bits = std::getenv("FXCPP_VECTOR_BITS");
  return bits && std::string_view(bits) == "256";
}

// Leaves out what costs more than a third of code generation and does nothing for kernels: their
// addresses are a pointer and a constant as they are written, and the processors reorder
// themselves.
class PassGate : public ::llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(const ::llvm::StringRef name, ::llvm::StringRef) override {
    return name != "Loop Strength Reduction" &&
           name != "Canonicalize Freeze Instructions in Loops" &&
           name != "Machine Instruction Scheduler" &&
           name != "Post RA top-down list latency scheduler";
  }
};

// The module with the kernel `name` in it, ready for code generation.
std::unique_ptr<::llvm::Module> new_module(::llvm::LLVMContext& context,
                                           const ::llvm::DataLayout& layout,
                                           const std::string& triple, const KernelTarget& target,
                                           const Nest& nest, const KernelShape& shape,
                                           const std::string& name) {
  auto module = std::make_unique<::llvm::Module>(name, context);
  module->setDataLayout(layout);
  module->setTargetTriple(triple);
  emit_kernel(*module, nest, shape, target, name);
  std::string message;
  ::llvm::raw_string_ostream stream(message);
  FX_ASSERT(!::llvm::verifyModule(*module, &stream), "the kernel is no valid LLVM: " + message);
  return module;
}

std::string assembly_of(::llvm::Module& module, ::llvm::TargetMachine& machine) {
  ::llvm::SmallString<0> text;
  ::llvm::raw_svector_ostream stream(text);
  ::llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, ::llvm::CodeGenFileType::AssemblyFile))
    throw Unsupported("this target writes no assembly");
  passes.run(module);
  return text.str().str();
}

std::string text_of(const ::llvm::Module& module) {
  std::string text;
  ::llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// A context for one kernel.
std::unique_ptr<::llvm::LLVMContext> new_context() {
  static auto* gate = new PassGate();  // never destroyed, as the compiler itself
  auto context = std::make_unique<::llvm::LLVMContext>();
  context->setOptPassGate(*gate);
  return context;
}

// Target machines: a thread that compiles has one for itself. Making one takes as long as the code
// of a short kernel.
class MachinePool {
 public:
  explicit MachinePool(orc::JITTargetMachineBuilder builder) : builder_(std::move(builder)) {}

  using Machine = std::unique_ptr<::llvm::TargetMachine>;
  ::llvm::Expected<Machine> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return builder_.createTargetMachine();
    Machine machine = std::move(free_.back());
    free_.pop_back();
    return machine;
  }
  void put_back(Machine machine) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(machine));
  }

 private:
  orc::JITTargetMachineBuilder builder_;
  std::mutex mutex_;
  std::vector<Machine> free_;
};

class PooledCompiler : public orc::IRCompileLayer::IRCompiler {
 public:
  PooledCompiler(MachinePool& pool, orc::IRSymbolMapper::ManglingOptions mangling)
      : IRCompiler(mangling), pool_(pool) {}

  ::llvm::Expected<std::unique_ptr<::llvm::MemoryBuffer>> operator()(
      ::llvm::Module& module) override {
    ::llvm::Expected<MachinePool::Machine> machine = pool_.take();
    if (!machine) return machine.takeError();
    auto object = orc::SimpleCompiler(**machine)(module);
    pool_.put_back(std::move(*machine));
    return object;
  }

 private:
  MachinePool& pool_;
};

// The compiler of this process. Never destroyed: code may run until the very end.
class Jit {
 public:
  static Jit& get() {
    static Jit* jit = new Jit();
    return *jit;
  }

  const std::string& problem() const noexcept { return problem_; }
  const KernelTarget& target() const noexcept { return target_; }

  // The module with `name` in it, ready for code generation.
  std::unique_ptr<::llvm::Module> build(::llvm::LLVMContext& context, const Nest& nest,
                                        const KernelShape& shape, const std::string& name) {
    if (!problem_.empty()) throw Unsupported(problem_);
    return new_module(context, jit_->getDataLayout(), jit_->getTargetTriple().str(), target_, nest,
                      shape, name);
  }

  orc::JITDylib& new_library() {
    const std::string name = "kernel" + std::to_string(++count_);
    ::llvm::Expected<orc::JITDylib&> library = jit_->createJITDylib(name);
    if (!library) throw Unsupported("no code can be made: " + text_of(library.takeError()));
    orc::SymbolMap symbols;
    for (const RuntimeSymbol& symbol : runtime_symbols())
      symbols[jit_->mangleAndIntern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                                     ::llvm::JITSymbolFlags::Exported};
    if (::llvm::Error error = library->define(orc::absoluteSymbols(std::move(symbols))))
      throw Unsupported("no code can be made: " + text_of(std::move(error)));
    return *library;
  }

  KernelFunction add(orc::JITDylib& library, orc::ThreadSafeModule module,
                     const std::string& name) {
    if (::llvm::Error error = jit_->addIRModule(library, std::move(module)))
      throw Unsupported("no code can be made: " + text_of(std::move(error)));
    ::llvm::Expected<orc::ExecutorAddr> address = jit_->lookup(library, name);
    if (!address) throw Unsupported("no code can be made: " + text_of(address.takeError()));
    return address->toPtr<KernelFunction>();
  }

  void remove(orc::JITDylib& library) {
    ::llvm::consumeError(jit_->getExecutionSession().removeJITDylib(library));
  }

  std::string assembly(::llvm::Module& module) {
    ::llvm::Expected<std::unique_ptr<::llvm::TargetMachine>> machine =
        builder_->createTargetMachine();
    if (!machine) throw Unsupported(text_of(machine.takeError()));
    return assembly_of(module, **machine);
  }

 private:
  Jit() {
    try {
      start();
    } catch (const Unsupported& e) {
      problem_ = e.what();
    }
  }

  void start() {
    ::llvm::InitializeNativeTarget();
    ::llvm::InitializeNativeTargetAsmPrinter();
    ::llvm::Expected<orc::JITTargetMachineBuilder> builder =
        orc::JITTargetMachineBuilder::detectHost();
    if (!builder)
      throw Unsupported("LLVM does not know this processor: " + text_of(builder.takeError()));
    builder->setCodeGenOptLevel(::llvm::CodeGenOptLevel::Default);
    const ::llvm::StringMap<bool> features = ::llvm::sys::getHostCPUFeatures();
    const auto has = [&](const char* name) { return features.lookup(name); };
    target_.wide = has("avx512f") && has("avx512dq") && has("avx512bw") && has("avx512vl");
    if (target_.wide && narrow_wanted()) {
      target_.wide = false;
      for (const auto& feature : features)
        if (feature.getKey().starts_with("avx512") || feature.getKey() == "evex512")
          builder->getFeatures().AddFeature(feature.getKey(), false);
    }
    if (!target_.wide && !(has("avx2") && has("fma") && has("f16c")))
      throw Unsupported("kernels need a processor with AVX2 and FMA");
    builder_ = std::move(*builder);
    // Threads that compile at once each need a target machine of their own. All work is done by
    // the thread that asks (setSupportConcurrentCompilation would hand it to others, which are not
    // through with code that is gone again).
    orc::LLJITBuilder with;
    with.setJITTargetMachineBuilder(*builder_);
    with.setCompileFunctionCreator(
        [this](orc::JITTargetMachineBuilder machine)
            -> ::llvm::Expected<std::unique_ptr<orc::IRCompileLayer::IRCompiler>> {
          const auto mangling = orc::irManglingOptionsFromTargetOptions(machine.getOptions());
          machines_.emplace(std::move(machine));
          return std::make_unique<PooledCompiler>(*machines_, mangling);
        });
    ::llvm::Expected<std::unique_ptr<orc::LLJIT>> jit = with.create();
    if (!jit) throw Unsupported("no code can be made: " + text_of(jit.takeError()));
    jit_ = std::move(*jit);
  }

  std::string problem_;
  KernelTarget target_;
  std::optional<orc::JITTargetMachineBuilder> builder_;
  std::optional<MachinePool> machines_;
  std::unique_ptr<orc::LLJIT> jit_;
  std::atomic<std::uint64_t> count_{0};
};

class LlvmCode : public KernelCode {
 public:
  LlvmCode(const Nest& nest, const KernelShape& shape) {
    Jit& jit = Jit::get();
    std::unique_ptr<::llvm::LLVMContext> context = new_context();
    const std::string name = "fx_kernel";
    auto module = jit.build(*context, nest, shape, name);
    lanes_ = lanes_of(nest, jit.target());
    columns_ = columns_of(nest);
    library_ = &jit.new_library();
    try {
      function_ =
          jit.add(*library_, orc::ThreadSafeModule(std::move(module), std::move(context)), name);
    } catch (...) {
      jit.remove(*library_);
      throw;
    }
  }
  ~LlvmCode() override { Jit::get().remove(*library_); }

 private:
  orc::JITDylib* library_ = nullptr;
};

std::atomic<std::uint64_t> compilations{0};

// All that code is made of, as bytes: no names, no numbers of inputs.
std::string key_of(const Nest& nest, const KernelShape& shape) {
  std::string key;
  const auto add = [&key](auto value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(nest.num_kept);
  add(nest.axes.size());
  add(shape.lanes_reduced);
  add(shape.outer_reduced);
  add(shape.rows_apart);
  add(shape.interleaved);
  for (std::size_t k = 0; k < nest.operands.size(); ++k) {
    add(nest.operands[k].type);
    add(shape.lane_strides[k]);
    add(nest.operands[k].is_index());
    add(nest.operands[k].gathered.size());
    for (const auto& steps : nest.operands[k].steps_of_axis) add(steps.empty());
  }
  add(nest.values.size());
  for (const NestValue& v : nest.values) {
    add(v.op);
    add(v.type);
    for (ValueId arg : v.args) add(arg);
    add(v.index);
    if (v.op != Op::kConstant) continue;
    add(v.number.isFloatingPoint());
    if (v.number.isFloatingPoint())
      add(v.number.toDouble());
    else
      add(v.number.toLong());
  }
  for (const NestReduction& r : nest.reductions) {
    add(r.reduce);
    add(r.type);
    add(r.input);
  }
  for (const NestScan& scan : nest.scans) {
    add(scan.reduce);
    add(scan.in_order);
  }
  add(nest.scatters);
  add(nest.stores.size());
  for (const NestStore& s : nest.stores) {
    add(s.operand);
    add(s.value);
    for (ValueId index : s.gathered) add(index);
  }
  return key;
}

}  // namespace

const std::string& jit_problem() {
  // More than set-up: a process that may not make code pages fails only when it makes one.
  static const std::string problem = [] {
    if (!Jit::get().problem().empty()) return Jit::get().problem();
    try {
      TensorProgram program;
      const std::int64_t sizes[] = {2};
      const Tensor x = program.input(c10::ScalarType::Float, sizes);
      const Tensor outputs[] = {program.apply(Op::kAdd, {x, x})};
      const Nest nest = build_nest(program, outputs);
      LlvmCode(nest, {.lane_strides = {LaneStride::kUnit, LaneStride::kUnit}});
    } catch (const Unsupported& e) {
      return std::string(e.what());
    }
    return std::string();
  }();
  return problem;
}

std::uint64_t num_compilations() { return compilations.load(); }

std::shared_ptr<const KernelCode> compile_kernel(const Nest& nest, const KernelShape& shape) {
  // Never destroyed, as the compiler itself.
  static auto* mutex = new std::mutex();
  static auto* cache = new std::unordered_map<std::string, std::weak_ptr<const KernelCode>>();
  const std::string key = key_of(nest, shape);
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = cache->find(key); found != cache->end())
      if (auto code = found->second.lock()) return code;
  }
  auto made = std::make_shared<LlvmCode>(nest, shape);
  ++compilations;
  const std::lock_guard lock(*mutex);
  // Those that went are swept now and then, so that the table stays as large as what lives.
  if (cache->size() >= 64 && (cache->size() & (cache->size() - 1)) == 0)
    std::erase_if(*cache, [](const auto& entry) { return entry.second.expired(); });
  auto& slot = (*cache)[key];
  if (auto other = slot.lock()) return other;
  slot = made;
  return made;
}

std::string kernel_text(const Nest& nest, const KernelShape& shape, CodeStage stage) {
  const std::unique_ptr<::llvm::LLVMContext> context = new_context();
  auto module = Jit::get().build(*context, nest, shape, "fx_kernel");
  return stage == CodeStage::kAssembly ? Jit::get().assembly(*module) : text_of(*module);
}

std::string kernel_text(const Nest& nest, const KernelShape& shape, CodeStage stage,
                        const std::string& triple) {
  const ::llvm::Triple parsed(triple);
  if (!parsed.isAArch64())
    throw Unsupported("kernels can be shown for this processor and for aarch64, not for " + triple);
  static const bool started = [] {
    ::llvm::InitializeAllTargetInfos();
    ::llvm::InitializeAllTargets();
    ::llvm::InitializeAllTargetMCs();
    ::llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)started;
  std::string problem;
  const ::llvm::Target* target = ::llvm::TargetRegistry::lookupTarget(parsed.str(), problem);
  if (!target) throw Unsupported("this LLVM makes no code for " + triple + ": " + problem);
  const std::unique_ptr<::llvm::TargetMachine> machine(target->createTargetMachine(
      parsed.str(), "generic", "+neon", ::llvm::TargetOptions(), std::nullopt));
  const std::unique_ptr<::llvm::LLVMContext> context = new_context();
  const auto module = new_module(*context, machine->createDataLayout(), parsed.str(),
                                 {.neon = true}, nest, shape, "fx_kernel");
  return stage == CodeStage::kAssembly ? assembly_of(*module, *machine) : text_of(*module);
}

}  // namespace fx::loops
