#include "train/health/repeated_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant {

std::optional<std::string> RepeatedSteps::note(const StepMetrics& m) {
  if (m[number::lost_rows] == 0) return std::nullopt;
  std::erase_if(recent_, [&](const Repeated& repeated) { return repeated.step <= m.step - kWindow; });
  recent_.push_back({m.step, m[number::rounds_needed]});
  auto count = static_cast<int64_t>(recent_.size());
  if (count < kMany) return std::nullopt;
  int64_t rounds = 1;
  for (const Repeated& repeated : recent_) rounds = std::max(rounds, repeated.rounds);
  recent_.clear();
  return fmt::format(
      "{} of the last {} steps were repeated, because tokens asked for more rows than mesh.expert_capacity = {} plans\n"
      "  hint: mesh.expert_capacity={} would have served them at once, for more memory; a larger "
      "model.experts.balance_loss spreads tokens more evenly",
      count, std::min(m.step, kWindow), capacity_, capacity_ * static_cast<double>(rounds));
}

}  // namespace sextant
