#include "train/save/local_checkpoints.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/hash.h"
#include "comm/tags.h"
#include "train/health/heartbeat.h"
#include "train/save/finite_check.h"
#include "train/save/first_failure.h"
#include "train/save/replication.h"
#include "train/save/snapshot.h"

namespace sextant {

namespace {

constexpr int64_t kCopyPiece = int64_t{8} << 20;

int64_t host_number() {
  ContentHash hash;
  std::string host = own_host_name();
  hash.add(std::as_bytes(std::span(host)));
  return static_cast<int64_t>(hash.value());
}

}  // namespace

LocalCheckpoints::Kept LocalCheckpoints::reserve(int rank, int64_t bytes) {
  Kept kept{.rank = rank, .bytes = bytes};
  for (int slot = 0; slot < kLocalSlots; ++slot)
    kept.slots.emplace_back(parts_.folder, parts_.group.rank(), rank, slot, bytes);
  kept.next = kept.slots[0].holds_copy() ? 1 : 0;
  return kept;
}

void LocalCheckpoints::begin(int64_t kept_step) {
  if (parts_.folder.empty()) return;
  own_ = {};
  held_.clear();
  previous_ = last_ = -1;
  const Program& program = parts_.values.program();
  auto ranks = static_cast<size_t>(parts_.group.size()), rank = static_cast<size_t>(parts_.group.rank());
  layout_ = state_layout(program, parts_.group.rank());
  std::vector<int64_t> facts(3 * ranks, 0);
  facts[rank] = host_number();
  facts[ranks + rank] = static_cast<int64_t>(layout_);
  facts[2 * ranks + rank] = snapshot_bytes(program);
  parts_.group.sum(facts);
  discard_local_copies(parts_.folder, kept_step);
  parts_.group.barrier();  // no rank makes files that another one of this host removes
  std::vector<RankPlace> places(ranks);
  for (size_t i = 0; i < ranks; ++i)
    places[i] = {static_cast<uint64_t>(facts[i]), static_cast<uint64_t>(facts[ranks + i])};
  std::vector<int> holders(ranks, -1);
  if (parts_.run.checkpoint.replication) holders = copy_holders(places, parts_.run.checkpoint.replication_jump);
  holder_ = holders[rank];
  std::string failure;
  try_to(failure, [&] {
    own_ = reserve(static_cast<int>(rank), facts[2 * ranks + rank]);
    for (size_t other = 0; other < ranks; ++other)
      if (holders[other] == static_cast<int>(rank))
        held_.push_back(reserve(static_cast<int>(other), facts[2 * ranks + other]));
  });
  failure = parts_.group.first_text(failure);
  if (failure.empty()) return;
  discard();
  // Other programs of the host fill the same place, and a disk may not answer: it may be there the next time.
  throw RunError(parts_.run.place_of("checkpoint.local_every"),
                 fmt::format("no room for local checkpoints: {}; expected room for two copies of each rank's weights "
                             "and optimizer state, and two of those it keeps for others",
                             failure),
                 "`sextant plan` has the bytes; checkpoint.local_dir may be a local disk, checkpoint.replication = "
                 "false halves them");
}

// Pieces of all states at once: this rank's goes to its own slot and to its holder, those of others come in.
LocalCheckpoints::Exchanged LocalCheckpoints::exchange_states(std::string& failure) {
  StateReader reader(parts_.values);
  ContentHash own_hash;
  std::vector<ContentHash> held_hashes(held_.size());
  int64_t most = own_.bytes;
  std::vector<std::byte> out_bytes(static_cast<size_t>(std::min(own_.bytes, kCopyPiece)));
  std::vector<std::vector<std::byte>> in_bytes;
  for (const Kept& kept : held_) {
    most = std::max(most, kept.bytes);
    in_bytes.emplace_back(static_cast<size_t>(std::min(kept.bytes, kCopyPiece)));
  }
  std::optional<AbortOnThrow> abort;
  if (parts_.transport) abort.emplace(*parts_.transport);
  auto piece_at = [](std::vector<std::byte>& bytes, int64_t all, int64_t at) {
    return std::span(bytes).first(static_cast<size_t>(std::clamp<int64_t>(all - at, 0, kCopyPiece)));
  };
  for (int64_t at = 0; at < most; at += kCopyPiece) {
    parts_.rank_status.move_on();
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < held_.size(); ++i)
      if (std::span piece = piece_at(in_bytes[i], held_[i].bytes, at); !piece.empty())
        tickets.push_back(parts_.transport->receive(held_[i].rank, kLocalCopyTag, piece));
    std::span out = piece_at(out_bytes, own_.bytes, at);
    if (!out.empty()) {
      reader.fill(out);
      own_hash.add(out);
      if (holder_ >= 0) tickets.push_back(parts_.transport->send(holder_, kLocalCopyTag, out));
      try_to(failure, [&] { own_.slot().write_at(at, out); });
    }
    for (Ticket ticket : tickets) parts_.transport->wait(ticket);
    for (size_t i = 0; i < held_.size(); ++i) {
      std::span piece = piece_at(in_bytes[i], held_[i].bytes, at);
      held_hashes[i].add(piece);
      try_to(failure, [&] { held_[i].slot().write_at(at, piece); });
    }
  }
  Exchanged exchanged{.own_hash = hex(own_hash.value()), .held_hashes = {}};
  for (const ContentHash& hash : held_hashes) exchanged.held_hashes.push_back(hex(hash.value()));
  return exchanged;
}

