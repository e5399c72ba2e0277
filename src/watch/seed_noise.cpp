#include "watch/seed_noise.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "config/changes.h"
#include "config/schema.h"
#include "config/stored_config.h"
#include "watch/run_comparison.h"

namespace sextant {

namespace {

constexpr double kAssumedWeight = 2;  // degrees of freedom that the assumption counts for

// Config values that determine the losses of a run, without its seed; empty where the config is missing or invalid.
std::string settings_but_seed(const WatchedRun& run) {
  std::filesystem::path file = run.directory() / "config.toml";
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return "";
  try {
    ConfigValues values = stored_config(file);
    std::string text;
    for (const Key& key : schema())
      if (auto at = values.find(key.name);
          at != values.end() && affects_of(key) == Affects::result && key.name != "train.seed")
        text += fmt::format("{}={}\n", at->first, at->second);
    return text;
  } catch (const UserError&) {  // no TOML
    return "";
  }
}

struct Spread {
  double squares = 0, freedom = 0;  // of shares
};

Spread spread_of(const std::vector<const WatchedRun*>& group, size_t window) {
  double tokens = std::numeric_limits<double>::infinity();
  for (const WatchedRun* run : group)
    if (run->columns().rows() > 0)
      tokens = std::min(tokens, run->columns().x(XAxis::tokens, run->columns().rows() - 1));
  std::vector<LossEstimate> losses;
  for (const WatchedRun* run : group)
    if (auto loss = loss_at(run->columns(), {XAxis::tokens, tokens}, comparison_window(group, window)))
      losses.push_back(*loss);
  if (losses.size() < 2) return {};
  auto n = static_cast<double>(losses.size());
  double mean = 0, of_curves = 0, squares = 0;
  for (const LossEstimate& loss : losses) mean += loss.mean / n, of_curves += loss.error * loss.error / n;
  for (const LossEstimate& loss : losses) squares += (loss.mean - mean) * (loss.mean - mean);
  double beyond = std::max(0.0, squares / (n - 1) - of_curves) / (mean * mean);
  return {beyond * (n - 1), n - 1};
}

}  // namespace

SeedNoise seed_noise_of(const std::vector<const WatchedRun*>& runs, size_t window) {
  std::map<std::string, std::vector<const WatchedRun*>> groups;
  for (const WatchedRun* run : runs)
    if (std::string settings = settings_but_seed(*run); !settings.empty()) groups[settings].push_back(run);
  SeedNoise noise;
  double squares = kAssumedWeight * noise.share * noise.share, freedom = kAssumedWeight;
  for (const auto& [settings, group] : groups) {
    Spread spread = group.size() > 1 ? spread_of(group, window) : Spread{};
    if (spread.freedom == 0) continue;
    squares += spread.squares;
    freedom += spread.freedom;
    noise.runs += group.size();
  }
  noise.share = std::sqrt(squares / freedom);
  return noise;
}

}  // namespace sextant
