#include "fx/capture/call_stack.h"

#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace fx {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The executable or library that holds the code, or empty.
std::string library_of(void* address) {
  const auto found = torch::unwind::libraryFor(address);  // dladdr looks at every symbol
  return found ? found->first : std::string();
}

// What is below every program: reading line tables of these takes most of a second.
bool is_below_programs(std::string_view library) {
  return library.empty() || std::ranges::any_of(
                                std::initializer_list<std::string_view>{
                                    "libtorch", "libc10", "libc.so", "libstdc++", "libfxcpp",
                                    "libpthread", "ld-linux", "[vdso]"},
                                [&](std::string_view name) { return contains(library, name); });
}

// The frames of programs among the addresses. Looked up once for each address in a library: that
// takes a millisecond, and the nodes of a graph come from few places.
std::vector<torch::unwind::Frame> frames_of_programs(const std::vector<void*>& addresses) {
  struct Known {
    std::string library;
    torch::unwind::Frame frame;
  };
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<void*, Known>();
  std::vector<void*> wanted, missing;
  std::vector<std::string> libraries;
  const std::lock_guard lock(mutex);
  for (void* address : addresses) {
    std::string library = library_of(address);
    if (is_below_programs(library)) continue;
    wanted.push_back(address);
    const auto found = known.find(address);
    if (found != known.end() && found->second.library == library) continue;
    missing.push_back(address);
    libraries.push_back(std::move(library));
  }
  if (!missing.empty()) {
    const auto frames = torch::unwind::symbolize(missing, torch::unwind::Mode::fast);
    for (std::size_t i = 0; i < missing.size(); ++i)
      known.insert_or_assign(missing[i], Known{libraries[i], frames[i]});
  }
  std::vector<torch::unwind::Frame> out;
  for (void* address : wanted) out.push_back(known.at(address).frame);
  return out;
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
  try {
    std::string without_line;
    for (const torch::unwind::Frame& frame : frames_of_programs(*frames_)) {
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
