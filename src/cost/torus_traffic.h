// Share of a device's rate that the links of a torus allow for messages of a group. Inside cost/ only.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/topology.h"

namespace sextant {

// `devices` ascending; `unit_devices` of them share a place in the grid.
TrafficShares torus_traffic(const Torus& torus, int64_t unit_devices, const std::vector<int64_t>& devices);

}  // namespace sextant
