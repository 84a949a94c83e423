// Sentences in, neighbours out, without Python: a tokenizer in C++, an encoder that Python
// exported, and what Python said about the same sentences beside it.
//
//   example_minilm FOLDER [sentence...]
//
// FOLDER is what scripts/export_minilm.py wrote: minilm.pt2, vocab.txt, expected.json. Sentences of
// one's own are placed among its sentences. The exit status is 1 if ids, embeddings or the order of
// neighbours are not as they should be.

#include <fx/fx.h>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/minilm/wordpiece.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr std::size_t kLongest = 256;  // what the encoder was trained with

/// [sentence, token] int64: ids, and 1 where there is a token.
struct Batch {
  at::Tensor ids;
  at::Tensor mask;
};

Batch batch_of(const WordPiece& tokenizer, const std::vector<std::string>& sentences) {
  std::vector<WordPiece::Ids> rows;
  std::size_t width = 0;
  for (const std::string& sentence : sentences) {
    rows.push_back(tokenizer.encode(sentence, kLongest));
    width = std::max(width, rows.back().size());
  }
  const auto height = static_cast<std::int64_t>(rows.size());
  Batch batch{
      torch::full({height, static_cast<std::int64_t>(width)}, tokenizer.padding(), torch::kInt64),
      torch::zeros({height, static_cast<std::int64_t>(width)}, torch::kInt64)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto size = static_cast<std::int64_t>(rows[i].size());
    batch.ids[row].narrow(0, 0, size).copy_(torch::tensor(rows[i]));
    batch.mask[row].narrow(0, 0, size).fill_(1);
  }
  return batch;
}

void print_neighbours(const std::vector<std::string>& sentences, const at::Tensor& embeddings) {
  const at::Tensor similarity =
      (embeddings.matmul(embeddings.t()) - 2 * torch::eye(embeddings.size(0))).contiguous();
  const auto [best, nearest] = similarity.max(1);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto other = static_cast<std::size_t>(nearest[row].item<std::int64_t>());
    std::printf("  %.2f  %s\n        %s\n", best[row].item<double>(), sentences[i].c_str(),
                sentences[other].c_str());
  }
}

int run(const std::filesystem::path& folder, std::vector<std::string> own) {
  const torch::NoGradGuard no_grad;
  const auto expected = nlohmann::json::parse(std::ifstream(folder / "expected.json"));
  auto sentences = expected.at("sentences").get<std::vector<std::string>>();

  auto start = Clock::now();
  const WordPiece tokenizer(folder / "vocab.txt");
  std::printf("vocabulary read     %7.1f ms\n", milliseconds_since(start));
  start = Clock::now();
  const auto program = fx::load(folder / "minilm.pt2");
  std::printf("minilm.pt2 opened   %7.1f ms, %zu nodes\n", milliseconds_since(start),
              program->graph().size());
  start = Clock::now();
  const Batch batch = batch_of(tokenizer, sentences);
  std::printf("%zu sentences cut   %7.1f ms, %ld tokens at most\n", sentences.size(),
              milliseconds_since(start), static_cast<long>(batch.ids.size(1)));
  start = Clock::now();
  const at::Tensor embeddings = (*program)(batch.ids, batch.mask).toTensor();
  std::printf("embedded            %7.1f ms\n", milliseconds_since(start));
  const auto compiled = fx::compile(program);
  const at::Tensor by_kernels = compiled(batch.ids, batch.mask).toTensor();
  start = Clock::now();
  compiled(batch.ids, batch.mask);
  std::printf("compiled, once more %7.1f ms\n", milliseconds_since(start));

  bool right = true;
  for (std::size_t i = 0; i < sentences.size(); ++i)
    right &= tokenizer.encode(sentences[i]) == expected.at("ids")[i].get<WordPiece::Ids>();
  std::printf("\nids as in Python: %s\n", right ? "all" : "NO");
  std::vector<at::Tensor> rows;
  for (const auto& row : expected.at("embeddings"))
    rows.push_back(torch::tensor(row.get<std::vector<double>>()));
  const at::Tensor python = torch::stack(rows);
  const double error = (embeddings - python).abs().max().item<double>();
  const double compiled_error = (by_kernels - python).abs().max().item<double>();
  std::printf("embeddings differ from Python's by %.1e at most, compiled by %.1e\n", error,
              compiled_error);
  right &= error < 1e-5 && compiled_error < 1e-5;
  // The sentences come in pairs that mean nearly the same.
  const at::Tensor nearest =
      (embeddings.matmul(embeddings.t()) - 2 * torch::eye(embeddings.size(0))).argmax(1);
  for (std::int64_t i = 0; i < nearest.size(0); ++i)
    right &= nearest[i].item<std::int64_t>() == (i ^ 1);

  std::printf("\nEach sentence and the one nearest to it (cosine):\n");
  sentences.insert(sentences.end(), own.begin(), own.end());
  const Batch all = batch_of(tokenizer, sentences);
  print_neighbours(sentences, (*program)(all.ids, all.mask).toTensor());
  std::printf("\n%s\n", right ? "all is as it should be" : "SOMETHING IS NOT AS IT SHOULD BE");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: example_minilm FOLDER [sentence...]   (FOLDER: scripts/export_minilm.py)\n");
    return 2;
  }
  try {
    return run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
