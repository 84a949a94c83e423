// Compiles nothing: the target it belongs to exists for its precompiled header.
