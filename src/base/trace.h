// One record for everything that takes time, measured or simulated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

struct Event {
  std::string path;  // "layers.3.attn.qkv"
  std::string name;  // "linear"
  double start_s = 0;
  double end_s = 0;
  std::string lane = "compute";
  double flops = 0;   // executed
  int64_t bytes = 0;  // that must cross memory
  int rank = 0;
  int64_t step = 0;        // simulated: the microbatch
  std::string phase = {};  // "forward", "backward", "weight", "update"; empty: not known
  std::string axes = {};   // a message's: "dp", "dp,cp"; empty: no message
};

using Trace = std::vector<Event>;

}  // namespace sextant
