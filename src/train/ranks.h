// Ranks as threads of this process: each runs the same function with its own seat. When one of them throws, the others are
// woken and end too, and the first error is the one that comes out.
#pragma once

#include <chrono>
#include <functional>

#include "exec/executor.h"

namespace sextant {

void run_ranks(int ranks, std::chrono::milliseconds timeout, const std::function<void(const RankSeat&)>& work);

}  // namespace sextant
