// Compiled models give back what they take: memory, machine code, mappings. FXCPP_SOAK_CALLS
// chooses how many calls there are, FXCPP_SOAK_MODELS how many models.
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fx/compile/compile.h"

namespace fx {
namespace {

std::int64_t number(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

std::int64_t live_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

struct Maps {
  std::int64_t executable_bytes = 0;
  std::int64_t lines = 0;

  static Maps now() {
    Maps maps;
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line); ++maps.lines) {
      unsigned long begin = 0;
      unsigned long end = 0;
      char rights[5] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3 && rights[2] == 'x')
        maps.executable_bytes += static_cast<std::int64_t>(end - begin);
    }
    return maps;
  }
};

// Another program each time, so that no code of an earlier one serves it.
Compiled program(std::int64_t number, const char* mode) {
  return compile(
      [number](at::Tensor x) {
        at::Tensor y = torch::tanh(x * (1.5 + static_cast<double>(number))) + 1;
        for (std::int64_t i = 0; i < number % 5; ++i) y = torch::sigmoid(y) * x;
        return torch::mm(y, x).exp().sum(-1);
      },
      {.mode = mode});
}

TEST(CompileSoak, models_give_back_their_code) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::rand({6, 6});
  const std::int64_t models = number("FXCPP_SOAK_MODELS", 40);
  const auto make = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const Compiled fast = program(i, i % 2 ? "reduce-overhead" : "default");
      for (int call = 0; call < 3; ++call) fast(x);
    }
  };
  make(0, models / 2);
  const Maps before = Maps::now();
  const std::int64_t live = live_bytes();
  make(models / 2, models / 2 + models);
  const Maps after = Maps::now();
  const std::int64_t grown = live_bytes() - live;
  std::cout << models << " models: executable bytes " << before.executable_bytes << " -> "
            << after.executable_bytes << ", mappings " << before.lines << " -> " << after.lines
            << ", live bytes " << grown << " more\n";
  EXPECT_EQ(after.executable_bytes, before.executable_bytes);
  EXPECT_LE(after.lines, before.lines + 2);
  EXPECT_LE(grown, models * 1024);
  // The numbers can change: code of models that live is seen.
  std::vector<Compiled> kept;
  for (int i = 0; i < 10; ++i) {
    kept.push_back(program(i, "default"));
    kept.back()(x);
  }
  EXPECT_GT(Maps::now().executable_bytes, after.executable_bytes);
  kept.clear();
  EXPECT_EQ(Maps::now().executable_bytes, after.executable_bytes);
}

TEST(CompileSoak, calls_leave_nothing) {
  const torch::NoGradGuard no_grad;
  const std::int64_t calls = number("FXCPP_SOAK_CALLS", 10000);
  const at::Tensor inputs[] = {torch::rand({6, 6}), torch::rand({9, 9}), torch::rand({1, 1})};
  for (const char* mode : {"default", "reduce-overhead"}) {
    const Compiled fast = program(3, mode);
    const auto run = [&](std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) fast(inputs[i % 3]);
    };
    run(calls / 10 + 10);
    const std::int64_t live = live_bytes();
    const Maps before = Maps::now();
    run(calls);
    std::cout << mode << ": " << calls << " calls, live bytes " << live << " -> " << live_bytes()
              << "\n";
    EXPECT_LE(live_bytes() - live, 8192);
    EXPECT_EQ(Maps::now().executable_bytes, before.executable_bytes);
  }
}

}  // namespace
}  // namespace fx
