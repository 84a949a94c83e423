#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// BERT's uncased tokenizer: the words of a text, each cut into the longest pieces that the
/// vocabulary has.
///
/// The steps are those of Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers"
/// (2018), in the reading of the library tokenizers (BertNormalizer, BertPreTokenizer, WordPiece),
/// whose results tests/minilm/ holds it to:
/// 1. control characters go, white space of any kind is a space, CJK ideographs are words of their
/// own;
/// 2. canonical decomposition, accents (category Mn) go, lower case;
/// 3. words end at white space; a punctuation mark is a word;
/// 4. a word of more than 100 code points, or one that is not made of pieces, is [UNK].
/// Bytes that are no UTF-8 count as U+FFFD, which step 1 removes. The names of special tokens in a
/// text are these tokens.
class WordPiece {
 public:
  using Ids = std::vector<std::int64_t>;

  /// A vocabulary of one piece a line; the number of a line, from 0, is the id of its piece. Throws
  /// std::runtime_error where the file cannot be read or lacks [UNK], [CLS], [SEP] or [PAD].
  explicit WordPiece(const std::filesystem::path& vocabulary);

  /// [CLS], the pieces of the text, [SEP]; the pieces are cut off where that were more than
  /// `longest` ids. O(length of the text x length of its longest word).
  Ids encode(std::string_view text, std::size_t longest = 512) const;

  std::int64_t padding() const { return padding_; }

  /// The piece of an id. Throws std::out_of_range.
  const std::string& piece(std::int64_t id) const {
    return pieces_.at(static_cast<std::size_t>(id));
  }

 private:
  std::int64_t id_of(const std::string& piece) const;
  /// Appends the ids of a text without special tokens.
  void append_plain(std::string_view text, Ids& ids) const;
  void append_word(const std::u32string& word, Ids& ids) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<std::string> specials_;
  std::int64_t unknown_;
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t padding_;
};
