#pragma once

#include "tools/fxcpp/command.h"

namespace fx::cli {

// int run_info(Args args); and so on: each returns the exit status, or throws.
#define FXCPP_VERB(name, arguments, summary) int run_##name(Args args);
#include "tools/fxcpp/verbs.def"
#undef FXCPP_VERB

}  // namespace fx::cli
