// Which rank of a run this is, and how it reaches the others.
#pragma once

#include "comm/transport.h"

namespace sextant {

// Without a transport it is the only rank.
struct RankContext {
  int rank = 0;
  Transport* transport = nullptr;
};

}  // namespace sextant
