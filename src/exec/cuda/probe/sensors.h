// What the sensors of one GPU say, through the driver's management library. Nothing where it is missing.
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
