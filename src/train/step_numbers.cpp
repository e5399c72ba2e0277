#include "train/step_numbers.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/metrics.h"

namespace sextant {

namespace {

constexpr size_t kMostRanksListed = 256;

std::vector<const StepNumber*>& added_numbers() {
  static std::vector<const StepNumber*> added;
  return added;
}

}  // namespace

const StepValue* StepValues::find(const StepNumber& number) const {
  for (const auto& [own, value] : values_)
    if (own == &number) return &value;
  return nullptr;
}

void StepValues::set(const StepNumber& number, StepValue value) {
  for (auto& [own, old] : values_)
    if (own == &number) {
      old = std::move(value);
      return;
    }
  values_.emplace_back(&number, std::move(value));
}

std::vector<const StepNumber*> step_numbers() {
  std::vector<const StepNumber*> all{
#define STEP_NUMBER(type, id, ...) &number::id.number,
#include "train/step_numbers.def"
#undef STEP_NUMBER
  };
  all.insert(all.end(), added_numbers().begin(), added_numbers().end());
  return all;
}

const StepNumber* find_step_number(std::string_view name) {
  for (const StepNumber* number : step_numbers())
    if (number->name == name) return number;
  return nullptr;
}

AddedStepNumber::AddedStepNumber(const StepNumber& number) : number_(&number) {
  BUG_IF(find_step_number(number.name), "{} is declared twice", number.name);
  added_numbers().push_back(number_);
}

AddedStepNumber::~AddedStepNumber() {
  std::erase(added_numbers(), number_);
}

StepValue as_it_is(std::span<const double> joined, const StepScales&) {
  return joined[0];
}

StepValue as_count(std::span<const double> joined, const StepScales&) {
  return int64_t{std::llround(joined[0])};
}

StepValue per_token(std::span<const double> joined, const StepScales& scales) {
  return joined[0] / scales.batch_tokens;
}

StepValue mean_of_microbatches(std::span<const double> joined, const StepScales& scales) {
  return joined[0] * scales.microbatch_share;
}

StepValue as_list(std::span<const double> joined, const StepScales&) {
  return std::vector<double>(joined.begin(), joined.end());
}

StepValue as_counts(std::span<const double> joined, const StepScales&) {
  std::vector<int64_t> counts;
  for (double count : joined) counts.push_back(static_cast<int64_t>(count));
  return counts;
}

StepValue mean_of_mtp_depths(std::span<const double> joined, const StepScales& scales) {
  double mean = 0;
  for (size_t i = 0; i < joined.size(); ++i)
    mean += joined[i] / (std::max(scales.mtp_targets[i], 1.0) * static_cast<double>(joined.size()));
  return mean;
}

std::optional<StepValue> shown_step(const StepNumber&, const StepMetrics& metrics) {
  return metrics.step;
}

std::optional<StepValue> shown_for_few_ranks(const StepNumber& number, const StepMetrics& metrics) {
  const StepValue* value = metrics.values.find(number);
  const auto* list = value ? std::get_if<std::vector<double>>(value) : nullptr;
  if (!list || list->size() < 2 || list->size() > kMostRanksListed) return std::nullopt;
  return *value;
}

std::optional<StepValue> shown_where_skipped(const StepNumber&, const StepMetrics& metrics) {
  return metrics.is_update_skipped() ? std::optional<StepValue>(true) : std::nullopt;
}

std::optional<StepValue> shown_where_skipped_above(const StepNumber& number, const StepMetrics& metrics) {
  const StepValue* limit = metrics.values.find(number);
  return limit && metrics.is_update_skipped() ? std::optional(*limit) : std::nullopt;
}

std::optional<StepValue> shown_list(const TensorStatistics::List& list) {
  return list.empty() ? std::nullopt : std::optional<StepValue>(list);
}

const std::optional<TensorStatistics>& tensors_of(const StepMetrics& metrics) {
  return metrics.tensors;
}

}  // namespace sextant