std::vector<std::string> LocalCheckpoints::exchange_texts(const std::string& own) {
  std::vector<std::string> texts(held_.size());
  std::vector<int64_t> sizes(held_.size());
  auto own_size = static_cast<int64_t>(own.size());
  std::optional<AbortOnThrow> abort;
  if (parts_.transport) abort.emplace(*parts_.transport);
  for (bool size_first : {true, false}) {
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < held_.size(); ++i) {
      if (!size_first) texts[i].resize(static_cast<size_t>(sizes[i]));
      tickets.push_back(parts_.transport->receive(
          held_[i].rank, kLocalCopyTag,
          size_first ? std::as_writable_bytes(std::span(&sizes[i], 1)) : std::as_writable_bytes(std::span(texts[i]))));
    }
    if (holder_ >= 0)
      tickets.push_back(parts_.transport->send(
          holder_, kLocalCopyTag, size_first ? std::as_bytes(std::span(&own_size, 1)) : std::as_bytes(std::span(own))));
    for (Ticket ticket : tickets) parts_.transport->wait(ticket);
  }
  return texts;
}

std::string LocalCheckpoints::save(const RunState& state) {
  std::string tensor = parts_.group.first_text(first_non_finite(parts_.values));
  if (!tensor.empty()) return fmt::format("{} is not finite", tensor);
  std::string failure;
  try_to(failure, [&] { own_.slot().begin(); });
  for (Kept& kept : held_) try_to(failure, [&] { kept.slot().begin(); });
  Exchanged exchanged = exchange_states(failure);
  parts_.values.verify_checksums();  // before the copies count
  LocalManifest manifest{.rank = own_.rank,
                         .step = state.step,
                         .bytes = own_.bytes,
                         .layout = hex(layout_),
                         .hash = exchanged.own_hash,
                         .state = run_state_json(state)};
  std::vector<std::string> texts = exchange_texts(local_manifest_json(manifest));
  for (size_t i = 0; i < held_.size(); ++i)
    try_to(failure, [&] {
      LocalManifest theirs = parse_local_manifest(texts[i], fmt::format("what rank {} sent", held_[i].rank));
      if (theirs.hash != exchanged.held_hashes[i])
        throw RunError(fmt::format("the copy of rank {}", held_[i].rank), "has other content here than was sent");
      held_[i].slot().commit(theirs);
    });
  try_to(failure, [&] { own_.slot().commit(manifest); });
  failure = parts_.group.first_text(failure);  // and every rank has all its copies
  if (!failure.empty()) return failure;        // the slot stays the one to write; the other is whole
  own_.next = 1 - own_.next;
  for (Kept& kept : held_) kept.next = 1 - kept.next;
  // The copy that the run resumed from, possibly stored elsewhere, is needed until two copies of this attempt are
  // whole.
  previous_ = std::exchange(last_, state.step);
  if (previous_ >= 0) discard_older_copies(parts_.folder, previous_);
  return "";
}

void LocalCheckpoints::discard() {
  if (parts_.folder.empty()) return;
  parts_.group.barrier();
  own_ = {};
  held_.clear();
  discard_local_copies(parts_.folder, -1);
  parts_.group.barrier();
}

}  // namespace sextant
