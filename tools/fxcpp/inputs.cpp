#include "tools/fxcpp/inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/io/npy.h"

namespace fx::cli {
namespace {

using Kind = io::ValueMeta::Kind;

/// The size of `dim` when the known symbols decide it.
std::optional<std::int64_t> evaluate(const io::SymDim& dim, const Dims& dims) {
  if (dim.is_known()) return dim.value;
  return dim.expr->evaluate([&dims](std::string_view symbol) -> std::optional<std::int64_t> {
    const auto it = dims.find(symbol);
    if (it == dims.end()) return std::nullopt;
    return it->second;
  });
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::string out;
  for (std::int64_t size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "[" + out + "]";
}

class Binder {
 public:
  Binder(const Model& model, const InputFlags& flags, const Talk& talk)
      : model_(model), flags_(flags), talk_(talk), specs_(model.inputs.size()) {}

  ModelInputs bind() {
    read_dims();
    assign_specs();
    result_.values.resize(model_.inputs.size());
    read_files();
    infer_from_sizes();
    for (std::size_t i = 0; i < model_.inputs.size(); ++i)
      if (specs_[i]) make(i);
    choose_free_symbols();
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      result_.values[i].name = model_.inputs[i].name;
      if (!specs_[i]) generate(i);
      check(i);
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(ErrorCode code, std::size_t input, const std::string& what) const {
    throw UsageError(code, "input " + model_.inputs[input].name + ": " + what +
                               ". The model takes " + model_.signature());
  }

  const std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>* range_of(
      const std::string& symbol) const {
    for (const auto& [name, range] : model_.symbols)
      if (name == symbol) return &range;
    return nullptr;
  }

  void check_range(const std::string& symbol, std::int64_t size, const std::string& where) const {
    const auto* range = range_of(symbol);
    if (range == nullptr) return;
    if ((range->first && size < *range->first) || (range->second && size > *range->second))
      throw UsageError(ErrorCode::kShapeMismatch,
                       where + ": " + symbol + " = " + std::to_string(size) + " is not in " +
                           range_text(symbol, range->first, range->second));
  }

  std::vector<std::string> all_symbols() const {
    std::vector<std::string> symbols;
    for (const ModelInput& input : model_.inputs)
      if (input.meta)
        for (std::string& symbol : symbols_of(*input.meta))
          if (std::ranges::find(symbols, symbol) == symbols.end())
            symbols.push_back(std::move(symbol));
    return symbols;
  }

  void read_dims() {
    for (const std::string& text : flags_.dims) parse_dim(text, result_.dims);
    const std::vector<std::string> symbols = all_symbols();
    for (const auto& [symbol, size] : result_.dims) {
      const bool has_meta = std::ranges::any_of(
          model_.inputs, [](const ModelInput& input) { return input.meta != nullptr; });
      if (has_meta && std::ranges::find(symbols, symbol) == symbols.end())
        throw UsageError(ErrorCode::kBadOption,
                         "--dim " + symbol + ": the model has no such symbol" +
                             did_you_mean(symbol, symbols) + ". It takes " + model_.signature());
      check_range(symbol, size, "--dim");
    }
  }

  /// Names first, then positions from the left, as Python binds a call.
  void assign_specs() {
    std::vector<InputSpec> unnamed;
    for (const std::string& text : flags_.inputs) {
      InputSpec spec = parse_input_spec(text);
      if (spec.name.empty()) {
        unnamed.push_back(std::move(spec));
        continue;
      }
      const auto input = std::ranges::find(model_.inputs, spec.name, &ModelInput::name);
      if (input == model_.inputs.end()) {
        std::vector<std::string> names;
        for (const ModelInput& known : model_.inputs) names.push_back(known.name);
        throw UsageError(ErrorCode::kUnknownInput, "the model has no input '" + spec.name + "'" +
                                                       did_you_mean(spec.name, names) +
                                                       ". It takes " + model_.signature());
      }
      const auto index = static_cast<std::size_t>(input - model_.inputs.begin());
      if (specs_[index])
        throw UsageError(ErrorCode::kBadInputSpec, "input " + spec.name + " was given twice");
      specs_[index] = std::move(spec);
    }
    std::size_t next = 0;
    for (InputSpec& spec : unnamed) {
      while (next < specs_.size() && (specs_[next] || model_.inputs[next].is_constant)) ++next;
      if (next == specs_.size())
        throw UsageError(ErrorCode::kExtraInput,
                         "'" + spec.text +
                             "' is one input too many: " + counted(flags_.inputs.size(), "input") +
                             " given. The model takes " + model_.signature());
      specs_[next++] = std::move(spec);
    }
  }

  void read_files() {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (!specs_[i]) continue;
      const auto* file = std::get_if<InputSpec::File>(&specs_[i]->value);
      if (file == nullptr) continue;
      result_.values[i].value = io::read_npy(file->path);
      result_.values[i].source = file->path;
    }
  }

  /// Reads the sizes that are known off the inputs given and solves for symbols.
  void infer_from_sizes() {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const io::ValueMetaPtr& meta = model_.inputs[i].meta;
      if (!specs_[i] || !meta || meta->kind != Kind::kTensor) continue;
      if (const auto* tensor = std::get_if<TensorSpec>(&specs_[i]->value)) {
        for (std::size_t d = 0; d < tensor->dims.size() && d < meta->sizes.size(); ++d)
          if (tensor->dims[d].symbol.empty()) solve(i, meta->sizes[d], tensor->dims[d].value);
      } else if (result_.values[i].value.isTensor()) {
        const at::Tensor& given = result_.values[i].value.toTensor();
        for (std::size_t d = 0; d < meta->sizes.size() && std::ssize(meta->sizes) == given.dim();
             ++d)
          solve(i, meta->sizes[d], given.size(static_cast<std::int64_t>(d)));
      }
    }
  }

  /// Finds the symbol in `dim` from its size, when it is the only unknown and occurs linearly.
  void solve(std::size_t input, const io::SymDim& dim, std::int64_t size) {
    if (dim.is_known()) return;
    std::string unknown;
    for (const std::string& symbol : dim.expr->symbols()) {
      if (result_.dims.contains(symbol)) continue;
      if (!unknown.empty()) return;
      unknown = symbol;
    }
    if (unknown.empty()) return;
    auto at = [&](std::int64_t value) {
      Dims dims = result_.dims;
      dims[unknown] = value;
      return evaluate(dim, dims);
    };
    const auto zero = at(0), one = at(1);
    if (!zero || !one || *one == *zero || (size - *zero) % (*one - *zero) != 0) return;
    const std::int64_t value = (size - *zero) / (*one - *zero);
    if (value < 0 || at(value) != size) return;
    check_range(unknown, value, "input " + model_.inputs[input].name);
    result_.dims[unknown] = value;
  }

  void make(std::size_t i) {
    const InputSpec& spec = *specs_[i];
    InputValue& value = result_.values[i];
    if (const auto* tensor = std::get_if<TensorSpec>(&spec.value)) {
      // Symbols in a spec may be those of the model, whose sizes are known only now.
      for (const TensorSpec::Dim& dim : tensor->dims)
        if (!dim.symbol.empty() && !result_.dims.contains(dim.symbol) &&
            range_of(dim.symbol) != nullptr)
          choose(dim.symbol);
      value.value =
          make_tensor(spec, *tensor, resolve_sizes(spec, *tensor, result_.dims), flags_.seed + i);
      value.source = spec.text.substr(spec.name.empty() ? 0 : spec.name.size() + 1);
    } else if (const auto* scalar = std::get_if<InputSpec::Scalar>(&spec.value)) {
      std::visit([&value](const auto& v) { value.value = scalar_value(v); }, scalar->value);
      value.source = spec.text.substr(spec.name.empty() ? 0 : spec.name.size() + 1);
    }
  }

  static Value scalar_value(std::monostate) { return {}; }
  template <typename T>
  static Value scalar_value(const T& v) {
    return Value(v);
  }

  void choose(const std::string& symbol) {
    const auto* range = range_of(symbol);
    std::int64_t size = 1;
    if (range != nullptr && range->first) size = std::max<std::int64_t>(*range->first, 1);
    if (range != nullptr && range->second) size = std::min(size, *range->second);
    result_.dims[symbol] = size;
    chosen_.push_back(symbol);
    const std::string bounds =
        range != nullptr ? range_text(symbol, range->first, range->second) : "";
    talk_.note(symbol + " = " + std::to_string(size) + " (the smallest" +
               (bounds.empty() ? "" : " in " + bounds) + "; choose with --dim " + symbol + "=N)");
  }

  void choose_free_symbols() {
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      if (!model_.inputs[i].meta) continue;
      for (const std::string& symbol : symbols_of(*model_.inputs[i].meta))
        if (!result_.dims.contains(symbol)) choose(symbol);
    }
  }

