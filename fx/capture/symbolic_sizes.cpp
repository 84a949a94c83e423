#include "fx/capture/symbolic_sizes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>

#include "fx/base/text.h"
#include "fx/capture/program_isolation.h"
#include "fx/capture/size_graph.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Place {
  std::size_t input;
  std::int64_t dim;
};

struct Symbol {
  Dim mark;
  std::int64_t example;
  std::vector<Place> places;
  // Found by runs.
  std::int64_t least = 0;
  std::optional<std::int64_t> most = {};
};

/// Why a size has to stay as it is.
struct Stays {
  std::size_t symbol;
  std::string why;
};

std::string shown_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void bad_mark(const std::string& text) {
  throw TraceError(ErrorCode::kBadArgument, "dynamic sizes: " + text);
}

std::vector<Symbol> symbols_of(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::vector<Symbol> symbols;
  for (const auto& [input, dims] : program.options.dynamic) {
    const auto name = std::ranges::find(program.input_names, input);
    if (name == program.input_names.end())
      bad_mark("there is no input " + str_repr(input) + "; there are " +
               shown_names(program.input_names));
    const auto index = static_cast<std::size_t>(name - program.input_names.begin());
    for (const auto& [dim, mark] : dims) {
      if (dim < 0 || dim >= inputs[index].dim())
        bad_mark("input " + str_repr(input) + " has no dimension " + std::to_string(dim) +
                 "; it is a " + describe(inputs[index]));
      if (inputs[index].layout() != at::kStrided || inputs[index].is_meta())
        bad_mark("input " + str_repr(input) + " is a " + describe(inputs[index]) +
                 ", which cannot be repeated to other sizes");
      const std::int64_t size = inputs[index].size(dim);
      const std::string what =
          str_repr(mark.name) + ", dimension " + std::to_string(dim) + " of " + str_repr(input);
      if (size < 1)
        bad_mark(what + ", is 0 in the example, which cannot be repeated to other sizes");
      if ((mark.min && size < *mark.min) || (mark.max && size > *mark.max))
        bad_mark(what + ", is " + std::to_string(size) + " in the example, outside of its range");
      auto found = std::ranges::find_if(
          symbols, [&](const Symbol& symbol) { return symbol.mark.name == mark.name; });
      if (found == symbols.end()) {
        symbols.push_back({mark, size, {{index, dim}}});
        continue;
      }
      if (found->example != size)
        bad_mark(what + ", is " + std::to_string(size) + " in the example, but elsewhere " +
                 std::to_string(found->example));
      found->places.push_back({index, dim});
      if (mark.min) found->mark.min = std::max(*mark.min, found->mark.min.value_or(*mark.min));
      if (mark.max) found->mark.max = std::min(*mark.max, found->mark.max.value_or(*mark.max));
    }
  }
  return symbols;
}

