#include "plan/memory_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace sextant {

namespace {

// So many rows of one software speak for it.
constexpr size_t kEnoughRows = 7;

struct WeightedRatio {
  double value = 0, weight = 0;  // of what was measured over what was estimated, its logarithm
};

struct ErrorGroup {
  std::vector<const HeldOutError*> rows;
  MemoryErrorsOf of = MemoryErrorsOf::all;
};

template <class Counts>
ErrorGroup group_for(const std::vector<HeldOutError>& errors, std::string_view device, std::string_view software,
                     const Counts& counts) {
  ErrorGroup on_device{.rows = {}, .of = MemoryErrorsOf::software_on_device},
      of_software{.rows = {}, .of = MemoryErrorsOf::software};
  ErrorGroup all;
  for (const HeldOutError& error : errors) {
    if (!counts(error)) continue;
    all.rows.push_back(&error);
    if (error.traits.software != software) continue;
    of_software.rows.push_back(&error);
    if (error.traits.device == device) on_device.rows.push_back(&error);
  }
  return on_device.rows.size() >= kEnoughRows ? on_device : of_software.rows.size() >= kEnoughRows ? of_software : all;
}

// The ratios of a group, sorted.
std::vector<WeightedRatio> ratios_of(const ErrorGroup& group) {
  std::map<std::string_view, double> rows_of;
  for (const HeldOutError* error : group.rows) rows_of[error->source] += 1;
  std::vector<WeightedRatio> ratios;
  for (const HeldOutError* error : group.rows)
    ratios.push_back({-error->log_error, 1 / std::sqrt(rows_of[error->source])});
  std::ranges::sort(ratios, {}, &WeightedRatio::value);
  return ratios;
}

// At most this in `share` of all cases, the next one among them; `ratios` in the order in which they are passed.
template <class Ratios>
double ratio_quantile(const Ratios& ratios, double share) {
  double all = 0, passed = 0, count = 0, last = 0;
  for (const WeightedRatio& ratio : ratios) all += ratio.weight, count += 1;
  if (count == 0) return 0;
  all += all / count;
  for (const WeightedRatio& ratio : ratios) {
    passed += ratio.weight, last = ratio.value;
    if (passed >= share * all) break;
  }
  return last;
}

MemoryInterval interval_of(const ErrorGroup& group, double share) {
  std::vector<WeightedRatio> rising = ratios_of(group), falling(rising.rbegin(), rising.rend());
  double tail = 1 - (1 - share) / 2;
  return {.share = share,
          .least = std::exp(ratio_quantile(falling, tail)),
          .most = std::exp(ratio_quantile(rising, tail)),
          .rows = group.rows.size(),
          .of = group.of};
}

}  // namespace

std::string_view text_of(MemoryErrorsOf of) {
  switch (of) {
    case MemoryErrorsOf::software_on_device:
      return "published runs with this software on this device";
    case MemoryErrorsOf::software:
      return "published runs with this software";
    case MemoryErrorsOf::all:
      break;
  }
  return "published runs with any software";
}

MemoryInterval MemoryIntervalModel::interval(std::string_view device, std::string_view software, double share) const {
  return interval_of(group_for(errors_, device, software, [](const HeldOutError&) { return true; }), share);
}

MemoryInterval MemoryIntervalModel::upper(std::string_view device, std::string_view software, double share) const {
  ErrorGroup group = group_for(errors_, device, software, [](const HeldOutError&) { return true; });
  return {.share = share,
          .least = 0,
          .most = std::exp(ratio_quantile(ratios_of(group), share)),
          .rows = group.rows.size(),
          .of = group.of};
}

Coverage memory_coverage(const std::vector<HeldOutError>& errors, double share) {
  Coverage out{.rows = errors.size()};
  std::vector<double> halves;
  for (const HeldOutError& error : errors) {
    const std::string &device = error.traits.device, &software = error.traits.software;
    ErrorGroup group = group_for(errors, device, software, [&](const HeldOutError& other) { return &other != &error; });
    if (group.of == MemoryErrorsOf::all)
      group =
          group_for(errors, device, software, [&](const HeldOutError& other) { return other.source != error.source; });
    MemoryInterval interval = interval_of(group, share);
    double ratio = std::exp(-error.log_error);
    out.inside += ratio >= interval.least && ratio <= interval.most;
    halves.push_back(0.5 * std::log(interval.most / interval.least));
  }
  if (halves.empty()) return out;
  auto middle = halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2);
  std::ranges::nth_element(halves, middle);
  out.median_log_half = *middle;
  return out;
}

std::string memory_coverage_text(const std::vector<HeldOutError>& errors) {
  std::string out = "intervals of memory learned from all other rows of the software, or from all other sources\n";
  for (double share : {0.5, 0.6, 0.7, 0.8, 0.9}) out += text_of(memory_coverage(errors, share), share);
  return out;
}

MemoryIntervalModel load_memory_interval_model() {
  return MemoryIntervalModel(load_held_out("held_out_memory.csv"));
}

}  // namespace sextant
