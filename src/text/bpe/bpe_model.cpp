#include "text/bpe/bpe_model.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

namespace {

// Up to here a scan for the lowest rank after every merge beats a heap; beyond it would be quadratic.
constexpr size_t kShort = 64;

// A longer piece gets scratch of its own: the caller's would hold on to the memory from then on.
constexpr size_t kHuge = 1 << 20;

}  // namespace

BpeModel::BpeModel(const BpeModelParts& parts) : merges_(parts.merges), unknown_(parts.unknown) {
  byte_ids_.fill(kNoToken);
  for (const auto& [bytes, id] : parts.tokens)
    if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  if (parts.whole_pieces_first) whole_ = WholeTokens(parts.tokens);
}

void BpeModel::encode(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const {
  if (std::optional<uint32_t> token = whole_.find(piece)) return out.push_back(*token);
  if (piece.size() <= kHuge) return merge_bytes(piece, out, scratch);
  if (piece.size() >= kNoToken)
    throw UserError({.place = "text",
                     .got = fmt::format("{} bytes that the tokenizer's pattern does not split", piece.size()),
                     .expected = "pieces under 4 GiB"});
  Scratch for_this_piece;
  merge_bytes(piece, out, for_this_piece);
}

void BpeModel::merge_bytes(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const {
  bytes_to_ids(piece, scratch.ids);
  if (scratch.ids.size() <= kShort)
    merge_short(scratch.ids);
  else
    merge_long(scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

void BpeModel::bytes_to_ids(std::string_view piece, std::vector<uint32_t>& ids) const {
  ids.clear();
  bool after_unknown = false;
  for (char byte : piece) {
    uint32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    bool known = id != kNoToken;
    if (known)
      ids.push_back(id);
    else if (unknown_.id && !(unknown_.fused && after_unknown))
      ids.push_back(*unknown_.id);
    after_unknown = !known;
  }
}

void BpeModel::merge_short(std::vector<uint32_t>& ids) const {
  MergeTable::Merge merges[kShort];  // merges[i] is that of ids[i] and ids[i + 1]
  size_t pairs = ids.empty() ? 0 : ids.size() - 1;
  for (size_t i = 0; i < pairs; ++i) merges[i] = merges_.find({ids[i], ids[i + 1]});
  while (pairs > 0) {
    size_t best = static_cast<size_t>(std::min_element(merges, merges + pairs) - merges);
    if (merges[best] == MergeTable::kNone) break;
    ids[best] = MergeTable::merged_id(merges[best]);
    std::copy(ids.begin() + static_cast<ptrdiff_t>(best) + 2, ids.begin() + static_cast<ptrdiff_t>(pairs) + 1,
              ids.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(merges + best + 1, merges + pairs, merges + best);
    --pairs;
    if (best > 0) merges[best - 1] = merges_.find({ids[best - 1], ids[best]});
    if (best < pairs) merges[best] = merges_.find({ids[best], ids[best + 1]});
  }
  ids.resize(ids.empty() ? 0 : pairs + 1);
}

// The same by a heap of candidates over a linked list. A candidate whose symbols have changed since is stale, and
// is known by the merge it names no longer being the one at its place.
void BpeModel::merge_long(Scratch& scratch) const {
  std::vector<uint32_t>& ids = scratch.ids;
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  std::vector<Scratch::Candidate>& heap = scratch.heap;
  auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.merge != b.merge ? a.merge > b.merge : a.at > b.at;
  };
  auto count = static_cast<uint32_t>(ids.size());
  symbols.resize(count);
  heap.clear();
  for (uint32_t i = 0; i < count; ++i) symbols[i] = {ids[i], i - 1, i + 1};
  auto merge_at = [&](uint32_t at) {
    return symbols[at].next < count ? merges_.find({symbols[at].id, symbols[symbols[at].next].id}) : MergeTable::kNone;
  };
  for (uint32_t i = 0; i < count; ++i)
    if (MergeTable::Merge merge = merge_at(i); merge != MergeTable::kNone) heap.push_back({merge, i});
  std::make_heap(heap.begin(), heap.end(), later);
  auto add = [&](uint32_t at) {
    MergeTable::Merge merge = merge_at(at);
    if (merge == MergeTable::kNone) return;
    heap.push_back({merge, at});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    Scratch::Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    Scratch::Symbol& left = symbols[best.at];
    if (left.id == kNoToken || merge_at(best.at) != best.merge) continue;
    Scratch::Symbol& right = symbols[left.next];
    left.id = MergeTable::merged_id(best.merge);
    left.next = right.next;
    right.id = kNoToken;
    if (left.next < count) symbols[left.next].previous = best.at;
    add(best.at);
    if (left.previous < count) add(left.previous);
  }
  ids.clear();
  for (uint32_t at = 0; at < count; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace sextant
