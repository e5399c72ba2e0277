// Headroom: the share of a device's memory that layouts of a search leave free, and why that much.
#pragma once

#include <string>
#include <string_view>

#include "plan/memory_fit.h"

namespace sextant {

enum class HeadroomFrom : uint8_t {
  option,  // asked for
  own,     // ours: a constant
  errors,  // what covers measured errors of estimates
  none,    // nothing is known to go by
};
std::string_view name_of(HeadroomFrom from);

struct Headroom {
  double share = 0;
  HeadroomFrom from = HeadroomFrom::none;
  std::string about;  // "2.1 % of memory is left free: …"
};

// A percentage from 0 % to below 100 %: "5%". UserError for anything else.
double parse_headroom(std::string_view text, std::string_view option);

// The requested headroom, or the default for the memory of this software. `errors` may be null or empty.
struct HeadroomQuestion {
  const double* asked = nullptr;
  MemoryBasis basis = MemoryBasis::exact;
  std::string_view device, software;
  const MemoryIntervalModel* errors = nullptr;
};
Headroom headroom_for(const HeadroomQuestion& question);

}  // namespace sextant