  void generate(std::size_t i) {
    const ModelInput& input = model_.inputs[i];
    InputValue& value = result_.values[i];
    if (input.is_constant) {
      value.value = value_of(model_.module->graph().placeholders()[i]->arg(0));
      value.source = "constant";
      return;
    }
    if (!input.meta)
      throw UsageError(ErrorCode::kMissingInput,
                       "input " + input.name +
                           ": the file does not say what it is; give it with -i " + input.name +
                           "=@file.npy or -i " + input.name + "=f32[2,3]:randn");
    value.generated = true;
    const std::string seed = std::to_string(flags_.seed + i);
    switch (input.meta->kind) {
      case Kind::kTensor: {
        std::vector<std::int64_t> sizes;
        for (const io::SymDim& dim : input.meta->sizes) {
          const auto size = evaluate(dim, result_.dims);
          if (!size || *size < 0)
            fail(ErrorCode::kMissingInput, i,
                 "its size " + dim.str() +
                     " cannot be worked out: give "
                     "the input with -i");
          sizes.push_back(*size);
        }
        InputSpec spec;
        spec.text = input.name;
        TensorSpec tensor;
        tensor.dtype = input.meta->dtype;
        value.value = make_tensor(spec, tensor, sizes, flags_.seed + i);
        value.source = std::string(default_fill_name(tensor.dtype)) + ", seed " + seed;
        break;
      }
      case Kind::kInt:
        value.value = Value(evaluate(input.meta->number, result_.dims).value_or(1));
        value.source = "symbol";
        break;
      case Kind::kFloat:
        value.value = Value(0.5);
        value.source = "made up";
        break;
      case Kind::kBool:
        value.value = Value(true);
        value.source = "made up";
        break;
    }
    talk_.note("input " + input.name + ": " + describe(value.value) + " generated (" +
               value.source + ")");
  }

