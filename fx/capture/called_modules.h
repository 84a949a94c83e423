#pragma once

#include <torch/nn/module.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/capture/tracer.h"

namespace fx {

/// Where in a tree of modules a running program is, as ModuleScopes say. A module that is
/// registered several times is the one below the module that calls it, else the first.
class CalledModules {
 public:
  explicit CalledModules(const torch::nn::Module& root) : root_(root) {}

  void enter(const torch::nn::Module& module);
  void leave() { scopes_.pop_back(); }

  /// The modules around what runs now, outermost first; null outside of all.
  const ModuleStack* stack() const;
  /// The paths of all that were entered.
  std::set<std::string> take_paths() { return std::move(paths_); }

 private:
  void add_paths(const torch::nn::Module& module, const std::string& path);

  const torch::nn::Module& root_;
  std::unordered_map<const torch::nn::Module*, std::vector<std::string>> paths_of_;
  std::unordered_map<std::string, std::string> types_;  // by path
  std::vector<ModuleStack> scopes_;
  std::set<std::string> paths_;
};

}  // namespace fx
