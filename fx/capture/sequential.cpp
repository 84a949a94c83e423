#include "fx/capture/sequential.h"

#include <torch/nn/modules/container/sequential.h>

#include "fx/capture/proxy_tensor.h"

namespace fx::detail {

TraceArg trace_sequential(Tracer& tracer, torch::nn::SequentialImpl& sequential,
                          const Proxy& input) {
  TraceArg value = input;
  for (auto child = sequential.begin(); child != sequential.end(); ++child) {
    const std::shared_ptr<torch::nn::Module> module = child->ptr();
    const TraceArg argument = value;
    value = tracer.call_module(*module,
                               [&]() -> TraceArg {
                                 const Proxy proxy = argument.kind() == TraceArg::Kind::kProxy
                                                         ? argument.proxy()
                                                         : Proxy(argument.tensor());
                                 return child->forward<at::Tensor>(static_cast<at::Tensor>(proxy));
                               },
                               {argument}, {});
  }
  return value;
}

}  // namespace fx::detail
