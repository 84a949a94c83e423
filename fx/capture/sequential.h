#pragma once

#include "fx/capture/tracer.h"

namespace torch::nn {
class SequentialImpl;
}

namespace fx::detail {

/// Runs the children of a Sequential one by one, each with its own boundary.
TraceArg trace_sequential(Tracer& tracer, torch::nn::SequentialImpl& sequential,
                          const Proxy& input);

}  // namespace fx::detail
