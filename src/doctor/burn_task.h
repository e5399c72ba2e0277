// BurnTask: one Program to burn with, its random inputs, and what its outputs must be. Enters: a rank's place and the
// device's target; leaves: digests of the outputs that can be compared with other repeats, other ranks, and the truth.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "exec/executor.h"

namespace sextant {

enum class Between : uint8_t {
  exact,    // ranks must agree bit by bit
  rounded,  // up to the order of additions
};

inline constexpr int kProjections = 8;

// Of one run's outputs. Plain bytes: it travels between ranks.
struct Digest {
  uint64_t bits = 0;                               // a hash of all bytes
  std::array<double, kProjections> projections{};  // sums of all elements with random signs
  double size = 0;                                 // root of the sum of squares
  int64_t wrong = 0;                               // elements, or sums of them, that arithmetic contradicts
};

class BurnTask {
 public:
  virtual ~BurnTask() = default;
  virtual std::string name() const = 0;
  virtual Between between() const = 0;
  virtual void fill(uint64_t seed) = 0;  // new inputs: the same on every rank, or each its part
  virtual void run() = 0;
  virtual Digest digest() const = 0;
};

std::unique_ptr<BurnTask> burn_gemms(Executor& executor, int ranks);
std::unique_ptr<BurnTask> burn_attention(Executor& executor, int ranks);
std::unique_ptr<BurnTask> burn_collectives(Executor& executor, const RankContext& context, int ranks);

}  // namespace sextant