  /// What the model said of an input against what it gets.
  void check(std::size_t i) const {
    const io::ValueMetaPtr& meta = model_.inputs[i].meta;
    if (!meta || result_.values[i].generated || model_.inputs[i].is_constant) return;
    const Value& value = result_.values[i].value;
    if (meta->kind != Kind::kTensor) {
      if (value.isTensor() || value.isNone())
        fail(ErrorCode::kWrongType, i, "a number wanted, found " + describe(value));
      return;
    }
    if (!value.isTensor())
      fail(ErrorCode::kWrongType, i, "a tensor wanted, found " + describe(value));
    const at::Tensor& tensor = value.toTensor();
    if (tensor.scalar_type() != meta->dtype)
      fail(ErrorCode::kWrongType, i,
           "dtype " + std::string(short_dtype_name(meta->dtype)) + " wanted, found " +
               std::string(short_dtype_name(tensor.scalar_type())));
    if (std::ssize(meta->sizes) != tensor.dim())
      fail(ErrorCode::kShapeMismatch, i,
           counted(meta->sizes.size(), "dimension") + " wanted, found " +
               std::to_string(tensor.dim()) + ": " + sizes_text(tensor.sizes().vec()));
    for (std::size_t d = 0; d < meta->sizes.size(); ++d) {
      const auto wanted = evaluate(meta->sizes[d], result_.dims);
      const std::int64_t found = tensor.size(static_cast<std::int64_t>(d));
      if (!wanted || *wanted == found) continue;
      const std::string symbolic = meta->sizes[d].is_known() ? "" : meta->sizes[d].str() + " = ";
      fail(ErrorCode::kShapeMismatch, i,
           "size " + symbolic + std::to_string(*wanted) + " wanted in dimension " +
               std::to_string(d) + ", found " + std::to_string(found) + ": " +
               sizes_text(tensor.sizes().vec()));
    }
  }

  const Model& model_;
  const InputFlags& flags_;
  const Talk& talk_;
  std::vector<std::optional<InputSpec>> specs_;
  std::vector<std::string> chosen_;
  ModelInputs result_;
};

}  // namespace

void add_input_options(Command& command, InputFlags& flags) {
  command
      .add_list(
          "-i,--input", flags.inputs,
          "NAME=@file.npy, NAME=f32[1,3]:rand(0,1), NAME=i64[2]:1,2; without NAME by position; "
          "repeatable. Inputs that are not given are generated")
      ->type_name("INPUT");
  command
      .add_list(
          "--dim", flags.dims,
          "the size of a symbol, s0=4; repeatable (default: read off the inputs given, else the "
          "smallest allowed)")
      ->type_name("SYMBOL=N");
  command.app()
      .add_option("--seed", flags.seed, "of generated inputs (default: 0)")
      ->type_name("N");
}

Values ModelInputs::clone() const {
  Values values;
  for (const InputValue& input : this->values)
    values.push_back(input.value.isTensor() ? Value(input.value.toTensor().clone()) : input.value);
  return values;
}

ModelInputs make_inputs(const Model& model, const InputFlags& flags, const Talk& talk) {
  return Binder(model, flags, talk).bind();
}

Json inputs_json(const ModelInputs& inputs) {
  Json json = Json::array();
  for (const InputValue& input : inputs.values) {
    Json entry;
    entry["name"] = input.name;
    if (input.value.isTensor()) {
      entry["dtype"] = short_dtype_name(input.value.toTensor().scalar_type());
      entry["shape"] = input.value.toTensor().sizes().vec();
    } else {
      entry["value"] = to_string(input.value);
    }
    entry["source"] = input.source;
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace fx::cli
