#pragma once

namespace fx {

/// While it lives, the GraphModules that this thread makes are lazy from the start, or not: by
/// hand, by a capture, a copy, a split, a load (GraphModule::set_lazy_recompile). A module then
/// builds its program at its first call, so those that are only edited, printed or saved never do.
///
///     const fx::UseLazyRecompile lazy;
///     auto module = fx::symbolic_trace(net);  // module->lazy_recompile()
///
/// torch.fx: _use_lazy_graph_module.
class UseLazyRecompile {
 public:
  explicit UseLazyRecompile(bool lazy = true) noexcept;
  ~UseLazyRecompile();
  UseLazyRecompile(const UseLazyRecompile&) = delete;
  UseLazyRecompile& operator=(const UseLazyRecompile&) = delete;

  /// Whether GraphModules made now, on this thread, are lazy; false outside of any.
  static bool active() noexcept;

 private:
  bool before_;
};

}  // namespace fx
