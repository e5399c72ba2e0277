// The scores of a token's experts from the router's logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ir/attrs.h"

namespace sextant::cpu {

inline bool scores_are_sigmoids(const Attrs& attrs) {
  return attrs.integer_or("sigmoid", 0) != 0;
}

template <class T>
void softmax_row(const T* logits, T* scores, int64_t n) {
  T top = *std::max_element(logits, logits + n), sum = 0;
  for (int64_t e = 0; e < n; ++e) sum += scores[e] = std::exp(logits[e] - top);
  for (int64_t e = 0; e < n; ++e) scores[e] /= sum;
}

template <class T>
void sigmoid_row(const T* logits, T* scores, int64_t n) {
  for (int64_t e = 0; e < n; ++e) scores[e] = 1 / (1 + std::exp(-logits[e]));
}

}  // namespace sextant::cpu
