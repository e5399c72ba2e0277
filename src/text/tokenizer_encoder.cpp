#include "text/tokenizer_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "text/bpe/bpe_alphabet.h"

namespace sextant {

namespace {

// `text` as the stage changes it, before it is cut.
std::string changed_text(const PretokenStage& stage, std::string_view text, TextPlace place) {
  if (stage.to_byte_alphabet) return name_of_bytes(text);
  std::string out;
  out.reserve(text.size() + text.size() / 2 + stage.prefix.size());
  bool may_lead =
      stage.scheme == PrefixScheme::always || (stage.scheme == PrefixScheme::first && place == TextPlace::start);
  bool spaces_change = !stage.space.empty();
  bool leads =
      text.starts_with(stage.prefix) || (spaces_change && text.starts_with(' ') && stage.prefix == stage.space);
  if (may_lead && !leads) out += stage.prefix;
  if (!spaces_change) return out.append(text);
  while (!text.empty()) {
    size_t space = std::min(text.find(' '), text.size());
    out += text.substr(0, space);
    text.remove_prefix(space);
    if (text.empty()) break;
    out += stage.space;
    text.remove_prefix(1);
  }
  return out;
}

// The first that cuts words, if what follows does the same to a word wherever it stands; else the last, if it cuts;
// else none.
size_t remembered_stage(const PretokenStages& stages) {
  auto depends_on_place = [](const PretokenStage& stage) { return stage.scheme == PrefixScheme::first; };
  for (size_t i = 0; i < stages.size(); ++i) {
    auto behind = stages.begin() + static_cast<ptrdiff_t>(i) + 1;
    bool fits = stages[i].splitter && stages[i].splitter->cuts_words();
    if (fits && std::none_of(behind, stages.end(), depends_on_place)) return i;
  }
  return !stages.empty() && stages.back().splitter ? stages.size() - 1 : stages.size();
}

}  // namespace

Encoder::Encoder(const PretokenStages& stages, const PieceModel& model)
    : stages_(stages),
      model_(model),
      remembered_(remembered_stage(stages)),
      pieces_(stages.size() + 1, std::vector<std::string_view>(kBatch)),
      scratch_(model.make_scratch()) {
  bool cuts = std::any_of(stages.begin(), stages.end(), [](const PretokenStage& stage) { return stage.splitter; });
  if (!cuts) parts_ = model.parts_of_pieces();
}

void Encoder::cut(size_t stage, std::string_view text, TextPlace place, std::vector<uint32_t>& ids) {
  if (text.empty()) return;
  std::string changed;
  if (stage < stages_.size() && stages_[stage].changes_text()) {
    changed = changed_text(stages_[stage], text, place);
    text = changed;
  }
  if (stage >= stages_.size()) return encode_uncut(text, ids);
  if (!stages_[stage].splitter) return cut(stage + 1, text, place, ids);
  std::span<std::string_view> pieces = pieces_[stage];
  SplitCursor cursor;
  while (size_t count = stages_[stage].splitter->cut(text, cursor, pieces)) {
    if (stage == remembered_) {
      encode_pieces(pieces.first(count), text.data() + text.size(), ids);
      continue;
    }
    for (size_t i = 0; i < count; ++i)
      cut(stage + 1, pieces[i], pieces[i].data() == text.data() ? place : TextPlace::later, ids);
  }
}

void Encoder::encode_uncut(std::string_view text, std::vector<uint32_t>& ids) {
  if (parts_) return cut_into_parts(text, ids);
  if (remembered_ < stages_.size()) return model_.encode(text, ids, *scratch_);
  encode_pieces({&text, 1}, text.data() + text.size(), ids);
}

void Encoder::cut_into_parts(std::string_view piece, std::vector<uint32_t>& ids) {
  if (model_.is_one_token(piece, ids)) return;
  std::span<std::string_view> parts = pieces_.back();
  SplitCursor cursor;
  while (size_t count = parts_->cut(piece, cursor, parts))
    encode_pieces(parts.first(count), piece.data() + piece.size(), ids);
}

void Encoder::encode_pieces(std::span<const std::string_view> pieces, const char* readable_end,
                            std::vector<uint32_t>& ids) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size() > PieceCache::kShortBytes) continue;
    keys_[i] = PieceCache::short_key(pieces[i], readable_end);
    cache_.prefetch(keys_[i]);
  }
  // Remembered ids are copied kShortIds at a time, used or not, into room that is surely there.
  std::span<uint32_t> seen = remembered_ids_;
  size_t seen_count = 0;
  auto flush = [&] {
    ids.insert(ids.end(), seen.begin(), seen.begin() + static_cast<ptrdiff_t>(seen_count));
    seen_count = 0;
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size() <= PieceCache::kShortBytes) {
      if (const PieceCache::ShortEntry* entry = cache_.find_short(keys_[i])) {
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
  if (parts_)
    model_.encode_part(piece, ids, *scratch_);
  else if (remembered_ + 1 < stages_.size())
    cut(remembered_ + 1, piece, TextPlace::later, ids);
  else
    model_.encode(piece, ids, *scratch_);
  std::span<const uint32_t> made(ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
  if (piece.size() <= PieceCache::kShortBytes && made.size() <= PieceCache::kShortIds)
    cache_.remember_short(PieceCache::short_key(piece, piece.data() + piece.size()), made);
  else if (fits && made.size() <= PieceCache::kLongIds)
    cache_.remember_long(piece, made);
}

}  // namespace sextant
