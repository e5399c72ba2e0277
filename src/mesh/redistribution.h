// Transfer table (docs/parallel.md): a value changes its state along one axis by one transfer, and the gradient goes
// back by the transfer of the dual states. The table is closed under taking adjoints; tests/mesh proves it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mesh/collective.h"
#include "mesh/layout.h"

namespace sextant {

enum class Transfer : uint8_t {
  nothing,     // the bytes are already right
  slice,       // keep the own part
  pad,         // own part in place, zeros elsewhere
  keep_first,  // coordinate 0 keeps its copy, the others hold zeros
  all_gather,
  reduce_scatter,
  all_reduce,
  all_reduce_max,  // the largest of each element
  all_to_all,
};

std::string_view name_of(Transfer transfer);
std::optional<Transfer> transfer_named(std::string_view name);

struct TransferRule {
  StateKind from;
  StateKind to;
  Transfer forward;
  std::optional<Transfer> backward;  // none of a maximum, which has no gradient
};

std::span<const TransferRule> transfer_rules();

// How to bring one axis from a state to another; nullopt where no transfer exists. Equal states need nothing.
std::optional<Transfer> transfer(AxisState from, AxisState to);

// The collective that the ranks of the axis run in a transfer; nullopt where each rank works on its own data only.
std::optional<Collective> collective_of(Transfer transfer);

// Bytes that one rank sends for `transfer` over `ranks` ranks; `local` and `full` are the bytes of one rank's part and
// of the whole. This is what infer compares.
int64_t bytes_sent(Transfer transfer, int64_t local, int64_t full, int ranks);

// One hop of a redistribution: along all of `axes` the state changes in the same way, by one transfer.
struct Hop {
  Transfer transfer = Transfer::nothing;
  std::vector<int> axes;
  Layout to;
};

// From a layout to another in hops, the ones that shrink the tensor first. Axes that change between the same two kinds
// of states make one hop (one collective over all of them); of all-to-alls, those that leave or enter one dim. Axes of
// size 1 take their new state in the last hop at no cost. Empty when nothing differs; nullopt where some axis has no
// transfer.
std::optional<std::vector<Hop>> route(const Layout& from, const Layout& to, const Mesh& mesh);

// The one hop that leads from a layout to another; BUG when it takes more.
Hop hop_between(const Layout& from, const Layout& to, const Mesh& mesh);

}  // namespace sextant
