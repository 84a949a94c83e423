#include "fx/capture/call_stack.h"

#include <dlfcn.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <exception>
#include <string_view>

namespace fx {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What is below every program: reading line tables of these takes most of a second.
bool is_of_a_library(void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return true;
  const std::string_view path = info.dli_fname;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"libtorch", "libc10", "libc.so", "libstdc++",
                                              "libfxcpp", "libpthread", "ld-linux", "[vdso]"},
      [&](std::string_view name) { return contains(path, name); });
}

// Headers that the compiler put into the program, and this library where it is linked into it.
bool is_foreign_source(std::string_view file) {
  constexpr std::string_view kThisFile = "capture/call_stack.cpp";
  std::string_view library = __FILE__;
  library.remove_suffix(kThisFile.size());
  return file.starts_with(library) ||
         std::ranges::any_of(
             std::initializer_list<std::string_view>{"/include/torch/", "/include/ATen/",
                                                     "/include/c10/", "/include/c++/",
                                                     "/include/fx/", "/c++/v1/"},
             [&](std::string_view part) { return contains(file, part); });
}

std::string shown(const torch::unwind::Frame& frame, bool has_line) {
  const bool has_name = !frame.funcname.empty() && frame.funcname != "??";
  if (!has_line) return has_name ? frame.funcname : std::string();
  return frame.filename + ":" + std::to_string(frame.lineno) +
         (has_name ? " (" + frame.funcname + ")" : std::string());
}

}  // namespace

CallStack CallStack::here() {
  CallStack stack;
  try {
    stack.frames_ = std::make_shared<const std::vector<void*>>(torch::unwind::unwind());
  } catch (const std::exception&) {
    // The unwinder knows not every kind of code: then nothing is known.
  }
  return stack;
}

std::string CallStack::source() const {
  if (!frames_) return {};
  std::vector<void*> own;
  for (void* frame : *frames_)
    if (!is_of_a_library(frame)) own.push_back(frame);
  try {
    std::string without_line;
    for (const torch::unwind::Frame& frame :
         torch::unwind::symbolize(own, torch::unwind::Mode::fast)) {
      // Without debug information the "file" is the executable, and the "line" an offset in it.
      const bool has_line = contains(frame.filename, ".") && !frame.filename.ends_with(".so");
      if (has_line && is_foreign_source(frame.filename)) continue;
      const bool is_own_name =
          frame.funcname.starts_with("fx::") || frame.funcname.starts_with("at::") ||
          frame.funcname.starts_with("torch::") || frame.funcname.starts_with("c10::") ||
          frame.funcname.starts_with("std::");
      if (has_line) return shown(frame, true);
      if (without_line.empty() && !is_own_name) without_line = shown(frame, false);
    }
    return without_line;
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace fx
