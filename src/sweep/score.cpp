#include "sweep/score.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "watch/metrics_line.h"

namespace sextant {

namespace {

constexpr size_t kFewestSteps = 10;  // of the mean

std::optional<double> number_in(const MetricsLine& line, std::string_view field) {
  const double* found = line.number(field);
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace

const std::optional<double>& RunScore::in(LossMeasure measure) const {
  switch (measure) {
    case LossMeasure::validation_loss:
      return validation_loss;
    case LossMeasure::bits_per_byte:
      return bits_per_byte;
    case LossMeasure::loss:
      break;
  }
  return loss;
}

double RunScore::value(LossMeasure measure) const {
  const std::optional<double>& chosen = in(measure);
  return diverged || !chosen ? std::numeric_limits<double>::infinity() : *chosen;
}

RunScore score_of(const std::filesystem::path& run) {
  RunScore score;
  std::filesystem::path file = run / "metrics.jsonl";
  if (!std::filesystem::exists(file)) return score;
  std::vector<double> losses, rates;
  std::istringstream lines(read_file(file));
  MetricsLine line;
  for (std::string text; std::getline(lines, text);) {
    std::optional<double> step = line.parse(text) ? number_in(line, "step") : std::nullopt;
    if (!step) continue;  // cut off by a crash
    score.steps = static_cast<int64_t>(*step);
    std::optional<double> loss = number_in(line, "loss");
    score.diverged = !loss;
    if (loss) losses.push_back(*loss);
    if (auto rate = number_in(line, "tokens_per_s")) rates.push_back(*rate);
    if (auto validation = number_in(line, "validation_loss")) score.validation_loss = validation;
    if (auto bits = number_in(line, "bits_per_byte")) score.bits_per_byte = bits;
  }
  auto last = [](const std::vector<double>& all) {
    size_t count = std::min(all.size(), std::max(kFewestSteps, all.size() / 10));
    return std::vector<double>(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
  };
  if (std::vector<double> tail = last(losses); !tail.empty())
    score.loss = std::accumulate(tail.begin(), tail.end(), 0.0) / static_cast<double>(tail.size());
  if (std::vector<double> tail = last(rates); !tail.empty()) {
    std::ranges::sort(tail);
    score.tokens_per_s = tail[tail.size() / 2];
  }
  return score;
}

}  // namespace sextant
