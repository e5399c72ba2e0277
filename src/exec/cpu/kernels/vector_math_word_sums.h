// Sums of 32-bit words: what checksums of states are made of (exec/state_checksums.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sextant::cpu {

// Modulo 2^64, of words that need not be aligned.
uint64_t word_sum(const std::byte* bytes, int64_t words);

}  // namespace sextant::cpu
