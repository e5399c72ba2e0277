// Sensor readings of one GPU, from the driver's management library. Empty where the library is missing.
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
