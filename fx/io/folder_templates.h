#pragma once

// Internal: the files that to_folder writes. @NAME@ is the name of the module.

namespace fx::io {

inline constexpr const char* kCMakeLists = R"text(cmake_minimum_required(VERSION 3.18)
project(@NAME@ CXX)

# LibTorch: the folder that holds include/ and lib/. -DTORCH_ROOT=..., or that of the active Python.
if(NOT TORCH_ROOT)
  execute_process(
    COMMAND python3 -c "import os, torch; print(os.path.dirname(torch.__file__))"
    OUTPUT_VARIABLE TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_library(TORCH_CPU_LIBRARY torch_cpu HINTS "${TORCH_ROOT}/lib" REQUIRED)
find_library(C10_LIBRARY c10 HINTS "${TORCH_ROOT}/lib" REQUIRED)

add_executable(@NAME@ main.cpp)
target_compile_features(@NAME@ PRIVATE cxx_std_20)
target_include_directories(@NAME@ SYSTEM PRIVATE "${TORCH_ROOT}/include")
target_link_libraries(@NAME@ PRIVATE "${TORCH_CPU_LIBRARY}" "${C10_LIBRARY}")
target_compile_definitions(@NAME@ PRIVATE WEIGHTS_FILE="${CMAKE_CURRENT_SOURCE_DIR}/weights.bin")
)text";

inline constexpr const char* kReadme = R"text(# @NAME@

A graph of fxcpp as a C++ program that needs LibTorch and nothing else.

    cmake -B build -DCMAKE_BUILD_TYPE=Release -DTORCH_ROOT=/path/to/libtorch
    cmake --build build
    build/@NAME@ x.npy -o result.npy

Inputs are given in order: a `.npy` file, `f32[1,3]` for a tensor of ones, or a number. Those that are left out are
ones of the shape that the graph was made for, if it is known.

| file | holds |
| --- | --- |
| `@NAME@.h` | `@NAME@::forward(weights, inputs...)`; include it in one source file |
| `weights.h` | the table of all parameters, buffers and constants, and `load_weights` |
| `weights.bin` | their bytes, little endian, each at a multiple of 64 |
| `main.cpp` | the program |
)text";

inline constexpr const char* kWeightsHeader = R"text(#pragma once

#include <fstream>
#include <stdexcept>

#include <c10/core/GradMode.h>

#include "@NAME@.h"

using @NAME@::Weights;

struct WeightEntry {
  const char* path;
  at::ScalarType type;
  std::vector<std::int64_t> sizes;
  std::int64_t offset;  // in weights.bin
};

inline const std::vector<WeightEntry>& weight_entries() {
  static const std::vector<WeightEntry> entries = {
@TABLE@  };
  return entries;
}

/// Reads weights.bin. Paths that were one tensor are one tensor.
inline Weights load_weights(const std::string& file_name) {
  std::ifstream file(file_name, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + file_name);
  c10::NoGradGuard no_grad;
  std::map<std::int64_t, at::Tensor> by_offset;
  Weights weights;
  for (const WeightEntry& entry : weight_entries()) {
    at::Tensor& tensor = by_offset[entry.offset];
    if (!tensor.defined() || tensor.scalar_type() != entry.type || tensor.sizes() != entry.sizes) {
      tensor = at::empty(entry.sizes, at::TensorOptions().dtype(entry.type));
      file.seekg(entry.offset);
      file.read(static_cast<char*>(tensor.mutable_data_ptr()),
                static_cast<std::streamsize>(tensor.nbytes()));
      if (!file) throw std::runtime_error(file_name + " is too short");
    }
    weights.emplace(entry.path, tensor);
  }
  return weights;
}
)text";

inline constexpr const char* kMainProgram =
    R"text(// Runs the graph: @NAME@ [input...] [-o result.npy]
#include <cstring>
#include <iostream>
#include <sstream>

#include "@WEIGHTS@"

namespace {

struct Input {
  const char* name;
  const char* example;  // empty if nothing is known
};
const std::vector<Input> kInputs = {
@INPUTS@};

struct Type {
  at::ScalarType type;
  const char* short_name;  // f32[2,3]
  const char* npy;         // '<f4'
};
constexpr Type kTypes[] = {
    {at::kFloat, "f32", "<f4"}, {at::kDouble, "f64", "<f8"},  {at::kHalf, "f16", "<f2"},
    {at::kLong, "i64", "<i8"},  {at::kInt, "i32", "<i4"},     {at::kShort, "i16", "<i2"},
    {at::kChar, "i8", "|i1"},   {at::kByte, "u8", "|u1"},     {at::kBool, "bool", "|b1"},
    {at::kBFloat16, "bf16", ""}};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> out;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');)
    if (item.find_first_not_of(' ') != std::string::npos) out.push_back(std::stoll(item));
  return out;
}

// What stands between two marks of the header of an array.
std::string between(const std::string& text, const std::string& from, char to) {
  const std::size_t start = text.find(from);
  if (start == std::string::npos) fail("no array of NumPy");
  const std::size_t first = start + from.size();
  return text.substr(first, text.find(to, first) - first);
}

