// Burn: computes the same things again and again from random data, through the real executor, and compares: with the
// run before, with the other ranks, and with what arithmetic says must come out. What differs is silent corruption.
//
// GEMMs and collectives are made of small whole numbers, so that every order of adding gives the same bits on
// every device; attention is compared bit for bit with itself, and between ranks within rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "exec/executor.h"

namespace sextant {

struct BurnOptions {
  double seconds = 0;                                 // one round at least
  uint64_t seed = 1;                                  // what is found can be repeated with the same one
  std::function<bool()> stop = [] { return false; };  // asked on rank 0 after every round
  std::vector<std::string> hosts = {};                // of the ranks, where known: findings name them
  std::function<void(int64_t rounds, double seconds)> progress = [](int64_t, double) {};
};

// Every rank calls it together with an executor that repeats its bits. The findings are those of all ranks, on rank 0.
std::vector<Finding> burn(Executor& executor, const RankContext& context, const BurnOptions& options);

}  // namespace sextant
