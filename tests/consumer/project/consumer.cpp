// The smallest user of an installed fxcpp.
#include <ATen/ATen.h>

#include <cstdio>

int main() {
  at::Tensor y = at::relu(at::tensor({-1.0F, 2.0F}));
  std::printf("consumer: %g\n", y.sum().item<double>());
  return y.sum().item<double>() == 2.0 ? 0 : 1;
}
