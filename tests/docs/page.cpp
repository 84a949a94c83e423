#include "tests/docs/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace fx::docs_test {
namespace {

std::string docs_folder() { return FXCPP_SOURCE_DIR "/docs/"; }

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::string_view kMarker = "<!-- output: ";

/// Where the contents of the block marked `name` begin and end, or two npos.
std::pair<std::size_t, std::size_t> find_block(const std::string& text, std::string_view name) {
  const std::string marker = std::string(kMarker) + std::string(name) + " -->\n";
  const std::size_t at = text.find(marker);
  if (at == std::string::npos) return {at, at};
  std::size_t begin = text.find("```", at + marker.size());
  if (begin == std::string::npos) return {begin, begin};
  begin = text.find('\n', begin) + 1;
  // An empty block ends where it begins.
  const std::size_t end =
      text.compare(begin, 3, "```") == 0 ? begin : text.find("\n```", begin) + 1;
  return {begin, end};
}

std::string joined_words(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

std::string run_program(const std::string& path) {
  std::FILE* pipe = popen(path.c_str(), "r");
  if (!pipe) return "cannot run " + path;
  std::string out;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe))
    out.append(buffer, size);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << path;
  return out;
}

}  // namespace

Page::Page(std::string path) : path_(std::move(path)), text_(read_file(docs_folder() + path_)) {}

bool Page::says(std::string_view words) const {
  return joined_words(text_).find(joined_words(words)) != std::string::npos;
}

std::vector<std::string> Page::output_names() const {
  std::vector<std::string> names;
  for (std::size_t at = text_.find(kMarker); at != std::string::npos;
       at = text_.find(kMarker, at + 1)) {
    const std::size_t begin = at + kMarker.size();
    names.push_back(text_.substr(begin, text_.find(" -->", begin) - begin));
  }
  return names;
}

std::string Page::output(std::string_view name) const {
  const auto [begin, end] = find_block(text_, name);
  EXPECT_NE(begin, std::string::npos) << path_ << " has no output " << name;
  return begin == std::string::npos ? std::string() : text_.substr(begin, end - begin);
}

void Page::expect_output(std::string_view name, const std::string& printed) {
  if (!std::getenv("FXCPP_UPDATE_DOCS")) {
    EXPECT_EQ(output(name), printed) << path_ << ": the output " << name << " shows something else";
    return;
  }
  if (testing::Test::HasFailure()) return;  // what was printed is not to be trusted
  const auto [begin, end] = find_block(text_, name);
  ASSERT_NE(begin, std::string::npos) << path_ << " has no output " << name;
  text_.replace(begin, end - begin, printed);
  std::ofstream(docs_folder() + path_) << text_;
}

std::vector<std::string> pages_in(const std::string& folder) {
  std::vector<std::string> pages;
  for (const auto& entry : std::filesystem::directory_iterator(docs_folder() + folder))
    if (entry.path().extension() == ".md")
      pages.push_back(folder + "/" + entry.path().filename().string());
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string example_output(const std::string& name, const std::string& section) {
  static std::map<std::string, std::string> outputs;
  auto [entry, fresh] = outputs.try_emplace(name);
  if (fresh) entry->second = run_program(FXCPP_EXAMPLES_DIR "/example_" + name);
  const std::string& all = entry->second;
  if (section.empty()) return all;
  const std::string heading = "== " + section + "\n";
  std::size_t begin = all.find(heading);
  EXPECT_NE(begin, std::string::npos) << "example_" << name << " has no section " << section;
  if (begin == std::string::npos) return {};
  begin += heading.size();
  const std::size_t end = all.find("\n== ", begin - 1);
  return end == std::string::npos ? all.substr(begin) : all.substr(begin, end + 1 - begin);
}

Capture::Capture() { testing::internal::CaptureStdout(); }

Capture::~Capture() {
  if (active_) testing::internal::GetCapturedStdout();
}

std::string Capture::text() {
  active_ = false;
  return testing::internal::GetCapturedStdout();
}

}  // namespace fx::docs_test
