// Copies of rectangular pieces between row-major tensors, or between a tensor and a packed message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shape.h"
#include "mesh/placement.h"

namespace sextant::cpu {

// One contiguous stretch of bytes.
struct Run {
  int64_t from, to, bytes;
};

// The stretches that make up the boxes; neighbours are joined.
std::vector<Run> runs_between(const std::vector<Box>& boxes, const LocalShape& from, const LocalShape& to,
                              int64_t element);

// The same with a packed side: the boxes' elements one behind the other from byte `packed_at` on.
std::vector<Run> runs_to_packed(const std::vector<Box>& boxes, const LocalShape& from, int64_t element,
                                int64_t packed_at);
std::vector<Run> runs_from_packed(const std::vector<Box>& boxes, const LocalShape& to, int64_t element,
                                  int64_t packed_at);

void copy_runs(const std::vector<Run>& runs, const std::byte* from, std::byte* to);

}  // namespace sextant::cpu
