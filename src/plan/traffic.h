// Traffic: the bytes that one rank sends in one step, read off its Program. Enters: the Program and the rank that runs
// it. Leaves: bytes by the axes of the groups ("dp", "dp,cp", "pp"), exactly as the executor counts them while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/program.h"

namespace sextant {

// Bytes that one run of the op sends; axes that nothing is sent along are absent.
struct SentBytes {
  std::string axes;
  int64_t bytes = 0;
};
SentBytes bytes_to_send(const Program& program, const Op& op, int rank);

// All actions of the schedule, every microbatch and the update. Parts of an all-reduce may differ by an element, so the
// rank matters.
std::map<std::string, int64_t> bytes_to_send(const Program& program, int rank);

}  // namespace sextant
