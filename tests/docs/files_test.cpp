// docs/guide/files.md

#include <fx/fx.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

/// Runs in a folder of its own, which is removed.
class Files : public testing::Test {
 protected:
  Files() : before_(std::filesystem::current_path()) {
    folder_ = std::filesystem::temp_directory_path() / "fxcpp-files-page";
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  ~Files() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path before_, folder_;
};

TEST_F(Files, a_program_is_changed_and_written) {
  Page page("guide/files.md");
  const std::string models = FXCPP_SOURCE_DIR "/models";
  Capture captured;
  // [edit]
  auto gm = fx::load(models + "/digits.pt2");
  for (fx::Node* node : gm->graph().find_calls("aten::relu")) node->set_target("aten::silu");
  gm->recompile();
  fx::save(*gm, "edited.pt2");
  std::cout << fx::load("edited.pt2")->graph().find_calls("aten::silu").size()
            << " calls of silu\n";
  // [end]
  page.expect_output("edit", captured.text());
}

TEST_F(Files, a_traced_graph_needs_examples) {
  // [traced]
  auto gm = fx::symbolic_trace([](auto x) { return relu(x) * 2; });
  fx::save_pt2(*gm, "double.pt2", {.example_inputs = {torch::ones({3})}});
  // [end]
  EXPECT_TRUE(
      at::equal((*fx::load("double.pt2"))(torch::ones({3})).toTensor(), torch::full({3}, 2.0)));
}

TEST_F(Files, weights_are_replaced) {
  const std::string models = FXCPP_SOURCE_DIR "/models";
  // [weights]
  auto gm = fx::load(models + "/digits.pt2");
  fx::save_safetensors(gm->state_dict(), "weights.safetensors");

  fx::Safetensors file = fx::load_safetensors("weights.safetensors");
  fx::assign_state_dict(*gm, file.tensors);
  // [end]
  EXPECT_EQ(gm->find_tensor("conv1.weight").data_ptr(),
            std::ranges::find(file.tensors, "conv1.weight", &NamedTensors::value_type::first)
                ->second.data_ptr());
}

}  // namespace
}  // namespace fx::docs_test
