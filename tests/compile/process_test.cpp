// What compiled code does to the process that it runs in, and the process to it: each test is a
// process of its own.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <locale>
#include <thread>

#include "fx/compile/compile.h"
#include "fx/graph/text.h"

extern char** environ;

namespace fx {
namespace {

constexpr int kForbidCodePages = 65;  // PR_SET_MDWE, Linux 6.3, which older headers lack

at::Tensor program(const at::Tensor& x) {
  const at::Tensor y = torch::tanh(x * 1.5) + 1;
  return torch::softmax(torch::mm(y, x.t()), -1) * torch::sigmoid(y.sum(-1, true)) - 0.25;
}

Compiled compiled_program() {
  return compile([](at::Tensor x) { return program(x); });
}

[[noreturn]] void fail(const std::string& words) {
  std::cerr << words << std::endl;
  std::_Exit(1);
}

void want(bool holds, const char* what) {
  if (!holds) fail(what);
}

// Fails unless the compiled program gives what eager does.
void want_eager(const Compiled& fast, c10::ScalarType type = c10::kFloat) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::linspace(-2, 2, 48 * 40).reshape({48, 40}).to(type);
  const at::Tensor found = fast(x).toTensor();
  want(found.scalar_type() == type && torch::allclose(found, program(x), 1e-5, 1e-5),
       "another result than eager");
}

[[noreturn]] void forbid_code_pages() {
  want(::prctl(kForbidCodePages, 1UL, 0UL, 0UL, 0UL) == 0, "prctl(PR_SET_MDWE) failed");
  const Compiled fast = compiled_program();
  want_eager(fast);
  want_eager(fast, c10::kDouble);
  const std::string words = fast.explain();
  const auto first = words.find("no machine code: ");
  want(first != std::string::npos, "explain() does not say why there is no machine code");
  want(words.find("no machine code: ", first + 1) == std::string::npos, "it says so twice");
  std::exit(0);
}

[[noreturn]] void forbid_code_pages_later() {
  const Compiled fast = compiled_program();
  want_eager(fast);
  want(fast.num_kernel_codes() > 0, "no machine code at first");
  want(::prctl(kForbidCodePages, 1UL, 0UL, 0UL, 0UL) == 0, "prctl(PR_SET_MDWE) failed");
  want_eager(fast);                // code that is there stays
  want_eager(fast, c10::kDouble);  // code that is not there cannot be made
  want_eager(compiled_program());  // code that is there, for another model
  want_eager(compile([](at::Tensor x) { return program(x) * 1.0; }), c10::kDouble);
  std::exit(0);
}

// Of ours: LibTorch's convolutions make some.
[[noreturn]] void look_for_open_pages() {
  want_eager(compiled_program());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    want(line.find(" rwx") == std::string::npos, line.c_str());
  std::exit(0);
}

// Runs `body` in a child of this process, which has to end well in time.
template <typename Body>
void want_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    body();
    std::_Exit(0);
  }
  int status = 0;
  want(::waitpid(child, &status, 0) == child, "no child");
  want(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child did not end well");
}

[[noreturn]] void fork_before_and_after() {
  at::set_num_threads(1);  // threads do not live on in a child
  want_child([] { want_eager(compiled_program()); });
  const Compiled fast = compiled_program();
  want_eager(fast);
  for (int i = 0; i < 5; ++i) {
    want_child([&] { want_eager(fast); });
    want_child([] {
      const Compiled other = compile([](at::Tensor x) { return program(x) + 0.0; });
      want_eager(other);
      want_eager(other, c10::kDouble);
    });
  }
  want_eager(fast);
  std::exit(0);
}

struct Settings {
  std::array<struct sigaction, 65> actions{};
  int rounding = 0;
  unsigned vector_control = 0;
  std::string locale;
  std::string folder;
  std::vector<std::string> environment;

  static Settings now() {
    Settings now;
    for (std::size_t i = 1; i < now.actions.size(); ++i)
      ::sigaction(static_cast<int>(i), nullptr, &now.actions[i]);
    now.rounding = std::fegetround();
    now.vector_control = _mm_getcsr() & ~0x3FU;  // the low bits say which exceptions there were
    now.locale = std::setlocale(LC_ALL, nullptr);
    now.folder = std::filesystem::current_path();
    for (char** variable = environ; *variable; ++variable) now.environment.emplace_back(*variable);
    return now;
  }
  bool operator==(const Settings& other) const {
    for (std::size_t i = 1; i < actions.size(); ++i)
      if (actions[i].sa_handler != other.actions[i].sa_handler ||
          actions[i].sa_flags != other.actions[i].sa_flags)
        return false;
    return rounding == other.rounding && vector_control == other.vector_control &&
           locale == other.locale && folder == other.folder && environment == other.environment;
  }
};

