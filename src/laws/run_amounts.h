// Amounts of a whole run, in units that fit their size: days or seconds, MWh or Wh, dollars.
#pragma once

#include <string>

namespace sextant {

std::string human_days(double days);     // "54 days", "3 h 12 m", "4.12 ms"
std::string human_energy(double mwh);    // "1,234 MWh", "5.2 kWh", "3.46 J"
std::string human_cost(double dollars);  // "$1.2 M", "$0.35", "less than $0.01"

}  // namespace sextant
