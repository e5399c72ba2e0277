#include "supervise/retry_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant {

RetryPolicy::Decision RetryPolicy::after(const Cause& cause, int64_t step, int64_t newest_checkpoint) {
  const CauseInfo& info = info_of(cause.kind);
  if (info.response != Response::retry) return {.why = "a restart gives the same"};
  if (newest_checkpoint > newest_) failures_ = 0;
  newest_ = std::max(newest_, newest_checkpoint);
  ++failures_;
  if (failures_ > limits_.retries)
    return {.why = fmt::format("{} failures without a new checkpoint between them (--retries {})", failures_,
                               limits_.retries)};
  if (info.most > 0) {
    Limited& seen = limited_[cause.kind];
    if (newest_checkpoint > seen.step) seen.times = 0;
    seen.step = std::max(seen.step, step);
    if (++seen.times > info.most)
      return {.why = fmt::format("{} again, with no checkpoint beyond step {}", info.name, seen.step)};
  }
  Duration wait{0};
  for (int64_t i = 2; i <= failures_; ++i)
    wait = wait.count() == 0 ? limits_.first_wait : std::min(2 * wait, limits_.longest_wait);
  return {.retry = true, .wait = std::min(wait, limits_.longest_wait)};
}

}  // namespace sextant
