// Precompiled header of stages that use LibTorch: tensors, dispatcher, IValue, nn::Module.
#pragma once

#include "light.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/library.h>
#include <torch/nn/module.h>
