#include "generate/sampling.h"

#include <algorithm>
#include <cmath>

namespace sextant {

uint32_t TokenSampler::sample(std::span<const float> logits, double uniform) {
  auto likeliest = static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options_.temperature <= 0) return likeliest;
  double top = static_cast<double>(logits[likeliest]);
  candidates_.clear();
  for (size_t id = 0; id < logits.size(); ++id)
    candidates_.push_back(
        {std::exp((static_cast<double>(logits[id]) - top) / options_.temperature), static_cast<uint32_t>(id)});

  bool cut = options_.top_k > 0 || options_.top_p < 1;
  if (cut) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size())
      candidates_.resize(static_cast<size_t>(options_.top_k));
  }
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  if (options_.top_p < 1) {
    double wanted = total * options_.top_p, sum = 0;
    size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || sum < wanted)) sum += candidates_[kept++].weight;
    candidates_.resize(kept);
    total = sum;
  }
  double at = uniform * total;
  for (const Candidate& c : candidates_) {
    at -= c.weight;
    if (at < 0) return c.id;
  }
  return candidates_.back().id;  // rounding left a crumb
}

}  // namespace sextant
