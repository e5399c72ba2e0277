// The declared numbers of a step (step_number.h), as typed handles: number::loss, number::grad_norm.
#pragma once

#include "ops/lost_rows.h"
#include "optim/loss_scaling.h"
#include "passes/measure_tensors.h"
#include "train/step_number.h"
#include "train/tensor_statistics.h"

namespace sextant {

// Reports of numbers with one value.
StepValue as_it_is(std::span<const double> joined, const StepScales& scales);
StepValue as_count(std::span<const double> joined, const StepScales& scales);
StepValue per_token(std::span<const double> joined, const StepScales& scales);
StepValue mean_of_microbatches(std::span<const double> joined, const StepScales& scales);  // of means over tokens
// Of numbers with a value for each index.
StepValue as_list(std::span<const double> joined, const StepScales& scales);
StepValue as_counts(std::span<const double> joined, const StepScales& scales);
StepValue mean_of_mtp_depths(std::span<const double> joined, const StepScales& scales);  // over the targets that count

std::optional<StepValue> shown_step(const StepNumber& number, const StepMetrics& metrics);
std::optional<StepValue> shown_for_few_ranks(const StepNumber& number, const StepMetrics& metrics);        // 2 to 256
std::optional<StepValue> shown_where_skipped(const StepNumber& number, const StepMetrics& metrics);        // true
std::optional<StepValue> shown_where_skipped_above(const StepNumber& number, const StepMetrics& metrics);  // a limit
std::optional<StepValue> shown_list(const TensorStatistics::List& list);
const std::optional<TensorStatistics>& tensors_of(const StepMetrics& metrics);

template <TensorStatistics::List TensorStatistics::*kList>
std::optional<StepValue> shown_layers(const StepNumber&, const StepMetrics& metrics) {
  const std::optional<TensorStatistics>& tensors = tensors_of(metrics);
  return tensors ? shown_list((*tensors).*kList) : std::nullopt;
}

namespace number {

// Lines of metrics.jsonl that have a field.
namespace when {
inline constexpr std::string_view every_step = "every step";
inline constexpr std::string_view evaluated = "steps that end with an evaluation";
inline constexpr std::string_view with_experts = "every step of a model with experts";
inline constexpr std::string_view with_correction_bias = "every step of a model with `model.experts.correction_bias`";
inline constexpr std::string_view repeated = "steps that were repeated";
inline constexpr std::string_view few_ranks = "every step of a run with 2 to 256 ranks";
inline constexpr std::string_view measured = "every `log.tensor_stats_every` steps";
inline constexpr std::string_view measured_narrow = "the same, where the format has less range than f32";
inline constexpr std::string_view measured_fp8 = "the same, where products are in fp8";
}  // namespace when

#define STEP_NUMBER(type, id, ...) inline constexpr TypedStepNumber<type> id{{.name = #id, __VA_ARGS__}};
#include "train/step_numbers.def"
#undef STEP_NUMBER

}  // namespace number

}  // namespace sextant
