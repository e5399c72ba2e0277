// From logits to one token: temperature, then the k likeliest, then the likeliest that together hold probability p.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sextant {

struct SamplingOptions {
  double temperature = 0.8;  // 0 = always the likeliest
  int64_t top_k = 0;         // 0 = all
  double top_p = 1.0;        // 1 = all
};

class TokenSampler {
 public:
  explicit TokenSampler(SamplingOptions options) : options_(options) {}

  // `uniform` in [0, 1) decides; the same logits and number give the same token. Ties go to the lower id.
  uint32_t sample(std::span<const float> logits, double uniform);

 private:
  struct Candidate {
    double weight;
    uint32_t id;
  };
  SamplingOptions options_;
  std::vector<Candidate> candidates_;
};

}  // namespace sextant
