#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Running the program fxcpp as a user would.
namespace fx::cli_test {

using Json = nlohmann::ordered_json;

struct ToolResult {
  int status = -1;  ///< exit status; 128 + signal if it was killed
  std::string out;
  std::string err;

  /// stdout as JSON; a failed assertion and null if it is anything else.
  Json json() const;
};

/// Runs FXCPP_TOOL with `args`, no shell in between, and waits for it.
/// @param environment is set in addition to this process's.
ToolResult run_tool(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& environment = {});

/// A folder that is removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& contents) const;
  /// The names in it, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

/// "models/digits.pt2" under the source folder.
std::string source(const std::string& path);
std::string digits();
/// A program of tests/io/zoo, "relu" -> ".../relu.pt2".
std::string zoo(const std::string& name);

}  // namespace fx::cli_test
