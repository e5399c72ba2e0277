#include "laws/run_amounts.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "laws/quantity.h"

namespace sextant {

std::string human_days(double days) {
  constexpr double kSeconds = 86400, kShort = 0.1;
  if (days >= 1) return fmt::format("{:.3g} days", days);
  double seconds = days * kSeconds;
  return seconds < kShort ? fmt::format("{:.3g} ms", seconds * 1e3) : human_duration(seconds);
}

std::string human_energy(double mwh) {
  if (mwh < 1e-8) return fmt::format("{:.3g} J", mwh * 3.6e9);
  if (mwh < 1e-3) return fmt::format("{:.3g} Wh", mwh * 1e6);
  if (mwh < 1) return fmt::format("{:.3g} kWh", mwh * 1e3);
  return fmt::format("{} MWh", mwh < 100 ? fmt::format("{:.3g}", mwh) : human_count(std::llround(mwh)));
}

std::string human_cost(double dollars) {
  constexpr double kCent = 0.01;
  return dollars < kCent ? "less than $0.01" : "$" + human_quantity(dollars);
}

}  // namespace sextant
