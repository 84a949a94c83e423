#pragma once

#include <string>
#include <vector>

#include "tests/interpret/models.h"

namespace fx {

/// Logs the calls of run, run_node and the handlers.
struct CallLog : Interpreter {
  using Interpreter::Interpreter;
  Value run(Values args, RunOptions options) override {
    log.push_back("run");
    return Interpreter::run(std::move(args), std::move(options));
  }
  Value run_node(Node& node) override {
    log.push_back("run_node");
    return Interpreter::run_node(node);
  }
  Value placeholder(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("placeholder(" + std::string(target) + ")");
    return Interpreter::placeholder(target, std::move(args), std::move(kwargs));
  }
  Value get_attr(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("get_attr(" + std::string(target) + ")");
    return Interpreter::get_attr(target, std::move(args), std::move(kwargs));
  }
  Value call_function(const Target& target, Values args, KwValues kwargs) override {
    log.push_back("call_function(" + target.str() + ")");
    return Interpreter::call_function(target, std::move(args), std::move(kwargs));
  }
  Value call_method(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("call_method(" + std::string(target) + ")");
    return Interpreter::call_method(target, std::move(args), std::move(kwargs));
  }
  Value call_module(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("call_module(" + std::string(target) + ")");
    return Interpreter::call_module(target, std::move(args), std::move(kwargs));
  }
  Value output(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("output(" + std::string(target) + ")");
    return Interpreter::output(target, std::move(args), std::move(kwargs));
  }
  std::vector<std::string> log;
};

/// Without the lines of run and run_node.
inline std::vector<std::string> handlers_of(std::vector<std::string> log) {
  std::erase_if(log, [](const std::string& line) { return !line.ends_with(')'); });
  return log;
}

}  // namespace fx
