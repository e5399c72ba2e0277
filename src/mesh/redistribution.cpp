#include "mesh/redistribution.h"

#include <array>

#include "base/error.h"

namespace sextant {

namespace {

using enum StateKind;

constexpr std::array kRules{
    TransferRule{sharded, replicated, Transfer::all_gather, Transfer::reduce_scatter},
    TransferRule{sharded, invariant, Transfer::all_gather, Transfer::slice},
    TransferRule{partial, replicated, Transfer::all_reduce, Transfer::all_reduce},
    TransferRule{partial, invariant, Transfer::all_reduce, Transfer::nothing},
    TransferRule{partial, sharded, Transfer::reduce_scatter, Transfer::all_gather},
    TransferRule{invariant, replicated, Transfer::nothing, Transfer::all_reduce},
    TransferRule{invariant, sharded, Transfer::slice, Transfer::all_gather},
    TransferRule{replicated, sharded, Transfer::slice, Transfer::pad},
    TransferRule{sharded, sharded, Transfer::all_to_all, Transfer::all_to_all},
    TransferRule{invariant, partial, Transfer::keep_first, Transfer::nothing},
    TransferRule{replicated, partial, Transfer::keep_first, Transfer::keep_first},
    TransferRule{replicated, invariant, Transfer::nothing, Transfer::keep_first},
    TransferRule{sharded, partial, Transfer::pad, Transfer::slice},
};

}  // namespace

std::string_view name_of(Transfer transfer) {
  switch (transfer) {
    case Transfer::nothing: return "nothing";
    case Transfer::slice: return "slice";
    case Transfer::pad: return "pad";
    case Transfer::keep_first: return "keep_first";
    case Transfer::all_gather: return "all_gather";
    case Transfer::reduce_scatter: return "reduce_scatter";
    case Transfer::all_reduce: return "all_reduce";
    case Transfer::all_to_all: return "all_to_all";
  }
  BUG("unknown transfer");
}

std::span<const TransferRule> transfer_rules() { return kRules; }

std::optional<Transfer> transfer(AxisState from, AxisState to) {
  if (from == to) return Transfer::nothing;
  for (const TransferRule& rule : kRules)
    if (rule.from == from.kind && rule.to == to.kind) return rule.forward;
  return std::nullopt;
}

int64_t bytes_sent(Transfer transfer, int64_t local, int64_t full, int ranks) {
  switch (transfer) {
    case Transfer::all_gather: return local * (ranks - 1);
    case Transfer::reduce_scatter: return full / ranks * (ranks - 1);
    case Transfer::all_reduce: return 2 * (full / ranks) * (ranks - 1);
    case Transfer::all_to_all: return local / ranks * (ranks - 1);
    case Transfer::nothing:
    case Transfer::slice:
    case Transfer::pad:
    case Transfer::keep_first: return 0;
  }
  BUG("unknown transfer");
}

}  // namespace sextant
