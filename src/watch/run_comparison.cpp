#include "watch/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/load.h"

namespace sextant {

namespace {

constexpr size_t kFewestSteps = 8;
constexpr double kStandardErrors = 2;  // that a difference must exceed

// The values of a column up to a place, without gaps; `reached`: the tokens at the last of them.
std::vector<double> values_until(const RunColumns& run, const MetricColumn& column, PlaceOnAxis end, double& reached) {
  std::vector<double> values;
  for (size_t i = 0; i < column.size() && run.x(end.axis, column.row(i)) <= end.x; ++i) {
    if (std::isnan(column.value(i))) continue;
    values.push_back(column.value(i));
    reached = run.x(XAxis::tokens, column.row(i));
  }
  return values;
}

std::vector<double> residuals_of_line(const std::vector<double>& y) {
  auto n = static_cast<double>(y.size());
  double mean_x = (n - 1) / 2, mean_y = 0, xx = 0, xy = 0;
  for (double v : y) mean_y += v / n;
  for (size_t i = 0; i < y.size(); ++i) {
    double x = static_cast<double>(i) - mean_x;
    xx += x * x, xy += x * (y[i] - mean_y);
  }
  double slope = xx > 0 ? xy / xx : 0;
  std::vector<double> residuals(y.size());
  for (size_t i = 0; i < y.size(); ++i) residuals[i] = y[i] - mean_y - slope * (static_cast<double>(i) - mean_x);
  return residuals;
}

// How many steps one independent one is worth: 1 + 2 times the sum of autocorrelations, summed in pairs while these are
// positive (Geyer's initial positive sequence).
double correlation_time(const std::vector<double>& residuals, double variance) {
  if (variance <= 0) return 1;
  auto correlation = [&](size_t lag) {
    double sum = 0;
    for (size_t i = lag; i < residuals.size(); ++i) sum += residuals[i] * residuals[i - lag];
    return sum / static_cast<double>(residuals.size()) / variance;
  };
  double time = -1;
  for (size_t lag = 0; lag + 1 < residuals.size() / 2; lag += 2) {
    double pair = correlation(lag) + correlation(lag + 1);
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return std::clamp(time, 1.0, static_cast<double>(residuals.size()));
}

double median_of(const MetricColumn* column) {
  std::vector<float> values;
  for (size_t i = 0; column && i < column->size(); ++i)
    if (!std::isnan(column->value(i))) values.push_back(column->value(i));
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::optional<double> flops_at(const RunColumns& columns, size_t row) {
  return columns.has_axis(XAxis::flops) ? std::optional(columns.x(XAxis::flops, row)) : std::nullopt;
}

RunFigures figures_of(const WatchedRun& run, size_t window) {
  const RunColumns& columns = run.columns();
  RunFigures figures{.name = run.name()};
  if (columns.rows() == 0) return figures;
  size_t last = columns.rows() - 1;
  figures.tokens = columns.x(XAxis::tokens, last);
  figures.seconds = columns.x(XAxis::seconds, last);
  figures.flops = flops_at(columns, last);
  figures.steps = static_cast<int64_t>(columns.x(XAxis::step, last));
  figures.final_loss = loss_at(columns, {XAxis::tokens, figures.tokens}, window);
  if (auto value = columns.last("validation_loss")) figures.validation_loss = *value;
  figures.tokens_per_s = median_of(columns.column("tokens_per_s"));
  return figures;
}

// At the first row from which the mean of a window is at or below `loss`.
std::optional<LossReached> reached_at(const RunColumns& run, double loss, size_t window) {
  const MetricColumn* column = run.column("loss");
  double sum = 0;
  std::vector<double> recent;
  for (size_t i = 0; column && i < column->size(); ++i) {
    if (std::isnan(column->value(i))) continue;
    recent.push_back(column->value(i));
    sum += column->value(i);
    if (recent.size() > window) sum -= recent[recent.size() - window - 1];
    if (recent.size() < window || sum / static_cast<double>(window) > loss) continue;
    size_t row = column->row(i);
    return LossReached{run.x(XAxis::tokens, row), run.x(XAxis::seconds, row), flops_at(run, row)};
  }
  return std::nullopt;
}

// Of one model, equal tokens are equal FLOPs.
std::optional<EqualFlops> losses_at_equal_flops(const WatchedRun& a, const WatchedRun& b, const RunComparison& of,
                                                size_t window) {
  constexpr double kSameModel = 1e-6;
  if (!of.a.flops || !of.b.flops) return std::nullopt;
  double per_token = *of.a.flops / of.a.tokens, others = *of.b.flops / of.b.tokens;
  if (!(std::fabs(per_token - others) > kSameModel * per_token)) return std::nullopt;
  double shared = std::min(*of.a.flops, *of.b.flops);
  std::optional<LossEstimate> loss_a = loss_at(a.columns(), {XAxis::flops, shared}, window),
                              loss_b = loss_at(b.columns(), {XAxis::flops, shared}, window);
  if (!loss_a || !loss_b) return std::nullopt;
  return EqualFlops{.flops = shared, .a = *loss_a, .b = *loss_b};
}

void compare_configs(const WatchedRun& a, const WatchedRun& b, RunComparison& comparison) {
  ConfigValues values[2];
  for (size_t i = 0; i < 2; ++i) {
    const WatchedRun& run = i == 0 ? a : b;
    std::filesystem::path file = run.directory() / "config.toml";
    // The server follows no link out of a run.
    if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file))) {
      comparison.config_remark = fmt::format("{} has no config.toml", run.name());
      return;
    }
    try {
      values[i] = config_values(load_config(file));
    } catch (const UserError& error) {  // of another version
      comparison.config_remark = error.what();
      return;
    }
  }
  comparison.config = changes_between(values[0], values[1]);
}

}  // namespace