// `size` items of the example along a dimension, over and over; in the same order of dimensions in
// memory, since programs and operators look at it.
at::Tensor resized(const at::Tensor& tensor,
                   const std::vector<std::pair<std::int64_t, Sizes>>& to) {
  if (to.empty() && tensor.layout() != at::kStrided) return tensor.detach().clone();
  Sizes order(static_cast<std::size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  Sizes inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  at::Tensor made = tensor.detach().permute(order).clone(at::MemoryFormat::Contiguous);
  for (const auto& [dim, items] : to)
    made = made.index_select(inverse[static_cast<std::size_t>(dim)],
                             at::tensor(items, at::device(tensor.device()).dtype(at::kLong)));
  made = made.permute(inverse);
  if (!tensor.requires_grad()) return made;
  made = made.detach().requires_grad_();
  return tensor.is_leaf() ? made : made.clone();
}

class SizeRuns {
 public:
  SizeRuns(const Program& program, const std::vector<at::Tensor>& inputs)
      : program_(program),
        inputs_(inputs),
        isolation_(program.root),
        symbols_(symbols_of(program, inputs)) {}

  Recording record_all() {
    Assumptions stayed;
    for (;;) {
      Recording made;
      const std::optional<Stays> stays = attempt(made);
      if (!stays) {
        made.assumptions.insert(made.assumptions.end(), stayed.begin(), stayed.end());
        return made;
      }
      const Symbol& symbol = symbols_[stays->symbol];
      std::string text =
          symbol.mark.name + " stayed " + std::to_string(symbol.example) + ": " + stays->why;
      if (program_.options.strict)
        throw TraceError(ErrorCode::kConcreteValue,
                         text + "; a strict capture leaves no size of `dynamic` as it was");
      stayed.push_back({Assumption::Kind::kSize, std::move(text)});
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(stays->symbol));
    }
  }

 private:
  // The example with the sizes of the symbols.
  std::vector<at::Tensor> example(const Sizes& sizes) const {
    std::vector<at::Tensor> made;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::vector<std::pair<std::int64_t, Sizes>> to;
      for (std::size_t s = 0; s < symbols_.size(); ++s)
        for (const Place& place : symbols_[s].places)
          if (place.input == i) {
            Sizes items;
            for (std::int64_t k = 0; k < sizes[s]; ++k) items.push_back(k % symbols_[s].example);
            to.emplace_back(place.dim, std::move(items));
          }
      made.push_back(resized(inputs_[i], to));
    }
    return made;
  }

  std::string shown(const Sizes& sizes) const {
    std::string text;
    for (std::size_t s = 0; s < symbols_.size(); ++s)
      text += (s ? ", " : "") + symbols_[s].mark.name + " = " + std::to_string(sizes[s]);
    return text;
  }

  Recording run(const Sizes& sizes, bool stacks) {
    isolation_.restore();
    return record(program_, example(sizes), {.sizes = true, .stacks = stacks});
  }

  // Sizes other than the example's, the first ones near to it, the later ones spread: so that
  // symbols do not go in step.
  Sizes other_sizes(std::size_t index) const {
    const Symbol& symbol = symbols_[index];
    const auto step = static_cast<std::int64_t>(index);
    const std::int64_t v = symbol.example,
                       least = std::max<std::int64_t>(2, symbol.mark.min.value_or(2));
    Sizes out;
    auto add = [&](std::int64_t size) {
      if (out.size() < kOtherSizes && size != v && size >= least &&
          size <= symbol.mark.max.value_or(size) && std::ranges::find(out, size) == out.end())
        out.push_back(size);
    };
    for (const std::int64_t size : {v + 1, v + 2, v + 3 + step, 2 * v + 2 + step, v + 5 + 2 * step})
      add(size);
    for (std::int64_t size = v + 1; size <= v + 16; ++size) add(size);
    for (std::int64_t size = v - 1; size >= least; --size) add(size);
    return out;
  }

  // What one symbol is while the others are as in the example.
  Sizes sizes_alone(std::size_t index, const Sizes& others, bool many) const {
    Sizes out{others[0], others[1]};
    if (!many) return out;
    const Symbol& symbol = symbols_[index];
    const std::int64_t v = symbol.example;
    for (const std::int64_t size :
         {v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9, v + 10, 3 * v + 1, 4 * v + 3})
      if (size <= symbol.mark.max.value_or(size)) out.push_back(size);
    return out;
  }

  // Nothing if all went well, and `made` holds the graph. Runs on more sizes where few do not tell
  // expressions from each other.
  std::optional<Stays> attempt(Recording& made) {
    bool wants_more = false;
    std::optional<Stays> stays = attempt(made, false, wants_more);
    if (wants_more) stays = attempt(made, true, wants_more);
    return stays;
  }

  std::optional<Stays> attempt(Recording& made, bool many, bool& wants_more) {
    Sizes base;
    for (const Symbol& symbol : symbols_) base.push_back(symbol.example);
    if (symbols_.empty()) {
      made = run(base, program_.options.source_lines);
      return std::nullopt;
    }
    std::vector<Sizes> others;
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      others.push_back(other_sizes(s));
      if (others[s].size() < kOtherSizes)
        return Stays{s, "its range has too few sizes to compare; from 2 on, " +
                            std::to_string(kOtherSizes + 1) + " are needed"};
    }
    // The example; each symbol alone; all together.
    std::vector<Sizes> plan{base};
    std::vector<std::size_t> blamed{0};
    for (std::size_t s = 0; s < symbols_.size(); ++s)
      for (const std::int64_t size : sizes_alone(s, others[s], many)) {
        plan.push_back(base);
        plan.back()[s] = size;
        blamed.push_back(s);
      }
    for (std::size_t k = 2; k + 1 < kOtherSizes; ++k) {
      Sizes& joint = plan.emplace_back();
      for (const Sizes& sizes : others) joint.push_back(sizes[k]);
      blamed.push_back(0);
    }
    std::vector<Recording> runs;
    for (std::size_t r = 0; r < plan.size(); ++r) {
      try {
        runs.push_back(run(plan[r], r == 0));
      } catch (const std::exception& error) {
        if (r == 0) throw;
        return Stays{blamed[r],
                     "with " + shown(plan[r]) + " the program fails: " + first_line(error)};
      }
    }
    std::vector<SizeGraph::Symbol> symbols;
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      const Place& place = symbols_[s].places[0];
      symbols.push_back({symbols_[s].mark.name, program_.input_names[place.input], place.dim, {}});
      for (const Sizes& sizes : plan) symbols.back().samples.push_back(sizes[s]);
    }
    SizeGraph graph(std::move(symbols), runs);
    const auto difference = graph.generalise();
    // Also after a difference: what fits in several ways counts as none.
    wants_more = graph.wants_more_runs();
    if (wants_more && !many) return std::nullopt;
    if (difference) {
      std::size_t culprit = blamed[difference->run];
      std::string source = difference->where.source();
      return Stays{culprit, "with " + shown(plan[difference->run]) + ", " + difference->text +
                                (source.empty() ? "" : ", at " + source)};
    }
    for (std::size_t s = 0; s < symbols_.size(); ++s) find_range(s, plan, graph);
    made = std::move(runs[0]);
    for (std::size_t s = 0; s < symbols_.size(); ++s) describe_symbol(s, plan, made);
    Sizes last;
    for (const Sizes& sizes : others) last.push_back(sizes[kOtherSizes - 1]);
    return verify(last, made);
  }

  static std::string first_line(const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    const std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
    return text.substr(0, text.find('\n'));
  }

  // Calls may have the sizes between the smallest and the largest one at which a run shows the
  // same: a program may take another path for small and for large ones.
  void find_range(std::size_t index, const std::vector<Sizes>& plan, const SizeGraph& graph) {
    Symbol& symbol = symbols_[index];
    const std::int64_t v = symbol.example, lowest = symbol.mark.min.value_or(1);
    const auto holds = [&](std::int64_t size) {
      Sizes sizes = plan[0];
      sizes[index] = size;
      try {
        return graph.holds_for(run(sizes, false), sizes);
      } catch (const std::exception&) {
        return false;  // the program does not take this size either
      }
    };
    symbol.least = v;
    for (const std::int64_t size :
         std::set<std::int64_t, std::greater<>>{v - 1, v / 2, 3, 2, 1, lowest}) {
      if (size >= v || size < lowest) continue;
      if (!holds(size)) break;
      symbol.least = size;
    }
    symbol.most = symbol.mark.max;
    std::int64_t largest = v;
    for (const Sizes& sizes : plan) largest = std::max(largest, sizes[index]);
    std::int64_t size = symbol.mark.max.value_or(std::max<std::int64_t>(64, 4 * v));
    std::int64_t elements = 1;  // for each of this size
    for (const Place& place : symbol.places) elements += inputs_[place.input].numel() / v;
    size = std::min(size, kMostElements / elements);
    if (size > largest && !holds(size)) symbol.most = largest;
  }

  void describe_symbol(std::size_t index, const std::vector<Sizes>& plan, Recording& made) const {
    const Symbol& symbol = symbols_[index];
    for (const Place& place : symbol.places) {
      InputGuard& guard = made.guards[place.input];
      guard.dims[static_cast<std::size_t>(place.dim)] = {
          {}, symbol.mark.name, symbol.least, symbol.most};
      for (Assumption& each : made.assumptions)
        if (each.kind == Assumption::Kind::kInput && each.text.starts_with(guard.input + " is a "))
          each.text = guard.input + " is a Tensor " + guard.str();
    }
    std::set<std::int64_t> seen;
    for (const Sizes& sizes : plan) seen.insert(sizes[index]);
    std::string text = symbol.mark.name + " may be from " + std::to_string(symbol.least) + " to " +
                       (symbol.most ? std::to_string(*symbol.most) : "any size") +
                       ", as found with";
    for (const std::int64_t size : seen) text += " " + std::to_string(size);
    made.assumptions.push_back({Assumption::Kind::kSize, std::move(text)});
  }

  // The graph and the program on sizes that the graph was not made from.
  std::optional<Stays> verify(const Sizes& sizes, const Recording& made) {
    const auto graph = std::make_shared<GraphModule>(program_.root, made.graph->clone(), "Verified",
                                                     GraphModule::Share::kAll, made.constants);
    std::string why;
    try {
      isolation_.restore();
      std::vector<at::Tensor> eager = example(sizes);
      std::vector<at::Tensor> expected = eager;
      append_tensors(program_.run(eager), expected);
      isolation_.restore();
      const std::vector<at::Tensor> replayed = example(sizes);
      std::vector<at::Tensor> found = replayed;
      append_tensors(graph->forward(Values(replayed.begin(), replayed.end())), found);
      if (expected.size() != found.size()) why = "another number of results";
      for (std::size_t i = 0; i < expected.size() && why.empty(); ++i)
        if (!same(expected[i], found[i]))
          why = (i < inputs_.size() ? "input " : "result ") +
                std::to_string(i < inputs_.size() ? i : i - inputs_.size()) + " is " +
                describe(found[i]) + ", not as the program's " + describe(expected[i]);
    } catch (const std::exception& error) {
      why = first_line(error);
    }
    if (why.empty()) return std::nullopt;
    return Stays{0, "with " + shown(sizes) + " the graph does something else: " + why};
  }

  static void append_tensors(const TraceArg& result, std::vector<at::Tensor>& out) {
    const Argument& number = result.argument();
    if (result.kind() == TraceArg::Kind::kTensor && result.tensor().defined())
      out.push_back(result.tensor());
    if (number.kind() == Argument::Kind::kInt || number.kind() == Argument::Kind::kFloat)
      out.push_back(at::scalar_tensor(number.to_double(), at::kDouble));
    for (const Argument& item : aggregate_items(number)) append_tensors(item, out);
    for (const TraceArg& item : result.items()) append_tensors(item, out);
  }
  static void append_tensors(const Value& result, std::vector<at::Tensor>& out) {
    if (result.isTensor() && result.toTensor().defined()) out.push_back(result.toTensor());
    if (result.isInt() || result.isDouble())
      out.push_back(at::scalar_tensor(result.toScalar(), at::kDouble));
    if (!result.isTuple() && !is_sequence(result)) return;
    for (const Value& item : elements(result)) append_tensors(item, out);
  }
  static std::span<const Argument> aggregate_items(const Argument& argument) {
    const bool has_items =
        argument.kind() == Argument::Kind::kList || argument.kind() == Argument::Kind::kTuple;
    return has_items ? argument.items() : std::span<const Argument>();
  }

  static bool same(const at::Tensor& a, const at::Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.layout() != b.layout())
      return false;
    if (a.layout() != at::kStrided) return same(a.to_dense(), b.to_dense());
    const at::NoGradGuard no_grad;
    return a.numel() == 0 || at::isclose(a, b, 0, 0, /*equal_nan=*/true).all().item<bool>();
  }

  static constexpr std::size_t kOtherSizes = 5;
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of the largest example

  const Program& program_;
  const std::vector<at::Tensor>& inputs_;
  ProgramIsolation isolation_;
  std::vector<Symbol> symbols_;
};

}  // namespace

Recording record_sizes(const Program& program, const std::vector<at::Tensor>& inputs) {
  return SizeRuns(program, inputs).record_all();
}

}  // namespace fx
