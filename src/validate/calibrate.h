// calibrate: the efficiencies of a machine type that bring its judged rows nearest to what was measured, inside their
// physical bounds. Never per row: every row of the type is predicted with the same eight numbers, and every row of a
// model with experts with eight of their own.
#pragma once

#include <string>
#include <vector>

#include "validate/validate.h"

namespace sextant {

struct Calibration {
  Efficiencies efficiency;
  double before = 0, after = 0;  // the figure that is made small: mean of capped absolute log errors
  size_t rows = 0;
};

Calibration calibrate(Validation& validation, const std::string& machine, Models models);

// Fits begin at the machine's own where it has one. How far a source's rows are off when the fit has not seen them:
// each source in turn is left out. Where nothing else ran on the machine, its tables alone predict.
struct HeldOut {
  std::string source;
  size_t fitted_on = 0;              // rows of others
  std::vector<HeldOutError> errors;  // of its own rows

  std::vector<double> absolute() const;  // shares of what was measured
};
std::vector<HeldOut> hold_out_sources(Validation& validation, const std::string& machine, Models models);

}  // namespace sextant
