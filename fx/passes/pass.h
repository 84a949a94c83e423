#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/ops/value.h"

/// Passes: functions that rewrite a GraphModule in place and keep what it computes.
///
/// The built-in ones stand in one table (passes.cpp) and can be called directly, by name, or in a
/// textual pipeline: "dce,cse,constant_fold(max_bytes=1048576)". Whatever is run through a
/// PassManager (pass_manager.h) is verified, timed, and undone when it fails.
namespace fx {

/// What a pass did.
struct PassResult {
  /// Whether nodes or attributes changed (metadata does not count). Must be true to the fact.
  bool changed = false;
  /// How many places were rewritten, as the pass counts them.
  std::int64_t rewrites = 0;
  /// How many of them each rule did, for passes that have several: those that did any.
  std::vector<std::pair<std::string_view, std::int64_t>> rules = {};
};

/// An option of a pass, as the pipeline text and the help know it.
struct PassOptionInfo {
  enum class Kind : std::uint8_t { kBool, kInt, kFloat, kString };
  std::string_view name;
  Kind kind;
  std::string_view default_text;
  std::string_view summary;
};

struct PassInfo;

/// The values of a pass's options: those given, else the defaults.
class PassOptions {
 public:
  /// The defaults of `info`, which must outlive the options.
  explicit PassOptions(const PassInfo& info);

  /// Sets an option from text ("true", "1048576").
  /// @throws PassError kBadPassOption for an unknown name (with the nearest one) or an unfit value.
  void set(std::string_view name, std::string_view text);

  // @throws InternalError for a name or kind that the pass does not declare: a bug of the pass.
  bool get_bool(std::string_view name) const;
  std::int64_t get_int(std::string_view name) const;
  double get_float(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;

  /// Inputs to run the module on, for passes that need some (shape_prop); null if none were given.
  const Values* example_inputs() const noexcept {
    return example_inputs_ ? &*example_inputs_ : nullptr;
  }
  void set_example_inputs(Values inputs) { example_inputs_ = std::move(inputs); }

  /// "(max_bytes=4, fold_outputs=true)": what differs from the defaults, or empty.
  std::string str() const;

 private:
  const std::string& text_of(std::string_view name, PassOptionInfo::Kind kind) const;

  const PassInfo* info_;
  std::vector<std::string> texts_;  // in the order of info_->options
  std::optional<Values> example_inputs_;
};

/// A row of the table of passes.
struct PassInfo {
  std::string_view name;
  std::string_view summary;  ///< one line, lower case, no full stop
  std::span<const PassOptionInfo> options;
  PassResult (*run)(GraphModule&, const PassOptions&);
};

/// All built-in passes, sorted by name.
std::span<const PassInfo> all_passes();
/// @throws PassError kUnknownPass with the nearest name.
const PassInfo& find_pass(std::string_view name);

/// A pass that is ready to run: a built-in one with its options, or a function of the user.
class Pass {
 public:
  /// What the function claims to have done; nothing when it makes no claim.
  using Function = std::function<std::optional<PassResult>(GraphModule&)>;

  explicit Pass(const PassInfo& info) : Pass(info, PassOptions(info)) {}
  Pass(const PassInfo& info, PassOptions options);

  /// A function (GraphModule&) that returns PassResult, bool (changed) or nothing. Like a built-in
  /// pass it edits the module in place and leaves recompile() to the caller.
  template <typename F>
    requires std::invocable<F&, GraphModule&>
  Pass(std::string name, F function) : name_(std::move(name)) {
    using Result = std::invoke_result_t<F&, GraphModule&>;
    function_ =
        [function = std::move(function)](GraphModule& module) mutable -> std::optional<PassResult> {
      if constexpr (std::is_void_v<Result>) {
        function(module);
        return std::nullopt;
      } else if constexpr (std::is_same_v<Result, bool>) {
        return PassResult{.changed = function(module)};
      } else {
        return std::optional<PassResult>(function(module));
      }
    };
  }

  const std::string& name() const noexcept { return name_; }
  /// As in a pipeline text: the name, and the options that are not the default.
  std::string str() const { return name_ + (options_ ? options_->str() : std::string()); }
  /// Null for a function of the user.
  const PassInfo* info() const noexcept { return info_; }
  void set_example_inputs(const Values& inputs) {
    if (options_) options_->set_example_inputs(inputs);
  }

  /// Runs it, unchecked. Use a PassManager to have it verified and undone on failure.
  std::optional<PassResult> operator()(GraphModule& module) const;

 private:
  std::string name_;
  const PassInfo* info_ = nullptr;
  std::optional<PassOptions> options_;
  mutable Function function_;
};

/// Reads a pipeline: names separated by commas, each with options in parentheses or none; a boolean
/// option without a value is true. "dce, constant_fold(max_bytes=4096, fold_outputs)".
/// @throws PassError kUnknownPass, kBadPassOption (also for broken syntax, naming the place).
std::vector<Pass> parse_pipeline(std::string_view text);

}  // namespace fx
