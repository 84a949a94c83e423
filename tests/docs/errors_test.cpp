// docs/guide/errors.md: every example ends with the error it is an example of, and the page shows
// its text.

#include <fx/base/error.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/docs/error_examples.h"
#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

std::string label(ErrorCode code) { return "FX" + std::to_string(static_cast<int>(code)); }

/// Text of a Markdown page.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '*') out += '\\';
    out += c;
  }
  return out;
}

/// Machines differ in where the sources are.
std::string without_source_folder(std::string text) {
  const std::string folder = FXCPP_SOURCE_DIR "/";
  for (std::size_t at; (at = text.find(folder)) != std::string::npos;)
    text.erase(at, folder.size());
  return text;
}

TEST(ErrorPage, S0_32_S4_42_every_error_has_a_section_and_examples_end_with_theirs) {
  Page page("guide/errors.md");
  for (std::size_t i = 0; i < num_error_codes(); ++i) {
    const ErrorInfo& info = error_info_at(i);
    EXPECT_NE(page.text().find("### " + label(info.code) + " "), std::string::npos)
        << label(info.code) << ": run scripts/error_page.py";
    EXPECT_TRUE(page.says(escaped(info.advice)))
        << label(info.code) << ": run scripts/error_page.py";
  }
  for (const auto& [number, example] : error_examples()) {
    const std::string name = "FX" + std::to_string(number);
    try {
      example();
      ADD_FAILURE() << name << ": nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(label(error.code()), name) << error.what();
      page.expect_output(name, without_source_folder(error.what()) + "\n");
    }
  }
}

TEST(ErrorPage, S3_33_messages_say_what_to_do_and_name_their_number) {
  for (std::size_t i = 0; i < num_error_codes(); ++i) {
    const ErrorInfo& info = error_info_at(i);
    EXPECT_GE(info.advice.size(), 10u) << info.name;
    const std::string what = Error(info.code, "found that").what();
    EXPECT_EQ(what, "found that. To mend it: " + std::string(info.advice) + ". [" +
                        label(info.code) + "]");
  }
  // Those that come from a node, operator or target name it.
  const std::map<int, std::string> named = {
      {103, "relu"},       {106, "clamp"},      {107, "clamp"},   {112, "scale"},
      {114, "own"},        {153, "mul"},        {154, "relu"},    {157, "average"},
      {201, "%gt"},        {202, "Proxy(x)"},   {203, "%x"},      {301, "y"},
      {303, "scale"},      {304, "mul"},        {305, "layer"},   {306, "mylib"},
      {307, "torch.relu"}, {308, "%matmul : "}, {310, "%add : "}, {501, "csee"},
      {502, "max_byte"}};
  for (const auto& [number, part] : named) {
    try {
      error_examples().at(number)();
      ADD_FAILURE() << number;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fx::docs_test
