// The CPU's probe: GEMMs of our own kernels and streams of plain loops, on one team of threads.
#pragma once

#include <memory>

#include "exec/probe.h"

namespace sextant {

std::unique_ptr<DeviceProbe> make_cpu_probe(int threads);  // 0 = one per core

}  // namespace sextant
