#include "fx/base/utf8.h"

#include <gtest/gtest.h>

namespace fx {
namespace {

TEST(Utf8, lengths_of_valid_sequences) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length(std::string_view("\0", 1)), 1u);
  EXPECT_EQ(utf8_length("\xc2\x80"), 2u);
  EXPECT_EQ(utf8_length("π rest"), 2u);
  EXPECT_EQ(utf8_length("\xe0\xa0\x80"), 3u);
  EXPECT_EQ(utf8_length("€"), 3u);
  EXPECT_EQ(utf8_length("\xed\x9f\xbf"), 3u);
  EXPECT_EQ(utf8_length("😀"), 4u);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4u);
}

TEST(Utf8, what_is_none) {
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80",
                          "\xe2\x82", "\xe2(\xa1", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(utf8_length(bad), 0u) << std::hex << +static_cast<unsigned char>(bad[0]);
}

TEST(Utf8, whole_texts) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("größe 😀"));
  EXPECT_FALSE(is_utf8("abc\xff"));
  EXPECT_FALSE(is_utf8("😀\xf0\x9f"));
}

}  // namespace
}  // namespace fx