at::Tensor read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(10, '\0');
  file.read(start.data(), 10);
  if (!file || start.compare(0, 6, "\x93NUMPY") != 0) fail(path + " is no array of NumPy");
  std::size_t size = static_cast<unsigned char>(start[8]) + 256u * static_cast<unsigned char>(start[9]);
  if (start[6] != 1) fail(path + " is of a version that is not read");
  std::string header(size, '\0');
  file.read(header.data(), static_cast<std::streamsize>(size));
  const std::string descr = between(header, "'descr': '", '\'');
  for (const Type& type : kTypes) {
    if (descr != type.npy) continue;
    // Arrays by columns are those by rows with the dimensions in reverse.
    const bool columns = header.find("'fortran_order': True") != std::string::npos;
    std::vector<std::int64_t> sizes = numbers(between(header, "'shape': (", ')'));
    if (columns) sizes.assign(sizes.rbegin(), sizes.rend());
    at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(type.type));
    file.read(static_cast<char*>(tensor.mutable_data_ptr()),
              static_cast<std::streamsize>(tensor.nbytes()));
    if (!file) fail(path + " is too short");
    if (!columns) return tensor;
    std::vector<std::int64_t> order;
    for (std::int64_t dim = tensor.dim(); dim-- > 0;) order.push_back(dim);
    return tensor.permute(order);
  }
  fail(path + " has elements of type " + descr + ", which is not read");
}

void write_npy(const std::string& path, at::Tensor tensor) {
  tensor = tensor.detach().cpu().contiguous();
  if (tensor.scalar_type() == at::kBFloat16) tensor = tensor.to(at::kFloat);
  for (const Type& type : kTypes) {
    if (tensor.scalar_type() != type.type) continue;
    std::string header = "{'descr': '" + std::string(type.npy) + "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t size : tensor.sizes()) header += std::to_string(size) + ",";
    header += "), }";
    header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(header.size() % 256)).put(static_cast<char>(header.size() / 256));
    file << header;
    file.write(static_cast<const char*>(tensor.const_data_ptr()),
               static_cast<std::streamsize>(tensor.nbytes()));
    if (!file.flush()) fail("cannot write " + path);
    return;
  }
  fail("the result has elements that a .npy file cannot hold");
}

template <typename T>
struct Read {
  static T from(const std::string&) { fail("an input of its type cannot be given here"); }
};
template <>
struct Read<at::Tensor> {
  static at::Tensor from(const std::string& text) {
    if (text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0) return read_npy(text);
    for (const Type& type : kTypes)
      if (text.compare(0, std::strlen(type.short_name) + 1, std::string(type.short_name) + "[") == 0)
        return at::ones(numbers(between(text, "[", ']')), at::TensorOptions().dtype(type.type));
    fail("'" + text + "' is no input: x.npy or f32[2,3] is wanted");
  }
};
template <>
struct Read<double> {
  static double from(const std::string& text) { return std::stod(text); }
};
template <>
struct Read<std::int64_t> {
  static std::int64_t from(const std::string& text) { return std::stoll(text); }
};
template <>
struct Read<bool> {
  static bool from(const std::string& text) { return text == "True" || text == "true" || text == "1"; }
};
template <>
struct Read<std::string> {
  static std::string from(const std::string& text) { return text; }
};
template <>
struct Read<std::vector<std::int64_t>> {
  static std::vector<std::int64_t> from(const std::string& text) {
    return numbers(text.find('[') == std::string::npos ? text : between(text, "[", ']'));
  }
};

template <typename Result, typename... Inputs, std::size_t... I>
c10::IValue run(Result (*forward)(const Weights&, Inputs...), const Weights& weights,
                const std::vector<std::string>& inputs, std::index_sequence<I...>) {
  auto input = [&]<typename T>(std::size_t i) {
    try {
      return Read<T>::from(inputs[i]);
    } catch (const std::exception& error) {
      fail(std::string("input ") + kInputs[i].name + ": " + error.what());
    }
  };
  if constexpr (std::is_void_v<Result>) {
    forward(weights, input.template operator()<std::decay_t<Inputs>>(I)...);
    return {};
  } else {
    return forward(weights, input.template operator()<std::decay_t<Inputs>>(I)...);
  }
}
template <typename Result, typename... Inputs>
c10::IValue run(Result (*forward)(const Weights&, Inputs...), const Weights& weights,
                const std::vector<std::string>& inputs) {
  return run(forward, weights, inputs, std::index_sequence_for<Inputs...>());
}

const at::Tensor& first_tensor(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTuple() && !value.toTupleRef().elements().empty())
    return first_tensor(value.toTupleRef().elements()[0]);
  if (value.isList() && !value.toListRef().empty()) return first_tensor(value.toListRef()[0]);
  fail("the result holds no tensor that could be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> inputs;
    std::string output;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "-o") == 0 && i + 1 < argc)
        output = argv[++i];
      else
        inputs.emplace_back(argv[i]);
    }
    if (inputs.size() > kInputs.size()) fail("there are more inputs than the graph has");
    while (inputs.size() < kInputs.size()) {
      const Input& input = kInputs[inputs.size()];
      if (!*input.example) fail(std::string("input ") + input.name + " is missing: x.npy, f32[2,3] or a number");
      inputs.emplace_back(input.example);
    }
    c10::NoGradGuard no_grad;
    const c10::IValue result = run(&@NAME@::forward, load_weights(WEIGHTS_FILE), inputs);
    if (output.empty())
      std::cout << result << "\n";
    else
      write_npy(output, first_tensor(result));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "@NAME@: " << error.what() << "\n";
    return 1;
  }
}
)text";

}  // namespace fx::io
