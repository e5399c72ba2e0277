// PlannedRun: the fastest layout of a run on a machine, as every answer has it. It is what `sextant search` finds: a
// real Program, lowered whole and simulated.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answers/asked_run.h"
#include "search/search.h"

namespace sextant {

struct PlannedRun {
  std::string model, machine, device, profile;
  int64_t parameters = 0, devices = 0, sequences = 0, seq = 0;
  double device_bytes = 0, price_per_hour = 0;
  Candidate layout;  // with economics
  std::optional<PredictionInterval> interval;
  std::vector<std::string> equals;  // other layouts that are not known to be slower, as overrides

  double tokens_per_s() const { return layout.tokens_per_s_per_device * static_cast<double>(devices); }
  // Dollars for a million tokens of the run, with failures and checkpoints; none without a price, or if it never ends.
  std::optional<double> cost_per_million() const;
  // The days of the run if its step takes as long as the interval allows.
  std::optional<double> days_at_worst() const;
};

// Whether one is not known to be faster than the other, by the tokens that they train on in a second.
bool as_fast(const PlannedRun& a, const PlannedRun& b);

struct PlanQuestion {
  const AskedRun& asked;
  const AskedPlace& place;
  int64_t devices = 1;
  double tokens = 0;  // of the whole run
  double below_seconds = std::numeric_limits<double>::infinity();
};

// Nothing where layouts may fit and none is below `below_seconds`; else as search_layouts.
std::optional<PlannedRun> planned_run(const PlanQuestion& question);
// The smallest layout with its needs, or nothing where there is none.
std::optional<Candidate> smallest_of(const PlanQuestion& question);

nlohmann::ordered_json json_of(const PlannedRun& plan);
std::string text_of(const PlannedRun& plan);  // some lines

// So many digits that count, without a power of ten: "390", "0.0352".
std::string with_digits(double value, int digits);
// Step times as far as they are known: three digits.
std::string short_seconds(double seconds);
std::string interval_text(const PlannedRun& plan);  // "1.3 to 1.8 s"; empty without an interval

}  // namespace sextant
