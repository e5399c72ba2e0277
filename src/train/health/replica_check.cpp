#include "train/health/replica_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/corruption.h"
#include "base/hash.h"
#include "comm/tags.h"

namespace sextant {

namespace {

constexpr int64_t kBlock = 1 << 22;  // bytes on the host at once

bool is_kept(const Value& value) {
  return (value.kind == ValueKind::parameter || value.kind == ValueKind::state) && value.buffer >= 0;
}

// The axes along which all ranks hold the same bytes of a value. Pipeline ranks hold different values.
std::vector<int> replica_axes(const Value& value, const Mesh& mesh, SameWork same_work) {
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (mesh.size(axis) == 1 || mesh.role(axis) == AxisRole::pipeline) continue;
    StateKind kind = value.layout.at(axis).kind;
    if (kind == StateKind::replicated || (kind == StateKind::invariant && same_work == SameWork::same_bits))
      axes.push_back(axis);
  }
  return axes;
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() <= kMost) return fmt::format("ranks {}", fmt::join(ranks, ", "));
  return fmt::format("ranks {} and {} more", fmt::join(ranks.begin(), ranks.begin() + kMost, ", "),
                     ranks.size() - kMost);
}

}  // namespace

ReplicaCheck::ReplicaCheck(const StateView& values, Transport* transport, SameWork same_work)
    : values_(values), transport_(transport) {
  if (!transport) return;
  const Mesh& mesh = values.program().mesh;
  for (const Value& value : values.program().values) {
    if (!is_kept(value)) continue;
    std::vector<int> axes = replica_axes(value, mesh, same_work);
    if (axes.empty()) continue;
    auto known = std::ranges::find(replicas_, axes, &Replicas::axes);
    if (known == replicas_.end()) {
      Group group = group_of_ranks(group_of(mesh, values.rank(), axes), values.rank());
      replicas_.push_back({.axes = axes, .group = std::move(group), .values = {}});
      known = replicas_.end() - 1;
    }
    known->values.push_back(&value);
    known->bytes += value.local_bytes().n;
  }
}

int64_t ReplicaCheck::replicated_bytes() const {
  int64_t bytes = 0;
  for (const Replicas& replicas : replicas_) bytes += replicas.bytes;
  return bytes;
}

void ReplicaCheck::check_all() {
  for (const Replicas& replicas : replicas_) {
    std::vector<Piece> pieces = pieces_of(replicas, 0, replicas.bytes);
    hash(pieces);
    compare(replicas, pieces);
  }
}

void ReplicaCheck::check_part(HostGroup& group) {
  if (group.size() == 1) return;
  Clock::time_point now = Clock::now();
  double budget = bytes_per_s_ * std::chrono::duration<double>(now - std::exchange(last_, now)).count() * kShareOfTime;
  // The leader's clock decides, so that all read the same.
  int64_t bytes = std::stoll(group.from_leader(fmt::format("{}", static_cast<int64_t>(budget))));
  int64_t all = replicated_bytes();
  for (Replicas& replicas : replicas_) {
    // Each gets its share; all is less than 2^53, and ranks that compare have the same numbers.
    double share = static_cast<double>(bytes) * static_cast<double>(replicas.bytes) / static_cast<double>(all);
    int64_t end = std::min(replicas.bytes, replicas.next + std::max(kSmallest, static_cast<int64_t>(share)));
    std::vector<Piece> pieces = pieces_of(replicas, replicas.next, end - replicas.next);
    replicas.next = end == replicas.bytes ? 0 : end;
    hash(pieces);
    compare(replicas, pieces);
  }
}

std::vector<ReplicaCheck::Piece> ReplicaCheck::pieces_of(const Replicas& replicas, int64_t first, int64_t count) const {
  std::vector<Piece> pieces;
  int64_t begin = 0;  // of the value
  for (const Value* value : replicas.values) {
    int64_t end = begin + value->local_bytes().n, from = std::max(begin, first), to = std::min(end, first + count);
    if (from < to) pieces.push_back({value, from - begin, to - from, 0});
    begin = end;
  }
  return pieces;
}

