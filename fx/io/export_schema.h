#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The contents of a torch.export archive's JSON records as plain structs: one struct per concept
/// of torch/_export/serde/schema.py (major version 8), under the same names. Symbolic expressions
/// and tree specs are kept as text here; symbolic_expr.h and treespec.h read them.
namespace fx::io::schema {

/// Schema versions that are known: this major, and what minors up to this one hold.
inline constexpr std::int64_t kMajorVersion = 8;
inline constexpr std::int64_t kMinorVersion = 20;

/// An ordered map as the file has it; keys are unique.
template <typename T>
using Map = std::vector<std::pair<std::string, T>>;

/// Numbers as in the file, unlike c10::ScalarType's.
enum class ScalarType : std::uint8_t {
  kByte = 1,
  kChar = 2,
  kShort = 3,
  kInt = 4,
  kLong = 5,
  kHalf = 6,
  kFloat = 7,
  kDouble = 8,
  kComplexHalf = 9,
  kComplexFloat = 10,
  kComplexDouble = 11,
  kBool = 12,
  kBFloat16 = 13,
  kUInt16 = 28,
  kFloat8E4M3FN = 29,
  kFloat8E5M2 = 30,
  kFloat8E4M3FNUZ = 31,
  kFloat8E5M2FNUZ = 32,
  kFloat8E8M0FNU = 33,
  kUInt32 = 34,
  kUInt64 = 35,
};

enum class Layout : std::uint8_t {
  kSparseCoo = 1,
  kSparseCsr = 2,
  kSparseCsc = 3,
  kSparseBsr = 4,
  kSparseBsc = 5,
  kMkldnn = 6,
  kStrided = 7,
};

enum class MemoryFormat : std::uint8_t {
  kContiguous = 1,
  kChannelsLast = 2,
  kChannelsLast3d = 3,
  kPreserve = 4,
};

struct Device {
  std::string type;
  std::optional<std::int64_t> index;
};

/// A symbolic expression, in sympy's srepr or infix form, and the value it had at export, if known.
struct SymExpr {
  std::string text;
  std::optional<std::variant<std::int64_t, bool, double>> hint;
};

/// A number that is either known or an expression: `expr` is null if it is known.
template <typename T>
struct SymNumber {
  T value{};
  std::shared_ptr<const SymExpr> expr;

  bool is_known() const { return expr == nullptr; }
};
using SymInt = SymNumber<std::int64_t>;
using SymFloat = SymNumber<double>;
using SymBool = SymNumber<bool>;

struct TensorMeta {
  ScalarType dtype{};
  std::vector<SymInt> sizes;
  bool requires_grad = false;
  Device device;
  std::vector<SymInt> strides;
  SymInt storage_offset;
  Layout layout{};
};

struct TensorArgument {
  std::string name;
};
/// A symbolic value by name, or a number.
struct SymIntArgument {
  std::variant<std::string, std::int64_t> value;
};
struct SymFloatArgument {
  std::variant<std::string, double> value;
};
struct SymBoolArgument {
  std::variant<std::string, bool> value;
};
using OptionalTensorArgument = std::optional<TensorArgument>;

struct Graph;
struct GraphArgument {
  std::string name;
  std::shared_ptr<const Graph> graph;
};
struct CustomObjArgument {
  std::string name;
  std::string class_fqn;
};
struct OperatorArgument {
  std::string target;
};

/// One argument, input or output: schema.py's union, a C++ type for each tag.
struct Argument {
  using Value =
      std::variant<std::monostate,                                 // as_none
                   TensorArgument,                                 // as_tensor
                   std::vector<TensorArgument>,                    // as_tensors
                   std::int64_t,                                   // as_int
                   std::vector<std::int64_t>,                      // as_ints
                   double,                                         // as_float
                   std::vector<double>,                            // as_floats
                   std::string,                                    // as_string
                   std::vector<std::string>,                       // as_strings
                   SymIntArgument,                                 // as_sym_int
                   std::vector<SymIntArgument>,                    // as_sym_ints
                   ScalarType,                                     // as_scalar_type
                   MemoryFormat,                                   // as_memory_format
                   Layout,                                         // as_layout
                   Device,                                         // as_device
                   bool,                                           // as_bool
                   std::vector<bool>,                              // as_bools
                   SymBoolArgument,                                // as_sym_bool
                   std::vector<SymBoolArgument>,                   // as_sym_bools
                   GraphArgument,                                  // as_graph
                   std::vector<OptionalTensorArgument>,            // as_optional_tensors
                   CustomObjArgument,                              // as_custom_obj
                   OperatorArgument,                               // as_operator
                   SymFloatArgument,                               // as_sym_float
                   std::vector<SymFloatArgument>,                  // as_sym_floats
                   OptionalTensorArgument,                         // as_optional_tensor
                   std::complex<double>,                           // as_complex
                   std::vector<std::vector<TensorArgument>>,       // as_nested_tensors
                   std::vector<std::vector<std::int64_t>>,         // as_int_lists
                   std::vector<std::pair<std::string, Argument>>,  // as_string_to_argument
                   std::vector<std::vector<double>>>;              // as_float_lists
  Value value;

