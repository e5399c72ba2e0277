// Values of a TensorBoard Summary beside scalars: texts, histograms and the hyperparameters of a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

std::string text_summary(std::string_view tag, std::string_view markdown);

// Of values as they are, in buckets of equal width.
std::string histogram_summary(std::string_view tag, std::span<const double> values);

// For the HPARAMS tab: names with values as TOML has them. Numbers and booleans stay such.
std::string hparams_summary(const std::vector<std::pair<std::string, std::string>>& values, double start_time);

}  // namespace sextant