void ReplicaCheck::hash(std::vector<Piece>& pieces) {
  Clock::time_point start = Clock::now();
  int64_t bytes = 0;
  for (Piece& piece : pieces) {
    ContentHash content;
    for (int64_t done = 0; done < piece.bytes; done += kBlock) {
      block_.resize(static_cast<size_t>(std::min(kBlock, piece.bytes - done)));
      values_.read(*piece.value, block_, piece.offset + done);
      content.add(block_);
    }
    piece.hash = content.value();
    bytes += piece.bytes;
  }
  bytes_per_s_ =
      static_cast<double>(bytes) / std::max(1e-6, std::chrono::duration<double>(Clock::now() - start).count());
}

void ReplicaCheck::compare(const Replicas& replicas, const std::vector<Piece>& pieces) {
  Channel channel{.transport = *transport_, .tag = kHostTag};
  size_t ranks = static_cast<size_t>(replicas.group.size()), count = pieces.size();
  ContentHash all;
  for (const Piece& piece : pieces) all.add(std::as_bytes(std::span(&piece.hash, 1)));
  uint64_t own = all.value();
  std::vector<uint64_t> of_ranks(ranks);
  all_gather(channel, replicas.group, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(of_ranks)));
  if (std::ranges::count(of_ranks, of_ranks[0]) == static_cast<int64_t>(ranks)) return;

  // Which value it is, only now that it matters.
  std::vector<uint64_t> hashes, by_rank(ranks * count);
  for (const Piece& piece : pieces) hashes.push_back(piece.hash);
  all_gather(channel, replicas.group, std::as_bytes(std::span(hashes)), std::as_writable_bytes(std::span(by_rank)));
  for (size_t i = 0; i < count; ++i) {
    for (size_t rank = 0; rank < ranks; ++rank) of_ranks[rank] = by_rank[rank * count + i];
    if (std::ranges::count(of_ranks, of_ranks[0]) != static_cast<int64_t>(ranks))
      report(replicas, *pieces[i].value, of_ranks);
  }
  BUG("replicas differ, but none of their values does");
}

void ReplicaCheck::report(const Replicas& replicas, const Value& value, const std::vector<uint64_t>& hashes) {
  // One rank says it for the group; the others wait until it has.
  if (replicas.group.self > 0) {
    std::byte never{};
    transport_->wait(transport_->receive(replicas.group.ranks[0], kHostTag, std::span(&never, 1)));
  }
  std::map<uint64_t, std::vector<int>> by_hash;
  for (size_t i = 0; i < hashes.size(); ++i) by_hash[hashes[i]].push_back(replicas.group.ranks[i]);
  std::vector<std::vector<int>> camps;
  for (auto& [hash, ranks] : by_hash) camps.push_back(std::move(ranks));
  std::ranges::sort(camps,
                    [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
  std::vector<std::string> names;
  const Mesh& mesh = values_.program().mesh;
  for (int axis : replicas.axes) names.push_back(mesh.name(axis));
  std::string what;
  if (camps.size() > 1 && camps[0].size() > camps[1].size()) {
    std::vector<int> odd;
    for (size_t i = 1; i < camps.size(); ++i) odd.insert(odd.end(), camps[i].begin(), camps[i].end());
    std::ranges::sort(odd);
    what =
        fmt::format("{} on {} differs from that on {}, which agree", value.path, ranks_text(odd), ranks_text(camps[0]));
  } else {
    std::vector<std::string> sides;
    for (const std::vector<int>& camp : camps) sides.push_back(ranks_text(camp));
    what = fmt::format("{} differs between {}; there is no majority", value.path, fmt::join(sides, " and "));
  }
  // Of two camps of the same size, nobody knows which is right.
  std::optional<int> odd_one;
  if (camps.size() == 2 && camps[0].size() > 1 && camps[1].size() == 1) odd_one = camps[1][0];
  throw Corruption({.check = "replicas", .rank = odd_one, .op = value.path}, "",
                   fmt::format("replicas over {} are not the same: {}", fmt::join(names, ","), what));
}

}  // namespace sextant
