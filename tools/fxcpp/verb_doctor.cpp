#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "fx/interpret/interpreter.h"
#include "fx/ops/version.h"
#include "tools/fxcpp/verbs.h"

namespace fx::cli {
namespace {

enum class Verdict { kOk, kWarn, kFail };

/// The lines of the report: what was looked at, what was found.
class Findings {
 public:
  explicit Findings(Report& report) : report_(report) { report.json()["checks"] = Json::array(); }

  void add(Verdict verdict, const std::string& subject, const std::string& found) {
    static constexpr std::array kWords = {"OK", "WARN", "FAIL"};
    static constexpr std::array kStyles = {Style::kGood, Style::kWarn, Style::kBad};
    const auto index = static_cast<std::size_t>(verdict);
    table_.add({{kWords[index], kStyles[index]}, subject, found});
    report_.json()["checks"].push_back(
        {{"verdict", kWords[index]}, {"subject", subject}, {"found", found}});
    ++counts_[index];
  }
  bool failed() const { return counts_[2] > 0; }
  void finish() {
    report_.json()["ok"] = counts_[0];
    report_.json()["warnings"] = counts_[1];
    report_.json()["failures"] = counts_[2];
    report_.table("", std::move(table_));
  }

 private:
  Report& report_;
  Table table_{{"", "what", "found"}};
  std::array<std::size_t, 3> counts_ = {0, 0, 0};
};

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

/// "/lib/x/libgomp-a34b3233.so.1.0.0" -> "libgomp": wheels add a hash, systems a version.
std::string library_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find(".so"));
  if (const std::size_t dash = name.rfind('-');
      dash != std::string::npos && name.size() - dash == 9)
    name.resize(dash);
  return name;
}

/// The shared libraries of this process, by name.
std::map<std::string, std::set<std::string>> loaded_libraries() {
  std::map<std::string, std::set<std::string>> libraries;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    if (path.find(".so") != std::string::npos) libraries[library_name(path)].insert(path);
  }
  return libraries;
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

void check_versions(Findings& findings) {
  findings.add(Verdict::kOk, "fxcpp", version() + ", compiled by " + compiler_version());
  const std::string loaded = loaded_torch_version(), compiled = compiled_torch_version();
  if (loaded.empty())
    findings.add(Verdict::kWarn, "LibTorch",
                 "the loaded library does not tell its version; compiled with " + compiled);
  else if (loaded.starts_with(compiled))
    findings.add(Verdict::kOk, "LibTorch", loaded);
  else
    findings.add(Verdict::kFail, "LibTorch",
                 loaded + " is loaded, fxcpp was compiled with " + compiled +
                     ": build fxcpp again, or let LD_LIBRARY_PATH name the other one");
  Dl_info info{};
  const auto address = reinterpret_cast<const void*>(&at::show_config);
  if (dladdr(address, &info) != 0 && info.dli_fname != nullptr)
    findings.add(Verdict::kOk, "LibTorch at", info.dli_fname);
}

void check_machine(Findings& findings) {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  const int cores = known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  findings.add(Verdict::kOk, "CPU", cpu_model());
  findings.add(
      at::get_cpu_capability() == "DEFAULT" ? Verdict::kWarn : Verdict::kOk, "vector code",
      "LibTorch uses " + at::get_cpu_capability() +
          (at::get_cpu_capability() == "DEFAULT" ? ": none; look at ATEN_CPU_CAPABILITY" : ""));
  const int threads = at::get_num_threads();
  findings.add(
      threads > cores ? Verdict::kWarn : Verdict::kOk, "threads",
      std::to_string(threads) + " for " + counted(static_cast<std::size_t>(cores), "core") +
          (threads > cores ? ": more threads than cores are slow; set OMP_NUM_THREADS" : ""));
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    findings.add(Verdict::kOk, "memory",
                 human_bytes(static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)));
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "ATEN_CPU_CAPABILITY",
                           "LD_LIBRARY_PATH", "LD_PRELOAD"})
    if (const char* value = std::getenv(name)) findings.add(Verdict::kOk, name, value);
}

void check_libraries(Findings& findings) {
  const auto libraries = loaded_libraries();
  bool twice = false;
  for (const auto& [name, paths] : libraries) {
    if (paths.size() < 2) continue;
    twice = true;
    findings.add(Verdict::kWarn, "loaded twice", joined(paths));
  }
  if (!twice)
    findings.add(
        Verdict::kOk, "libraries",
        counted(libraries.size(), "shared library")
                .replace(counted(libraries.size(), "shared library").rfind("library"),
                         std::string::npos, libraries.size() == 1 ? "library" : "libraries") +
            ", none of them loaded twice");
  std::set<std::string> openmp;
  for (const char* name : {"libgomp", "libomp", "libiomp5"})
    if (auto it = libraries.find(name); it != libraries.end())
      openmp.insert(it->second.begin(), it->second.end());
  findings.add(
      openmp.size() > 1 ? Verdict::kWarn : Verdict::kOk, "OpenMP",
      openmp.empty()
          ? "none loaded yet"
          : joined(openmp) + (openmp.size() > 1 ? ": two runtimes in one process are slow, or "
                                                  "wrong"
                                                : ""));
}

/// Runs relu(x + 1) on both backends.
void check_execution(Findings& findings) {
  const std::string subject = "self test";
  try {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& sum = graph->call_function("aten::add.Tensor", {x, 1});
    graph->output(graph->call_function("aten::relu", {sum}));
    GraphModule module(std::move(graph));
    const at::Tensor input = at::arange(-4, 4, at::kFloat);
    const at::Tensor wanted = (input + 1).relu();
    const at::Tensor interpreted = Interpreter(module).run({input}).toTensor();
    const at::Tensor planned = module(input).toTensor();
    const bool equal = interpreted.equal(wanted) && planned.equal(wanted);
    findings.add(equal ? Verdict::kOk : Verdict::kFail, subject,
                 equal ? "interpret and plan run relu(x + 1)" : "relu(x + 1) came out wrong");
  } catch (const std::exception& error) {
    findings.add(Verdict::kFail, subject, error.what());
  }
}

}  // namespace

int run_doctor(Args args) {
  Command command(
      "doctor",
      "Looks at this installation and this machine, one OK, WARN or FAIL a line. Put its "
      "output into bug reports.",
      {{"fxcpp doctor", "look"}, {"fxcpp doctor --format md", "for an issue"}});
  if (!command.parse(args)) return 0;
  Report report("doctor");
  report.set_csv("checks");
  Findings findings(report);
  check_versions(findings);
  check_machine(findings);
  check_execution(findings);
  check_libraries(findings);
  findings.finish();
  return command.finish(report, findings.failed() ? ExitCode::kMismatch : ExitCode::kOk);
}

}  // namespace fx::cli
