#include "examples/minilm/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Ids = WordPiece::Ids;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::filesystem::path vocabulary_file(const std::vector<std::string>& pieces) {
  const auto path = std::filesystem::path(testing::TempDir()) / "vocab.txt";
  std::ofstream file(path);
  for (const std::string& piece : pieces) file << piece << '\n';
  return path;
}

WordPiece tokenizer_of(const std::vector<std::string>& pieces) {
  return WordPiece(vocabulary_file(pieces));
}

WordPiece small() {
  return tokenizer_of({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "a", "##a", "e",
                       "!", "##able!"});
}

TEST(WordPiece, cuts_words_into_the_longest_pieces) {
  const WordPiece tokenizer = small();
  EXPECT_THAT(tokenizer.encode("Unaffable!"), ElementsAre(2, 4, 5, 6, 10, 3));
  EXPECT_THAT(tokenizer.encode("aa \u00e9 unable"), ElementsAre(2, 7, 8, 9, 4, 6, 3));
  EXPECT_THAT(tokenizer.encode("unx a"), ElementsAre(2, 1, 7, 3));  // not a part of a word alone
  EXPECT_THAT(tokenizer.encode(""), ElementsAre(2, 3));
  EXPECT_THAT(tokenizer.encode("a[SEP]a"), ElementsAre(2, 7, 3, 7, 3));
  EXPECT_EQ(tokenizer.padding(), 0);
  EXPECT_EQ(tokenizer.piece(6), "##able");
}

TEST(WordPiece, ends_where_it_is_told) {
  const WordPiece tokenizer = small();
  EXPECT_THAT(tokenizer.encode("a a a a", 4), ElementsAre(2, 7, 7, 3));
  EXPECT_THAT(tokenizer.encode("a", 2), ElementsAre(2, 3));
  EXPECT_THROW(tokenizer.encode("a", 1), std::invalid_argument);
}

TEST(WordPiece, bytes_that_are_no_text_are_left_out) {
  const WordPiece tokenizer = small();
  EXPECT_THAT(tokenizer.encode("a\xff\xfe"
                               "a \xc3"),
              ElementsAre(2, 7, 8, 3));
  EXPECT_THAT(tokenizer.encode(std::string("a\0a", 3)), ElementsAre(2, 7, 8, 3));
}

TEST(WordPiece, names_what_a_vocabulary_lacks) {
  EXPECT_THAT([] { tokenizer_of({"[UNK]", "[CLS]", "a"}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("it has no [SEP]")));
  EXPECT_THAT([] { WordPiece("no/such/file"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot read no/such/file")));
}

// Written by scripts/export_wordpiece.py.
TEST(WordPiece, gives_the_ids_of_the_library_tokenizers) {
  const std::filesystem::path root(std::getenv("FXCPP_SOURCE_DIR") ? std::getenv("FXCPP_SOURCE_DIR")
                                                                   : ".");
  const auto document = nlohmann::json::parse(std::ifstream(root / "tests/minilm/wordpiece.json"));
  const WordPiece tokenizer =
      tokenizer_of(document.at("vocabulary").get<std::vector<std::string>>());
  ASSERT_GT(document.at("cases").size(), 50u);
  for (const auto& one : document.at("cases"))
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>()), one.at("ids").get<Ids>())
        << one.at("text");
}

}  // namespace