std::string_view name_of(ComparisonVerdict verdict) {
  switch (verdict) {
    case ComparisonVerdict::better:
      return "better";
    case ComparisonVerdict::worse:
      return "worse";
    case ComparisonVerdict::no_difference:
      return "no difference";
    case ComparisonVerdict::unknown:
      return "unknown";
  }
  return "";
}

std::optional<LossEstimate> loss_at(const RunColumns& run, PlaceOnAxis end, size_t steps) {
  const MetricColumn* column = run.column("loss");
  if (!column) return std::nullopt;
  LossEstimate estimate;
  std::vector<double> values = values_until(run, *column, end, estimate.tokens);
  if (values.size() > steps) values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(steps));
  if (values.size() < kFewestSteps) return std::nullopt;
  auto n = static_cast<double>(values.size());
  for (double value : values) estimate.mean += value / n;
  std::vector<double> residuals = residuals_of_line(values);
  double squares = 0;
  for (double residual : residuals) squares += residual * residual;
  estimate.steps = values.size();
  estimate.independent = n / correlation_time(residuals, squares / n);
  // Two are used up by the line.
  estimate.error = std::sqrt(squares / (n - 2) / estimate.independent);
  return estimate;
}

size_t comparison_window(const std::vector<const WatchedRun*>& runs, size_t wanted) {
  if (wanted > 0) return wanted;
  size_t shortest = runs.empty() ? 0 : runs.front()->columns().rows();
  for (const WatchedRun* run : runs) shortest = std::min(shortest, run->columns().rows());
  return std::min(std::clamp<size_t>(shortest / 20, 20, 1000), std::max(kFewestSteps, shortest / 2));
}

RunComparison compare_runs(const WatchedRun& a, const WatchedRun& b, size_t window, const SeedNoise& seeds) {
  window = comparison_window({&a, &b}, window);
  RunComparison comparison{.a = figures_of(a, window), .b = figures_of(b, window)};
  compare_configs(a, b, comparison);
  double shared = std::min(comparison.a.tokens, comparison.b.tokens);
  comparison.equal_a = loss_at(a.columns(), {XAxis::tokens, shared}, window);
  comparison.equal_b = loss_at(b.columns(), {XAxis::tokens, shared}, window);
  comparison.equal_flops = losses_at_equal_flops(a, b, comparison, window);
  if (comparison.equal_a && comparison.equal_b) {
    comparison.difference = comparison.equal_b->mean - comparison.equal_a->mean;
    comparison.curve_error = std::hypot(comparison.equal_a->error, comparison.equal_b->error);
    bool other_seed = std::ranges::count(comparison.config, "train.seed", &ConfigChange::key) > 0;
    if (other_seed)
      comparison.seed_error = seeds.share * std::hypot(comparison.equal_a->mean, comparison.equal_b->mean);
    comparison.seeds = seeds;
    comparison.error = std::hypot(comparison.curve_error, comparison.seed_error);
    bool clear = std::fabs(comparison.difference) > kStandardErrors * comparison.error && comparison.difference != 0;
    comparison.verdict = !clear                      ? ComparisonVerdict::no_difference
                         : comparison.difference < 0 ? ComparisonVerdict::better
                                                     : ComparisonVerdict::worse;
  }
  if (comparison.a.final_loss && comparison.b.final_loss) {
    double loss = std::max(comparison.a.final_loss->mean, comparison.b.final_loss->mean);
    comparison.reached_loss = loss;
    comparison.a_reached = reached_at(a.columns(), loss, window);
    comparison.b_reached = reached_at(b.columns(), loss, window);
  }
  return comparison;
}

std::vector<RunComparison> compare_with_first(const std::vector<const WatchedRun*>& runs, size_t window) {
  std::vector<RunComparison> comparisons;
  SeedNoise seeds = seed_noise_of(runs, window);
  for (size_t i = 1; i < runs.size(); ++i) comparisons.push_back(compare_runs(*runs[0], *runs[i], window, seeds));
  return comparisons;
}

}  // namespace sextant
