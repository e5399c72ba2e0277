// calibrate: the efficiencies of a machine type that bring its judged rows nearest to what was measured, inside their physical
// bounds. Never per row: every row of the type is predicted with the same eight numbers.
#pragma once

#include "plan/validate.h"

namespace sextant {

struct Calibration {
  Efficiencies efficiency;
  double before = 0, after = 0;  // the figure that is made small: mean of capped absolute log errors
  size_t rows = 0;
};

Calibration calibrate(Validation& validation, const std::string& machine);

}  // namespace sextant