std::atomic<int> alarms{0};

[[noreturn]] void signals_come_in() {
  struct sigaction action{};
  action.sa_handler = [](int) { ++alarms; };
  ::sigaction(SIGALRM, &action, nullptr);
  const Settings before = Settings::now();
  const itimerval every{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &every, nullptr);
  const torch::NoGradGuard no_grad;
  const Compiled fast = compiled_program();
  const at::Tensor x = torch::linspace(-2, 2, 64 * 64).reshape({64, 64});
  const at::Tensor wanted = fast(x).toTensor();
  for (int i = 0; i < 3000 || alarms < 100; ++i)
    want(torch::equal(fast(x).toTensor(), wanted), "a signal changed a result");
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  want(Settings::now() == before, "settings of the process changed");
  std::exit(0);
}

std::string all_stages(const Compiled& fast) {
  std::string text;
  for (const CompileStage& stage : fast.stages()) text += stage.name + "\n" + stage.text + "\n";
  return text;
}

// As in German: 1.234,5.
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

[[noreturn]] void another_locale() {
  const Compiled plain = compiled_program();
  want_eager(plain);
  std::locale::global(std::locale(std::locale::classic(), new Comma));
  const Compiled fast = compiled_program();
  want_eager(fast);
  want(all_stages(fast) == all_stages(plain), "stages depend on the locale");
  const std::string text = to_text(fast.graph_module()->graph(), {.meta = true});
  want(to_text(*parse_text(text), {.meta = true}) == text, "text depends on the locale");
  std::exit(0);
}

[[noreturn]] void small_stack() {
  torch::rand({2, 2});  // LibTorch starts on the large one
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  want(::pthread_attr_setstacksize(&attributes, 256 * 1024) == 0, "no such stack");
  pthread_t thread{};
  const auto body = [](void*) -> void* {
    const Compiled fast = compiled_program();
    want_eager(fast);
    want(fast.num_kernel_codes() > 0, "no machine code");
    return nullptr;
  };
  want(::pthread_create(&thread, &attributes, body, nullptr) == 0, "no thread");
  ::pthread_join(thread, nullptr);
  std::exit(0);
}

// LibTorch takes its operators away on the way out: calls may throw then, not crash.
[[noreturn]] void end_while_threads_run() {
  static const Compiled fast = compiled_program();  // destroyed on the way out
  want_eager(fast);
  static std::atomic<int> calls{0};
  for (int i = 0; i < 4; ++i)
    std::thread([mine = fast] {
      const torch::NoGradGuard no_grad;
      const at::Tensor x = torch::rand({48, 40});
      try {
        for (;; ++calls) mine(x);
      } catch (const std::exception&) {
        for (;;) ::pause();
      }
    }).detach();
  while (calls < 20) std::this_thread::yield();
  std::exit(0);
}

class Process : public testing::Test {
 protected:
  // A child starts this program anew, with the test alone.
  Process() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(Process, that_forbids_new_code_pages_runs_the_plan_and_says_so) {
  EXPECT_EXIT(forbid_code_pages(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, that_forbids_new_code_pages_later_keeps_the_code_that_is_there) {
  EXPECT_EXIT(forbid_code_pages_later(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, has_no_page_that_can_be_written_and_executed) {
  EXPECT_EXIT(look_for_open_pages(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, may_fork_before_and_after_the_first_use) {
  EXPECT_EXIT(fork_before_and_after(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, gets_signals_and_keeps_its_settings) {
  EXPECT_EXIT(signals_come_in(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, may_have_another_locale) {
  EXPECT_EXIT(another_locale(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, may_have_threads_with_small_stacks) {
  EXPECT_EXIT(small_stack(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, may_end_while_threads_run) {
  for (int i = 0; i < 5; ++i) EXPECT_EXIT(end_while_threads_run(), testing::ExitedWithCode(0), "");
}

TEST_F(Process, makes_the_same_code_as_another_process) {
  const Compiled fast = compiled_program();
  want_eager(fast);
  const std::string hash = std::to_string(std::hash<std::string>()(all_stages(fast)));
  EXPECT_EXIT((std::cerr << "stages " << hash, std::exit(0)), testing::ExitedWithCode(0),
              "stages " + hash);
}

}  // namespace
}  // namespace fx
