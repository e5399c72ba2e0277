// OutputSummary: what is kept of one tensor that an op made on one rank: statistics, where the first number stands that
// is not finite, a hash of the numbers, and a fingerprint that is the same however the tensor is cut over ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/tensor.h"

namespace sextant {

// Sums Σ ±x over the elements, with signs drawn from the element's place in the whole tensor. They are linear: those of
// a tensor's shards, of its partial sums and of its microbatches add up to that of the whole. The difference of two is
// that of a random projection, of the size of the tensors' distance.
struct Fingerprint {
  static constexpr size_t kProjections = 8;
  std::array<double, kProjections> sums{};

  Fingerprint& operator+=(const Fingerprint& other);
  double norm() const;                              // about the Euclidean norm of the tensor
  double distance(const Fingerprint& other) const;  // about that of their difference
};

struct OutputSummary {
  int64_t count = 0;                            // without padding
  int64_t non_finite = 0;                       // NaN and infinities
  double least = 0, most = 0, sum_squares = 0;  // of those that are finite
  uint64_t hash = 0;
  Fingerprint fingerprint;
  std::vector<int64_t> first_non_finite;  // its index in the whole tensor, a number per dim; empty: none

  double rms() const;
  void merge(const OutputSummary& other);  // statistics and fingerprint of both together; hash and place of the first
};

// `whole` is the shape of the tensor over all ranks; the elements of this microbatch begin at `first_element` of what
// is fingerprinted.
OutputSummary summarize(const Tensor& tensor, const GlobalShape& whole, int64_t first_element);

}  // namespace sextant
