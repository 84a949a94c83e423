#include <algorithm>
#include <vector>

#include "fx/compile/nest.h"
#include "fx/compile/nest_schedule.h"

namespace fx::loops {
namespace {

class Scheduler {
 public:
  explicit Scheduler(Nest& nest) : nest_(nest) {}

  void run() {
    find_stages();
    for (const NestReduction& reduction : nest_.reductions)
      num_loops_ = std::max(num_loops_, reduction.stage + 1);
    for (const NestStore& store : nest_.stores)
      num_loops_ = std::max(num_loops_, store.element ? store.stage + 1 : store.stage);
    if (!nest_.has_rows()) num_loops_ = 1;
    choose_kept();
    nest_.loops.resize(static_cast<std::size_t>(num_loops_));
    nest_.rows.resize(static_cast<std::size_t>(num_loops_) + 1);
    emit_rows();
    for (int s = 0; s < num_loops_; ++s) emit_loop(s);
  }

 private:
  NestValue& value(ValueId id) { return nest_.values[static_cast<std::size_t>(id)]; }

  // Values stand behind their arguments, also those of reductions: one pass is enough.
  void find_stages() {
    const bool reduces = nest_.has_rows();
    for (NestValue& v : nest_.values) {
      if (v.op == Op::kReduced) {
        NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(v.index)];
        reduction.stage = value(reduction.input).stage;
        v.stage = reduction.stage + 1;
      } else if (v.op == Op::kLoad || v.op == Op::kIndex) {
        const NestOperand& operand = nest_.operands[static_cast<std::size_t>(v.index)];
        // Without reductions the one loop has a single element.
        // What a scatter reads is what it stored before.
        v.element |= operand.output >= 0;
        for (std::size_t axis = nest_.num_kept; reduces && axis < nest_.axes.size(); ++axis)
          v.element |= !operand.steps_of_axis[axis].empty();
      }
      if (v.op == Op::kScan) v.element = true;
      for (ValueId arg : v.args) {
        if (arg < 0) continue;
        v.element |= value(arg).element;
        v.stage = std::max(v.stage, value(arg).stage);
      }
      if (!reduces) v.element = true;
    }
    for (NestStore& store : nest_.stores) {
      store.stage = value(store.value).stage;
      const NestOperand& operand = nest_.operands[static_cast<std::size_t>(store.operand)];
      store.element = !reduces || nest_.scatters;
      for (std::size_t axis = nest_.num_kept; axis < nest_.axes.size(); ++axis)
        store.element |= !operand.steps_of_axis[axis].empty();
    }
  }

  // An element value that a later loop needs again is kept in a scratch row if computing it again
  // costs more than memory: if something expensive stands above it that is not itself kept.
  void choose_kept() {
    kept_.resize(nest_.values.size(), -1);
    if (num_loops_ < 2) return;
    // Last loop that needs each element value, if everything cheap is computed again.
    std::vector<int> last_use(nest_.values.size(), -1);
    for (const NestReduction& r : nest_.reductions)
      last_use[static_cast<std::size_t>(r.input)] =
          std::max(last_use[static_cast<std::size_t>(r.input)], r.stage);
    for (const NestStore& s : nest_.stores)
      if (s.element)
        last_use[static_cast<std::size_t>(s.value)] =
            std::max(last_use[static_cast<std::size_t>(s.value)], s.stage);
    // A scatter has one loop.
    for (const NestStore& s : nest_.stores)
      for (ValueId index : s.gathered) last_use[static_cast<std::size_t>(index)] = s.stage;
    for (std::size_t i = nest_.values.size(); i-- > 0;) {
      const NestValue& v = nest_.values[i];
      if (!v.element || last_use[i] < 0) continue;
      const int computed = std::max(last_use[i], v.stage);
      if (computed > v.stage && is_expensive(v.op)) {
        kept_[i] = static_cast<int>(nest_.scratch.size());
        nest_.scratch.push_back(v.type);
      }
      // Its arguments are needed where it is computed: in its own loop if it is kept.
      const int at = kept_[i] >= 0 ? v.stage : computed;
      for (ValueId arg : v.args)
        if (arg >= 0 && value(arg).element)
          last_use[static_cast<std::size_t>(arg)] =
              std::max(last_use[static_cast<std::size_t>(arg)], at);
    }
  }

  void emit_rows() {
    for (std::size_t i = 0; i < nest_.values.size(); ++i)
      if (const NestValue& v = nest_.values[i]; !v.element)
        nest_.rows[static_cast<std::size_t>(std::min(v.stage, num_loops_))].push_back(
            {NestStep::Kind::kCompute, static_cast<int>(i)});
    for (std::size_t i = 0; i < nest_.stores.size(); ++i)
      if (const NestStore& store = nest_.stores[i]; !store.element)
        nest_.rows[static_cast<std::size_t>(store.stage)].push_back(
            {NestStep::Kind::kStore, static_cast<int>(i)});
  }

  void emit_loop(int stage) {
    std::vector<NestStep>& steps = nest_.loops[static_cast<std::size_t>(stage)];
    done_.assign(nest_.values.size(), false);
    for (std::size_t i = 0; i < nest_.reductions.size(); ++i)
      if (const NestReduction& r = nest_.reductions[i]; r.stage == stage) {
        compute(r.input, stage, steps);
        steps.push_back({NestStep::Kind::kReduce, static_cast<int>(i)});
      }
    for (std::size_t i = 0; i < nest_.stores.size(); ++i)
      if (const NestStore& s = nest_.stores[i]; s.element && s.stage == stage) {
        for (ValueId index : s.gathered) compute(index, stage, steps);
        compute(s.value, stage, steps);
        steps.push_back({NestStep::Kind::kStore, static_cast<int>(i)});
      }
    // What a later loop reloads, also if this loop did not need it itself.
    for (std::size_t i = 0; i < nest_.values.size(); ++i)
      if (kept_[i] >= 0 && nest_.values[i].stage == stage) {
        compute(static_cast<ValueId>(i), stage, steps);
        steps.push_back({NestStep::Kind::kKeep, static_cast<int>(i), kept_[i]});
      }
  }

  // Appends what is needed for an element value, arguments first, in the order of the values.
  void compute(ValueId root, int stage, std::vector<NestStep>& steps) {
    std::vector<ValueId> stack{root};
    std::vector<ValueId> needed;
    while (!stack.empty()) {
      const ValueId id = stack.back();
      stack.pop_back();
      const auto at = static_cast<std::size_t>(id);
      if (!nest_.values[at].element || done_[at]) continue;
      done_[at] = true;
      needed.push_back(id);
      if (kept_[at] >= 0 && nest_.values[at].stage < stage) continue;
      for (ValueId arg : nest_.values[at].args)
        if (arg >= 0) stack.push_back(arg);
    }
    std::sort(needed.begin(), needed.end());
    for (ValueId id : needed) {
      const auto at = static_cast<std::size_t>(id);
      if (kept_[at] >= 0 && nest_.values[at].stage < stage)
        steps.push_back({NestStep::Kind::kReload, id, kept_[at]});
      else
        steps.push_back({NestStep::Kind::kCompute, id});
    }
  }

  Nest& nest_;
  int num_loops_ = 0;
  std::vector<int> kept_;  // by value: scratch row, or -1
  std::vector<bool> done_;
};

}  // namespace

void schedule(Nest& nest) { Scheduler(nest).run(); }

}  // namespace fx::loops
