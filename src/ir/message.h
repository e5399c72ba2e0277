// Message: what an op sends to other ranks, for whoever prices or draws it.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace sextant {

struct Message {
  enum class Kind : uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    shift,      // to the next rank along the axis
    send,       // to another pipeline rank
    receive,    // from one
    stage_sum,  // an all-reduce between the pipeline ranks that attr `ranks` names
  };
  Kind kind = Kind::all_reduce;
  std::string axes;  // "dp,cp"; empty for what passes between pipeline ranks
  // What is reduced; what a rank has after a gather and before a scatter; what it sends in all in an all-to-all; the
  // message.
  Bytes bytes;
};

}  // namespace sextant
