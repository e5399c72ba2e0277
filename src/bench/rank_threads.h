// The ranks of a benchmark as threads of this process. When one throws, the others are woken, and what comes out is
// what the first of them threw.
#pragma once

#include <functional>
#include <memory>

#include "exec/executor.h"

namespace sextant {

// Makes the executor of one rank.
using ExecutorMaker = std::function<std::unique_ptr<Executor>(const RankContext& context, int threads)>;

// One rank has no transport.
void run_rank_threads(int ranks, const std::function<void(const RankContext& context)>& work);

}  // namespace sextant
