#include "data/packing.h"

#include <cmath>

#include "base/error.h"

namespace sextant {

Split split_tail(int64_t tokens, double validation_fraction) {
  if (!(validation_fraction >= 0 && validation_fraction < 1))
    throw UserError({.got = fmt::format("the validation fraction is {}", validation_fraction),
                     .expected = "at least 0 and less than 1"});
  auto cut = tokens - static_cast<int64_t>(std::llround(static_cast<double>(tokens) * validation_fraction));
  return {.train = {0, cut}, .validation = {cut, tokens}};
}

}  // namespace sextant
