#include "base/nvml.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

// On every machine: without the library nothing can be asked, and with it what it lacks is missing rather than fatal.
TEST(Nvml, WhatIsMissingIsNoAnswer) {
  Nvml nvml;
  EXPECT_TRUE(nvml.found() || !nvml.started());
  EXPECT_FALSE(nvml.ask("nvmlNoSuchFunction"));
  EXPECT_EQ(nvml.value<unsigned>("nvmlNoSuchFunction"), std::nullopt);
  EXPECT_EQ(nvml.text("nvmlNoSuchFunction"), std::nullopt);
  EXPECT_EQ(nvml.value<unsigned>("nvmlDeviceGetCount_v2").has_value(), nvml.started());
}

}  // namespace
}  // namespace sextant
