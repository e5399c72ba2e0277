#include "text/tokenizer_encoder.h"

#include <array>
#include <cstring>
#include <string>

namespace sextant {

namespace {

constexpr size_t kBatch = 256;  // pieces cut before they are encoded

}  // namespace

void Encoder::cut(size_t stage, std::string_view text, std::vector<uint32_t>& ids) {
  if (text.empty()) return;
  std::string prefixed;
  if (stage < stages_.size() && stages_[stage].prefix_space && text[0] != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed += ' ';
    prefixed += text;
    text = prefixed;
  }
  const char* end = text.data() + text.size();
  if (stage >= stages_.size()) return encode_pieces({&text, 1}, end, ids);
  if (!stages_[stage].splitter) return cut(stage + 1, text, ids);
  std::array<std::string_view, kBatch> pieces;
  SplitCursor cursor;
  while (size_t count = stages_[stage].splitter->cut(text, cursor, pieces)) {
    if (stage + 1 == stages_.size())
      encode_pieces({pieces.data(), count}, end, ids);
    else
      for (size_t i = 0; i < count; ++i) cut(stage + 1, pieces[i], ids);
  }
}

void Encoder::encode_pieces(std::span<const std::string_view> pieces, const char* readable_end,
                            std::vector<uint32_t>& ids) {
  std::array<PieceCache::ShortKey, kBatch> keys;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size() > PieceCache::kShortBytes) continue;
    keys[i] = PieceCache::short_key(pieces[i], readable_end);
    cache_.prefetch(keys[i]);
  }
  // Remembered ids are copied kShortIds at a time, used or not, into room that is surely there.
  std::array<uint32_t, kBatch * PieceCache::kShortIds> seen;
  size_t seen_count = 0;
  auto flush = [&] {
    ids.insert(ids.end(), seen.begin(), seen.begin() + static_cast<ptrdiff_t>(seen_count));
    seen_count = 0;
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size() <= PieceCache::kShortBytes) {
      if (const PieceCache::ShortEntry* entry = cache_.find_short(keys[i])) {
        std::memcpy(&seen[seen_count], entry->ids, sizeof entry->ids);
        seen_count += entry->count;
        continue;
      }
    }
    flush();
    encode_slowly(pieces[i], ids);
  }
  flush();
}

void Encoder::encode_slowly(std::string_view piece, std::vector<uint32_t>& ids) {
  bool fits = piece.size() <= PieceCache::kLongBytes;
  if (fits) {
    if (std::span<const uint32_t> found = cache_.find_long(piece); !found.empty()) {
      ids.insert(ids.end(), found.begin(), found.end());
      return;
    }
  }
  size_t before = ids.size();
  model_.encode(piece, ids, scratch_);
  std::span<const uint32_t> made(ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
  if (piece.size() <= PieceCache::kShortBytes && made.size() <= PieceCache::kShortIds)
    cache_.remember_short(PieceCache::short_key(piece, piece.data() + piece.size()), made);
  else if (fits && made.size() <= PieceCache::kLongIds)
    cache_.remember_long(piece, made);
}

}  // namespace sextant
