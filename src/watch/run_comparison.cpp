#include "watch/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// The value of a field that few rows have, at a place: between the rows around it, or the last one's where none
// follows.
std::optional<double> interpolated(const RunColumns& run, const MetricColumn* column, PlaceOnAxis at) {
  std::optional<double> value;
  double value_x = 0;
  for (size_t i = 0; column && i < column->size(); ++i) {
    if (std::isnan(column->value(i))) continue;
    double x = run.x(at.axis, column->row(i)), y = column->value(i);
    if (x > at.x) return value ? std::optional(*value + (y - *value) * (at.x - value_x) / (x - value_x)) : std::nullopt;
    value = y, value_x = x;
  }
  return value;
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
  if (auto value = columns.last("bits_per_byte")) figures.bits_per_byte = *value;
  figures.tokens_per_s = median_of(columns.column("tokens_per_s"));
  return figures;
}

// At the first row from which the mean of a window is at or below `loss`; of validations each counts by itself.
std::optional<LossReached> reached_at(const RunColumns& run, LossMeasure measure, double loss, size_t steps) {
  const MetricColumn* column = run.column(field_of(measure));
  size_t window = measure == LossMeasure::loss ? steps : 1;
  double sum = 0;
  std::vector<double> recent;
  for (size_t i = 0; column && i < column->size(); ++i) {
    if (std::isnan(column->value(i))) continue;
    recent.push_back(column->value(i));
    sum += column->value(i);
    if (recent.size() > window) sum -= recent[recent.size() - window - 1];
    double mean = window == 1 ? recent.back() : sum / static_cast<double>(window);
    if (recent.size() < window || mean > loss) continue;
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
  LossMeasure measure = *of.basis.measure;
  std::optional<LossEstimate> loss_a = measured_at(a.columns(), measure, {XAxis::flops, shared}, window),
                              loss_b = measured_at(b.columns(), measure, {XAxis::flops, shared}, window);
  if (!loss_a || !loss_b) return std::nullopt;
  return EqualFlops{.flops = shared, .a = *loss_a, .b = *loss_b};
}

void compare_configs(const RunText& a, const RunText& b, RunComparison& comparison) {
  for (const RunText* text : {&a, &b})
    if (!text->config) {
      comparison.config_remark = text->remark;
      return;
    }
  comparison.config = changes_between(*a.config, *b.config);
}

// Of equal tokens: the losses, their difference and its noise, and what it means.
void judge(const WatchedRun& a, const WatchedRun& b, size_t window, RunComparison& c) {
  PlaceOnAxis shared{XAxis::tokens, std::min(c.a.tokens, c.b.tokens)};
  c.equal_a = measured_at(a.columns(), *c.basis.measure, shared, window);
  c.equal_b = measured_at(b.columns(), *c.basis.measure, shared, window);
  if (!c.equal_a || !c.equal_b) return;
  c.difference = c.equal_b->mean - c.equal_a->mean;
  c.curve_error = std::hypot(c.equal_a->error, c.equal_b->error);
  bool other_seed = std::ranges::count(c.config, "train.seed", &ConfigChange::key) > 0;
  if (other_seed) c.seed_error = c.seeds.share * std::hypot(c.equal_a->mean, c.equal_b->mean);
  c.error = std::hypot(c.curve_error, c.seed_error);
  bool clear = std::fabs(c.difference) > kStandardErrors * c.error && c.difference != 0;
  c.verdict = !clear             ? ComparisonVerdict::no_difference
              : c.difference < 0 ? ComparisonVerdict::better
                                 : ComparisonVerdict::worse;
}

void find_reached(const WatchedRun& a, const WatchedRun& b, size_t window, RunComparison& c) {
  LossMeasure measure = *c.basis.measure;
  auto last_of = [&](const WatchedRun& run, double tokens) {
    return measured_at(run.columns(), measure, {XAxis::tokens, tokens}, window);
  };
  std::optional<LossEstimate> last_a = last_of(a, c.a.tokens), last_b = last_of(b, c.b.tokens);
  if (!last_a || !last_b) return;
  c.reached_loss = std::max(last_a->mean, last_b->mean);
  c.a_reached = reached_at(a.columns(), measure, *c.reached_loss, window);
  c.b_reached = reached_at(b.columns(), measure, *c.reached_loss, window);
}

RunComparison compare_texts(const WatchedRun& a, const WatchedRun& b, const std::vector<RunText>& texts, size_t window,
                            const SeedNoise& seeds) {
  window = comparison_window({&a, &b}, window);
  RunComparison comparison{.a = figures_of(a, window), .b = figures_of(b, window), .seeds = seeds};
  compare_configs(texts[0], texts[1], comparison);
  comparison.basis = loss_basis_of(texts);
  for (const WatchedRun* run : {&a, &b})
    if (comparison.basis.measure && !comparison.basis.why.empty() &&
        !run->columns().column(field_of(*comparison.basis.measure)))
      comparison.basis = {std::nullopt,
                          fmt::format("{}, and {} has no {}: validate both on the same text "
                                      "(data.validation, train.eval_every)",
                                      comparison.basis.why, run->name(), field_of(*comparison.basis.measure))};
  if (!comparison.basis.measure) return comparison;
  comparison.equal_flops = losses_at_equal_flops(a, b, comparison, window);
  judge(a, b, window, comparison);
  find_reached(a, b, window, comparison);
  return comparison;
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

std::optional<LossEstimate> measured_at(const RunColumns& run, LossMeasure measure, PlaceOnAxis end, size_t steps) {
  std::optional<LossEstimate> training = loss_at(run, end, steps);
  if (measure == LossMeasure::loss || !training) return training;
  std::optional<double> value = interpolated(run, run.column(field_of(measure)), end);
  if (!value) return std::nullopt;
  double of_one_step = training->error * std::sqrt(training->independent) / training->mean;
  return LossEstimate{.tokens = training->tokens,
                      .mean = *value,
                      .error = std::fabs(*value * of_one_step),
                      .steps = 1,
                      .independent = 1};
}

RunComparison compare_runs(const WatchedRun& a, const WatchedRun& b, size_t window, const SeedNoise& seeds) {
  return compare_texts(a, b, {text_of(a.directory(), a.name()), text_of(b.directory(), b.name())}, window, seeds);
}

std::vector<RunComparison> compare_with_first(const std::vector<const WatchedRun*>& runs, size_t window) {
  std::vector<RunComparison> comparisons;
  if (runs.empty()) return comparisons;
  SeedNoise seeds = seed_noise_of(runs, window);
  RunText first = text_of(runs[0]->directory(), runs[0]->name());
  for (size_t i = 1; i < runs.size(); ++i)
    comparisons.push_back(
        compare_texts(*runs[0], *runs[i], {first, text_of(runs[i]->directory(), runs[i]->name())}, window, seeds));
  return comparisons;
}

}  // namespace sextant
