#include "tests/cli/tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fx::cli_test {
namespace {

/// What the child does with a descriptor and a file, async-signal-safe.
void redirect(const char* path, int flags, int to) {
  const int fd = open(path, flags, 0600);
  if (fd < 0 || dup2(fd, to) < 0) _exit(127);
  close(fd);
}

}  // namespace

Json ToolResult::json() const {
  Json parsed = Json::parse(out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << "no JSON on stdout:\n" << out << "\nstderr:\n" << err;
  return parsed.is_discarded() ? Json() : parsed;
}

ToolResult run_tool(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& environment) {
  const char* tool = std::getenv("FXCPP_TOOL");
  if (tool == nullptr) throw std::runtime_error("FXCPP_TOOL does not name the program");
  const TemporaryFolder folder;
  const std::string out = folder.file("out"), err = folder.file("err");

  std::vector<std::string> words = {tool};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!environment.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    execve(tool, argv.data(), envp.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  ToolResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "fxcpp_cli_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& contents) const {
  std::ofstream(file(name), std::ios::binary) << contents;
  return file(name);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string source(const std::string& path) { return std::string(FXCPP_SOURCE_DIR "/") + path; }
std::string digits() { return source("models/digits.pt2"); }
std::string zoo(const std::string& name) { return source("tests/io/zoo/" + name + ".pt2"); }

}  // namespace fx::cli_test
