#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fx/graph/argument.h"

/// Python source for values and paths.
namespace fx::python {

/// Which imports a piece of source needs.
struct Imports {
  bool base64 = false;
  bool math = false;
  bool operator_ = false;
  bool inf = false;
  bool nan = false;
  bool device = false;
};

/// True, False, None and the other keywords of Python 3.
bool is_keyword(std::string_view text);
/// An identifier that is no keyword.
bool is_name(std::string_view text);

/// A string literal; bytes that are no UTF-8 become lone surrogates, as os.fsdecode makes them.
std::string string_literal(std::string_view text);

/// "self.layer1.weight"; atoms that are no names through getattr: `getattr(self.seq, "0")`.
std::string attribute(std::string object, std::string_view path);

/// The source of an argument. Nodes by `node_name`. Everything is executable.
std::string literal(const Argument& argument, Imports& imports,
                    const std::function<std::string(const Node&)>& node_name);

}  // namespace fx::python
