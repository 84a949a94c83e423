#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The grammar in which inputs are written on the command line (docs/cli.md):
///
///     input  = [NAME "="] ("@" PATH | tensor | scalar)
///     tensor = DTYPE "[" [dim {"," dim}] "]" [":" fill]
///     dim    = INTEGER | SYMBOL
///     fill   = "zeros" | "ones" | "randn" | "rand" ["(" lo "," hi ")"] | "randint(" lo "," hi ")"
///            | "full(" value ")" | value {"," value}
///     scalar = INTEGER | FLOAT | "true" | "false" | "none" | '"' text '"'
namespace fx::cli {

/// Values of symbols, by name.
using Dims = std::map<std::string, std::int64_t, std::less<>>;

/// A tensor to be made. `at` members are byte offsets into InputSpec::text, for messages.
struct TensorSpec {
  enum class Fill : std::uint8_t {
    kDefault,  ///< none written: as inputs that are not given are generated
    kZeros,
    kOnes,
    kRandn,
    kRand,     ///< uniform in [lo, hi)
    kRandint,  ///< uniform integers in [lo, hi)
    kFull,     ///< values[0] everywhere
    kValues,
  };
  struct Dim {
    std::int64_t value = 0;
    std::string symbol;  ///< empty for a number
    std::size_t at = 0;
  };
  at::ScalarType dtype = at::kFloat;
  std::vector<Dim> dims;
  Fill fill = Fill::kDefault;
  std::size_t fill_at = 0;
  double lo = 0;
  double hi = 1;
  std::int64_t int_lo = 0;
  std::int64_t int_hi = 2;
  std::vector<c10::Scalar> values;
};

/// One input as it was written.
struct InputSpec {
  struct File {
    std::string path;
  };
  /// int, float, bool, string or none: an input that is no tensor.
  struct Scalar {
    std::variant<std::monostate, std::int64_t, double, bool, std::string> value;
  };
  std::string text;
  std::string name;  ///< empty: bound by position
  std::variant<File, TensorSpec, Scalar> value;
};

/// @throws UsageError kBadInputSpec with the text and a caret under the place.
InputSpec parse_input_spec(std::string_view text);

/// The sizes with symbols replaced by their values.
/// @throws UsageError kBadInputSpec for a symbol without a value.
std::vector<std::int64_t> resolve_sizes(const InputSpec& spec, const TensorSpec& tensor,
                                        const Dims& dims);

/// Makes the tensor; random fills depend on `seed` alone. O(elements).
/// @throws UsageError kBadInputSpec when the number of values is not that of elements, or the
/// tensor does not fit into memory.
at::Tensor make_tensor(const InputSpec& spec, const TensorSpec& tensor,
                       std::vector<std::int64_t> sizes, std::uint64_t seed);

/// What inputs of `dtype` are filled with when nothing is said: randn for floating and complex
/// types, randint(0, 2) for the others (indices stay valid, masks are mixed).
TensorSpec::Fill default_fill(at::ScalarType dtype);
/// "randn", "randint(0, 2)".
std::string_view default_fill_name(at::ScalarType dtype);

/// The names of one dtype are its short name ("f32") and torch's ("float32", "half"). Nothing for
/// an unknown name.
std::optional<at::ScalarType> dtype_from_name(std::string_view name);

/// SYMBOL=SIZE, the value of --dim.
/// @throws UsageError kBadOption
void parse_dim(std::string_view text, Dims& dims);

}  // namespace fx::cli
