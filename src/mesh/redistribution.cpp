#include "mesh/redistribution.h"

#include <cmath>
#include <utility>

#include <algorithm>
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
    TransferRule{partial_max, replicated, Transfer::all_reduce_max, std::nullopt},
    TransferRule{partial_max, invariant, Transfer::all_reduce_max, std::nullopt},
};

}  // namespace

namespace {

constexpr std::pair<Transfer, std::string_view> kTransferNames[] = {
    {Transfer::nothing, "nothing"},
    {Transfer::slice, "slice"},
    {Transfer::pad, "pad"},
    {Transfer::keep_first, "keep_first"},
    {Transfer::all_gather, "all_gather"},
    {Transfer::reduce_scatter, "reduce_scatter"},
    {Transfer::all_reduce, "all_reduce"},
    {Transfer::all_reduce_max, "all_reduce_max"},
    {Transfer::all_to_all, "all_to_all"},
};

}  // namespace

std::string_view name_of(Transfer transfer) {
  for (const auto& [known, name] : kTransferNames)
    if (known == transfer) return name;
  BUG("unknown transfer");
}

std::optional<Transfer> transfer_named(std::string_view name) {
  for (const auto& [transfer, known] : kTransferNames)
    if (known == name) return transfer;
  return std::nullopt;
}

std::span<const TransferRule> transfer_rules() {
  return kRules;
}

std::optional<Transfer> transfer(AxisState from, AxisState to) {
  if (from == to) return Transfer::nothing;
  for (const TransferRule& rule : kRules)
    if (rule.from == from.kind && rule.to == to.kind) return rule.forward;
  return std::nullopt;
}

std::optional<Collective> collective_of(Transfer transfer) {
  switch (transfer) {
    case Transfer::all_gather:
      return Collective::all_gather;
    case Transfer::reduce_scatter:
      return Collective::reduce_scatter;
    case Transfer::all_reduce:
    case Transfer::all_reduce_max:
      return Collective::all_reduce;
    case Transfer::all_to_all:
      return Collective::all_to_all;
    case Transfer::nothing:
    case Transfer::slice:
    case Transfer::pad:
    case Transfer::keep_first:
      return std::nullopt;
  }
  BUG("unknown transfer");
}

int64_t bytes_sent(Transfer transfer, int64_t local, int64_t full, int ranks) {
  std::optional<Collective> collective = collective_of(transfer);
  if (!collective) return 0;
  int64_t bytes = transfer == Transfer::all_to_all ? local : full;
  return std::llround(share_sent(*collective, ranks) * static_cast<double>(bytes));
}

namespace {

// Shrinking transfers go first, so that what follows moves less; growing ones last.
int place_in_route(Transfer transfer) {
  switch (transfer) {
    case Transfer::slice:
      return 0;
    case Transfer::reduce_scatter:
      return 1;
    case Transfer::all_reduce:
    case Transfer::all_reduce_max:
      return 2;
    case Transfer::all_to_all:
      return 3;
    case Transfer::nothing:
      return 4;
    case Transfer::keep_first:
      return 5;
    case Transfer::all_gather:
      return 6;
    case Transfer::pad:
      return 7;
  }
  BUG("unknown transfer");
}

bool same_change(const Layout& from, const Layout& to, int a, int b) {
  return from.at(a).kind == from.at(b).kind && to.at(a).kind == to.at(b).kind && from.at(a).dim == from.at(b).dim &&
         to.at(a).dim == to.at(b).dim;
}

}  // namespace

namespace {

// Whether an axis leaves a dim, or comes to one, that another of `axes` leaves or comes to. Which part of a dim a rank
// has along one axis then depends on the other, and the ranks along both must exchange at once.
bool share_a_dim(const Layout& from, const Layout& to, const std::vector<int>& axes, int axis) {
  return std::any_of(axes.begin(), axes.end(), [&](int other) {
    return from.at(other).dim == from.at(axis).dim || to.at(other).dim == to.at(axis).dim;
  });
}

}  // namespace

std::optional<std::vector<Hop>> route(const Layout& from, const Layout& to, const Mesh& mesh) {
  std::vector<Hop> hops;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (mesh.size(axis) == 1 || from.at(axis) == to.at(axis)) continue;
    auto step = transfer(from.at(axis), to.at(axis));
    if (!step) return std::nullopt;
    Hop* same = nullptr;
    for (Hop& hop : hops)
      if (hop.transfer == *step && (*step == Transfer::all_to_all ? share_a_dim(from, to, hop.axes, axis)
                                                                  : same_change(from, to, hop.axes[0], axis)))
        same = &hop;
    if (same)
      same->axes.push_back(axis);
    else
      hops.push_back({*step, {axis}, {}});
  }
  std::stable_sort(hops.begin(), hops.end(),
                   [](const Hop& a, const Hop& b) { return place_in_route(a.transfer) < place_in_route(b.transfer); });
  Layout at = from;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.size(axis) == 1) at.states[static_cast<size_t>(axis)] = to.at(axis);
  at.segments = to.segments;
  at.order = to.order.empty() ? from.order : to.order;
  for (Hop& hop : hops) {
    for (int axis : hop.axes) at.states[static_cast<size_t>(axis)] = to.at(axis);
    hop.to = at;
  }
  return hops;
}

Hop hop_between(const Layout& from, const Layout& to, const Mesh& mesh) {
  auto hops = route(from, to, mesh);
  BUG_IF(!hops, "no transfer leads from {} to {}", layout_text(from, mesh), layout_text(to, mesh));
  BUG_IF(hops->size() > 1, "from {} to {} takes {} hops", layout_text(from, mesh), layout_text(to, mesh), hops->size());
  return hops->empty() ? Hop{.to = to} : hops->front();
}

}  // namespace sextant
