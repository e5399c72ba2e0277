#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "base/printable.h"
#include "base/units.h"

namespace sextant {

namespace {

// "nan", whatever its sign bit is.
double without_sign_of_nan(double x) {
  return std::isnan(x) ? std::fabs(x) : x;
}

// "  busiest expert 1.6x the mean, 2 experts unused": of all layers.
std::string load_text(const std::vector<double>& peaks, const std::vector<int64_t>& unused_experts) {
  std::string text = fmt::format("  busiest expert {:.1f}x the mean", std::ranges::max(peaks));
  int64_t unused = std::accumulate(unused_experts.begin(), unused_experts.end(), int64_t{0});
  if (unused > 0) text += fmt::format(", {} unused", unused);
  return text;
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t last_step, int64_t log_every, Lines lines)
    : terminal_(lines == Lines::as_found && ::isatty(STDOUT_FILENO) == 1),
      first_step_(first_step),
      last_step_(last_step),
      log_every_(log_every),
      start_(Clock::now()) {}

void Progress::clear_line() {
  if (line_open_) fmt::print("\r\033[K");
  line_open_ = false;
}

void Progress::say(std::string_view line) {
  clear_line();
  fmt::print("{}\n", printable(line, Newlines::kept));
  std::fflush(stdout);
}

double Progress::seconds_left(int64_t step) const {
  double spent = std::chrono::duration<double>(Clock::now() - start_).count();
  return spent / static_cast<double>(step - first_step_ + 1) * static_cast<double>(last_step_ - step);
}

void Progress::step(const StepMetrics& m) {
  bool keep = m.step == first_step_ || m.step == last_step_ || m.step % log_every_ == 0 ||
              m.find(number::validation_loss) || !m.is_finite() || m.is_update_skipped();
  if (!terminal_ && !keep) return;
  std::string line = fmt::format("step {:>{}}/{}  loss {:.4f}  grad norm {:.3f}  lr {:.2e}  {:>7} tokens/s", m.step,
                                 fmt::formatted_size("{}", last_step_), last_step_,
                                 without_sign_of_nan(m[number::loss]), without_sign_of_nan(m[number::grad_norm]),
                                 m[number::lr], human_count(static_cast<int64_t>(m[number::tokens_per_s])));
  if (m.step < last_step_) line += fmt::format("  {} left", human_duration(seconds_left(m.step)));
  if (auto peaks = m.find(number::expert_load_peak)) line += load_text(*peaks, m[number::unused_experts]);
  if (auto lost = m.find(number::lost_rows))
    line += fmt::format("  repeated: {} rows more than planned", human_count(*lost));
  if (m.is_update_skipped())
    line += std::isfinite(m[number::grad_norm]) ? "  (gradient norm above its limit: update skipped)"
                                                : "  (gradient not finite: update skipped)";
  if (auto loss = m.find(number::validation_loss)) {
    auto bits = m.find(number::bits_per_byte);
    line += fmt::format("  validation {:.4f} (perplexity {:.4g}{})", *loss, m[number::perplexity],
                        bits ? fmt::format(", {:.4f} bits/byte", *bits) : "");
  }
  clear_line();
  fmt::print("{}{}", line, keep ? "\n" : "");
  line_open_ = !keep;
  std::fflush(stdout);
}

}  // namespace sextant
