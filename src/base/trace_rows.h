// The events of a trace by op: all layers and microbatches of the same op of the model together, so that a measured and
// a simulated step can be laid side by side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"

namespace sextant {

// "layers.3.attn.qkv" to "layers.*.attn.qkv".
std::string path_of_all_layers(std::string_view path);

struct TraceRow {
  std::string op, path;  // the path of all layers
  int64_t count = 0;
  double seconds = 0;

  bool operator==(const TraceRow&) const = default;
};

// Of the events of one rank, by op and path.
std::vector<TraceRow> rows_by_op(const Trace& trace, int rank);

}  // namespace sextant
