// One record for everything that takes time, measured or simulated.
#pragma once

#include <string>
#include <vector>

namespace sextant {

struct Event {
  std::string path;  // "layers.3.attn.qkv"
  std::string name;  // "linear"
  double start_s = 0;
  double end_s = 0;
};

using Trace = std::vector<Event>;

}  // namespace sextant
