// Packing: a range of tokens, documents and their end-of-text tokens in a row, cut to samples. Sample i is the tokens
// [i·seq, i·seq + seq] of the range: seq inputs, and the same moved on by one as targets. Neighbours share one token,
// so that every token but the range's first is a target once; what is left at the end is less than a sample.
#pragma once

#include <cstdint>

namespace sextant {

struct TokenRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

struct Packing {
  TokenRange range;
  int64_t seq = 1;

  int64_t samples() const { return range.size() < 1 ? 0 : (range.size() - 1) / seq; }
  int64_t first_token(int64_t sample) const { return range.begin + sample * seq; }
};

struct Split {
  TokenRange train, validation;
};

// The last `validation_fraction` (in [0, 1), else UserError) of the tokens is kept for validation. The two share none.
Split split_tail(int64_t tokens, double validation_fraction);

}  // namespace sextant
