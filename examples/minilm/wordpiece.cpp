#include "examples/minilm/wordpiece.h"

#include <utf8proc.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <stdexcept>

namespace {

constexpr std::size_t kLongestWord = 100;  // code points
constexpr char32_t kReplacement = 0xFFFD;

std::u32string code_points(std::string_view text) {
  std::u32string points;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t point = 0;
    auto used = utf8proc_iterate(at, left, &point);
    if (used <= 0) {
      point = static_cast<utf8proc_int32_t>(kReplacement);
      used = 1;
    }
    points.push_back(static_cast<char32_t>(point));
    at += used;
    left -= used;
  }
  return points;
}

std::string utf8(std::u32string_view points) {
  std::string text;
  for (const char32_t point : points) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
  }
  return text;
}

utf8proc_category_t category(char32_t point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(point));
}

bool is_control(char32_t point) {
  if (point == '\t' || point == '\n' || point == '\r') return false;
  const auto kind = category(point);
  return kind == UTF8PROC_CATEGORY_CN ||
         (kind >= UTF8PROC_CATEGORY_CC && kind <= UTF8PROC_CATEGORY_CO);
}

bool is_space(char32_t point) {
  if (point == '\t' || point == '\n' || point == '\r') return true;
  const auto kind = category(point);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

// ASCII's symbols count as punctuation here, which Unicode's categories do not say.
bool is_punctuation(char32_t point) {
  if ((point >= 33 && point <= 47) || (point >= 58 && point <= 64) ||
      (point >= 91 && point <= 96) || (point >= 123 && point <= 126))
    return true;
  const auto kind = category(point);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_ideograph(char32_t point) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  static constexpr std::array<Range, 8> kRanges{{{0x4E00, 0x9FFF},
                                                 {0x3400, 0x4DBF},
                                                 {0x20000, 0x2A6DF},
                                                 {0x2A700, 0x2B73F},
                                                 {0x2B740, 0x2B81F},
                                                 {0x2B920, 0x2CEAF},
                                                 {0xF900, 0xFAFF},
                                                 {0x2F800, 0x2FA1F}}};
  for (const Range& range : kRanges)
    if (point >= range.first && point <= range.last) return true;
  return false;
}

std::u32string decomposed(const std::u32string& text) {
  std::vector<utf8proc_int32_t> points(text.begin(), text.end());
  // Hangul syllables become three letters; no canonical decomposition has more than four.
  std::vector<utf8proc_int32_t> result;
  std::array<utf8proc_int32_t, 32> parts{};
  for (const utf8proc_int32_t point : points) {
    int last_class = UTF8PROC_BOUNDCLASS_START;
    const auto count =
        utf8proc_decompose_char(point, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                                static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), &last_class);
    if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size()))
      result.push_back(point);
    else
      result.insert(result.end(), parts.begin(), parts.begin() + count);
  }
  return {result.begin(), result.end()};
}

// Steps 1 and 2. The order of the marks that stay may differ from NFD's; all marks of category Mn
// go.
std::u32string normalized(std::string_view text) {
  std::u32string clean;
  for (const char32_t point : code_points(text)) {
    if (point == 0 || point == kReplacement || is_control(point)) continue;
    if (is_space(point)) {
      clean.push_back(' ');
    } else if (is_ideograph(point)) {
      clean.append({' ', point, ' '});
    } else {
      clean.push_back(point);
    }
  }
  std::u32string lower;
  for (const char32_t point : decomposed(clean))
    if (category(point) != UTF8PROC_CATEGORY_MN)
      lower.push_back(
          static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
  return lower;
}

}  // namespace

WordPiece::WordPiece(const std::filesystem::path& vocabulary) {
  std::ifstream file(vocabulary);
  if (!file) throw std::runtime_error("vocabulary: cannot read " + vocabulary.string());
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    ids_.emplace(line, static_cast<std::int64_t>(pieces_.size()));
    pieces_.push_back(line);
  }
  unknown_ = id_of("[UNK]");
  first_ = id_of("[CLS]");
  last_ = id_of("[SEP]");
  padding_ = id_of("[PAD]");
  for (const char* name : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"})
    if (ids_.contains(name)) specials_.emplace_back(name);
}

std::int64_t WordPiece::id_of(const std::string& piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end())
    throw std::runtime_error("vocabulary: it has no " + piece +
                             "; is it one of BERT's (vocab.txt)?");
  return found->second;
}

WordPiece::Ids WordPiece::encode(std::string_view text, std::size_t longest) const {
  if (longest < 2)
    throw std::invalid_argument("encode: [CLS] and [SEP] need 2 ids, longest is less");
  Ids ids{first_};
  while (!text.empty()) {
    // The special token that comes first in what is left.
    std::size_t at = text.size();
    const std::string* special = nullptr;
    for (const std::string& name : specials_) {
      const std::size_t found = text.find(name);
      if (found < at) {
        at = found;
        special = &name;
      }
    }
    append_plain(text.substr(0, at), ids);
    if (!special) break;
    ids.push_back(ids_.at(*special));
    text.remove_prefix(at + special->size());
  }
  if (ids.size() > longest - 1) ids.resize(longest - 1);
  ids.push_back(last_);
  return ids;
}

void WordPiece::append_plain(std::string_view text, Ids& ids) const {
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) append_word(word, ids);
    word.clear();
  };
  for (const char32_t point : normalized(text)) {
    if (is_space(point)) {
      end_word();
    } else if (is_punctuation(point)) {
      end_word();
      append_word(std::u32string(1, point), ids);
    } else {
      word.push_back(point);
    }
  }
  end_word();
}

void WordPiece::append_word(const std::u32string& word, Ids& ids) const {
  const std::size_t before = ids.size();
  std::size_t begin = 0;
  while (begin < word.size() && word.size() <= kLongestWord) {
    std::size_t end = word.size();
    auto found = ids_.end();
    for (; end > begin; --end) {
      const std::string piece = utf8(std::u32string_view(word).substr(begin, end - begin));
      found = ids_.find(begin ? "##" + piece : piece);
      if (found != ids_.end()) break;
    }
    if (end == begin) break;
    ids.push_back(found->second);
    begin = end;
  }
  if (begin == word.size()) return;
  ids.resize(before);
  ids.push_back(unknown_);
}
