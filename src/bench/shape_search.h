// The shape of a GEMM that reaches most, found without sweeping all. Enters: the space of shapes and a function that
// times one of them for so many seconds; leaves: the best, by what was seen of it longest. Short looks at many shapes
// mislead: they are noisy, and a device that has just been idle runs faster than it can keep up. So glances only choose
// whom to look at again, longer, and longer still.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/stop.h"
#include "exec/probe.h"

namespace sextant {

// All shapes whose sizes are multiples of `step` up to `most`.
struct ShapeSpace {
  int64_t step = 1024, most = 16384;
  int64_t shapes() const {
    int64_t along = most / step;
    return along * along * along;
  }
};

// Flop/s of a shape, from calls that take about so many seconds together: the more of them, the nearer the truth. 0 of
// one that cannot be timed.
using ShapeTimer = std::function<double(const GemmDims& shape, double seconds)>;
inline constexpr double kGlanceSeconds = 0.004;

struct BestShape {
  GemmDims shape;
  double rate = 0;
  int asked = 0;  // different shapes; 0: stopped before there was any
};

// Glances on a coarse grid and along lines from its best points, no more than a twelfth of the space (or the grid,
// where that is more); then rounds in which ever fewer are timed for ever longer. Stopped early, it has the best so
// far.
BestShape best_shape(const ShapeSpace& space, const ShapeTimer& timer, const StopAsked& stop);

}  // namespace sextant