  // All defined below, where the class is complete: its own kind is in one of the alternatives,
  // which clang would need to know here.
  Argument() noexcept;
  Argument(Value v) noexcept;
  Argument(const Argument& other);
  Argument(Argument&& other) noexcept;
  Argument& operator=(const Argument& other);
  Argument& operator=(Argument&& other) noexcept;
  ~Argument();

  /// The tag in the file, "as_tensor".
  std::string_view tag() const;
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
};

inline Argument::Argument() noexcept = default;
inline Argument::Argument(Value v) noexcept : value(std::move(v)) {}
inline Argument::Argument(const Argument& other) = default;
inline Argument::Argument(Argument&& other) noexcept = default;
inline Argument& Argument::operator=(const Argument& other) = default;
inline Argument& Argument::operator=(Argument&& other) noexcept = default;
inline Argument::~Argument() = default;

enum class ArgumentKind : std::uint8_t { kUnknown = 0, kPositional = 1, kKeyword = 2 };

struct NamedArgument {
  std::string name;  ///< from the operator's schema; empty for higher-order operators
  Argument arg;
  std::optional<ArgumentKind> kind;
};

struct Node {
  std::string target;  ///< "torch.ops.aten.relu.default", "_operator.add"
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  Map<std::string> metadata;
  std::optional<bool> is_hop_single_tensor_return;
  std::optional<std::string> name;
};

struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  Map<TensorMeta> tensor_values;
  Map<SymInt> sym_int_values;
  Map<SymBool> sym_bool_values;
  Map<SymFloat> sym_float_values;
  Map<CustomObjArgument> custom_obj_values;
  bool is_single_tensor_return = false;
};

/// What feeds one input of the graph.
struct InputSpec {
  enum class Kind : std::uint8_t {
    kUserInput,
    kParameter,
    kBuffer,
    kTensorConstant,
    kCustomObj,
    kToken,
    kConstantInput,  ///< a user input whose value was fixed at export
  };
  Kind kind{};
  Argument arg;            ///< the graph's name of it; for kConstantInput the value
  std::string target;      ///< qualified name of a parameter, buffer, constant or object;
                           ///< for kConstantInput the input's name
  bool persistent = true;  ///< of a buffer: whether it is in the state dict
};

/// What becomes of one output of the graph.
struct OutputSpec {
  enum class Kind : std::uint8_t {
    kUserOutput,
    kLossOutput,
    kBufferMutation,
    kGradientToParameter,
    kGradientToUserInput,
    kUserInputMutation,
    kToken,
    kParameterMutation,
  };
  Kind kind{};
  Argument arg;
  std::string target;  ///< the buffer, parameter or input that is changed
};

struct GraphSignature {
  std::vector<InputSpec> input_specs;
  std::vector<OutputSpec> output_specs;
};

struct ModuleCallSignature {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::string in_spec;   ///< JSON text of the tree of inputs, treespec.h
  std::string out_spec;  ///< JSON text of the tree of outputs
  std::vector<std::string> forward_arg_names;
};

struct ModuleCallEntry {
  std::string fqn;  ///< qualified module name; empty for the root
  std::optional<ModuleCallSignature> signature;
};

struct GraphModule {
  Graph graph;
  GraphSignature signature;
  std::vector<ModuleCallEntry> module_call_graph;
  Map<std::string> metadata;
  /// Field names of the named tuples that occur in tree specs, by serialised type name.
  Map<std::vector<std::string>> treespec_namedtuple_fields;
};

/// Bounds of a symbol; absent: unbounded on that side.
struct RangeConstraint {
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

struct ExportedProgram {
  GraphModule graph_module;
  Map<std::int64_t> opset_version;
  Map<RangeConstraint> range_constraints;
  std::int64_t schema_major = 0;
  std::int64_t schema_minor = 0;
  std::vector<std::string> verifiers;
  std::string torch_version;
  std::vector<std::string> guards_code;

  /// What was passed over while reading, for example keys of a newer torch; one sentence each.
  std::vector<std::string> warnings;
};

/// Where the contents of one parameter, buffer or constant are.
struct PayloadMeta {
  std::string path_name;  ///< record in the folder, "weight_0"
  bool is_param = false;
  bool use_pickle = false;
  std::optional<TensorMeta> tensor_meta;
};
using PayloadConfig = Map<PayloadMeta>;

/// Reads models/<name>.json. Strict: every value has to have its type, unions exactly one known
/// tag, integers 64 bits, nesting at most 100; nothing is filled in silently. `label` starts each
/// message, which names the place: "graph_module.graph.nodes[12].inputs[0].arg".
/// @throws ImportError kBadJson, kBadSchema, kUnsupportedVersion. O(size).
ExportedProgram parse_exported_program(std::string json, const std::string& label);

/// Reads data/weights/<name>_weights_config.json or data/constants/<name>_constants_config.json.
/// @throws ImportError kBadJson, kBadSchema. O(size).
PayloadConfig parse_payload_config(std::string json, const std::string& label);

}  // namespace fx::io::schema
