// Where the time of a Trace goes: by kind of op, and by part of the model, the largest first. In: events with their
// flops and bytes, and what the device could do at best. Out: rows to reckon with, or a text to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace.h"

namespace sextant {

// Peak rates of a device, measured or by its data sheet; 0: not known.
struct Ceiling {
  double flops_per_s = 0;
  double bytes_per_s = 0;
};

enum class GroupBy : uint8_t {
  kind,  // "linear"
  part,  // "layers.*.attn": the first three names of the path, all layers together
};

struct OpRow {
  std::string name;
  int64_t count = 0;
  double seconds = 0;
  double flops = 0;
  int64_t bytes = 0;
};

std::vector<OpRow> op_rows(const Trace& trace, GroupBy by);

// The least time that the ceiling allows for this work, as a share of the time it took; 0 when that is not known.
double share_of_ceiling(const OpRow& row, const Ceiling& ceiling);

// The least time that the ceiling allows for all of it: each op by the larger of its flops and its bytes.
double floor_seconds(const Trace& trace, const Ceiling& ceiling);

// Both groupings, one below the other, and the floor.
std::string op_table(const Trace& trace, const Ceiling& ceiling = {});

}  // namespace sextant
