// NVIDIA's management library, opened where it is: what the sensors of one GPU say. Nothing where it is missing.
#pragma once

#include <string>

#include "exec/probe.h"

namespace sextant {

struct SensorReadings {
  Readings readings;
  std::string driver;  // its version
};

SensorReadings read_sensors(int cuda_device);

}  // namespace sextant
