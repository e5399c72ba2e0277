// The table of design: a value changes its state along one axis by one transfer, and the gradient goes back by the
// transfer of the dual states. The table is closed under taking adjoints; tests/mesh proves it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "mesh/layout.h"

namespace sextant {

enum class Transfer : uint8_t {
  nothing,         // the bytes are already right
  slice,           // keep the own part
  pad,             // own part in place, zeros elsewhere
  keep_first,      // coordinate 0 keeps its copy, the others hold zeros
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
};

std::string_view name_of(Transfer transfer);

struct TransferRule {
  StateKind from;
  StateKind to;
  Transfer forward;
  Transfer backward;
};

std::span<const TransferRule> transfer_rules();

// How to bring one axis from a state to another; nullopt where no transfer exists. Equal states need nothing.
std::optional<Transfer> transfer(AxisState from, AxisState to);

// Bytes that one rank sends for `transfer` over `ranks` ranks (ring algorithms); `local` and `full` are the bytes of one
// rank's part and of the whole. This is what infer compares and what the communicator will count.
int64_t bytes_sent(Transfer transfer, int64_t local, int64_t full, int ranks);

}  // namespace sextant
