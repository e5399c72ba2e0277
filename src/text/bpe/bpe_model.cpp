#include "text/bpe/bpe_model.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/bpe/bpe_cuts.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// Up to here a scan for the lowest rank after every merge beats a heap; beyond it would be quadratic.
constexpr size_t kShort = 64;

// A longer piece gets scratch of its own: the caller's would hold on to the memory from then on.
constexpr size_t kHuge = 1 << 20;

}  // namespace

namespace {

// HF tells a candidate that is out of date by the token it would make. Where two pairs make the same token at different
// ranks, one that is out of date may pass for the other and is merged earlier than its rank says; only the heap, which
// does as HF does, can tell. Where different tokens have one rank, position decides, which the scan does not know.
bool scan_finds_the_same(const BpeModelParts& parts) {
  std::unordered_map<uint32_t, uint32_t> token_of_rank, rank_of_token;
  for (size_t i = 0; i < parts.merges.size(); ++i) {
    uint32_t rank = parts.ranks.empty() ? static_cast<uint32_t>(i) : parts.ranks[i];
    uint32_t token = parts.merges[i].merged;
    if (rank_of_token.emplace(token, rank).first->second != rank) return false;
    if (token_of_rank.emplace(rank, token).first->second != token) return false;
  }
  return true;
}

// Nothing where merges may reach across in ways that characters do not tell: by the tokens of single bytes, or by that
// of unknown characters.
std::unique_ptr<Splitter> make_cuts(const BpeModelParts& parts, const BpeSymbols& symbols) {
  if (parts.unit == BpeUnit::byte) return nullptr;
  std::unordered_map<uint32_t, std::string_view> names;
  for (const auto& [name, id] : parts.tokens) names.emplace(id, name);
  std::vector<MergeBoundary> boundaries;
  for (const BpeMerge& merge : parts.merges) {
    for (uint32_t id : {merge.pair.left, merge.pair.right})
      if (id == parts.unknown.id || names[id].empty() || byte_of_fallback_name(names[id])) return nullptr;
    std::string_view left = names[merge.pair.left], right = names[merge.pair.right];
    boundaries.push_back(
        {decode_valid_utf8(previous_utf8(left.data() + left.size())).code, decode_valid_utf8(right.data()).code});
  }
  return cut_between_merges(boundaries, symbols);
}

}  // namespace

BpeModel::BpeModel(const BpeModelParts& parts)
    : symbols_(parts.tokens, parts.unit, parts.unknown, parts.fallback),
      merges_(parts.merges, parts.ranks),
      scan_is_exact_(scan_finds_the_same(parts)),
      cuts_(make_cuts(parts, symbols_)) {
  if (parts.whole_pieces_first) whole_ = WholeTokens(parts.tokens);
}

bool BpeModel::is_one_token(std::string_view piece, std::vector<uint32_t>& out) const {
  std::optional<uint32_t> token = whole_.find(piece);
  if (token) out.push_back(*token);
  return token.has_value();
}

void BpeModel::encode(std::string_view piece, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const {
  if (!is_one_token(piece, out)) encode_part(piece, out, scratch);
}

void BpeModel::encode_part(std::string_view part, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const {
  if (part.size() <= kHuge) return merge_symbols(part, out, static_cast<Scratch&>(scratch));
  if (part.size() >= kNoToken)
    throw UserError({.place = "text",
                     .got = fmt::format("{} bytes that the tokenizer's pattern does not split", part.size()),
                     .expected = "pieces under 4 GiB"});
  Scratch for_this_piece;
  merge_symbols(part, out, for_this_piece);
}

void BpeModel::merge_symbols(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const {
  scratch.ids.clear();
  symbols_.append(piece, scratch.ids);
  if (scan_is_exact_ && scratch.ids.size() <= kShort)
    merge_short(scratch.ids);
  else
    merge_long(scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
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

// The same by a heap of candidates over a linked list. A candidate whose symbols have changed since is out of date, and
// is known by the token it would make no longer being that of its place.
void BpeModel::merge_long(Scratch& scratch) const {
  std::vector<uint32_t>& ids = scratch.ids;
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  std::vector<Scratch::Candidate>& heap = scratch.heap;
  auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    uint32_t rank_a = MergeTable::rank_of(a.merge), rank_b = MergeTable::rank_of(b.merge);
    return rank_a != rank_b ? rank_a > rank_b : a.at > b.at;
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
    if (left.id == kNoToken || MergeTable::merged_id(merge_at(best.at)) != MergeTable::merged_id(best.merge)) continue;
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
