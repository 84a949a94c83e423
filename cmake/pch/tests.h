// Precompiled header of tests: all of LibTorch's C++ API and GoogleTest.
#pragma once

#include "torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
