// Current activity of the GPUs of this host, for the report of a hang.
#pragma once

#include <chrono>
#include <string>

namespace sextant {

// "GPU 0 is 100 % busy at 1980 MHz, GPU 1 is idle"; empty where there is none. A driver that hangs too is not waited
// for longer than this, which is said then.
std::string gpu_states(std::chrono::milliseconds at_most = std::chrono::milliseconds(2000));

}  // namespace sextant
