// Encodes text with a cache of its own. One thread uses an encoder at a time; the stages and the model it refers to are
// shared, and must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/bpe/bpe_cache.h"
#include "text/bpe/bpe_model.h"
#include "text/pretoken_stages.h"

namespace sextant {

class Encoder {
 public:
  Encoder(const PretokenStages& stages, const BpeModel& model) : stages_(stages), model_(model) {}

  // Appends the ids of `text`: valid UTF-8 that holds no added tokens.
  void encode(std::string_view text, std::vector<uint32_t>& ids) { cut(0, text, ids); }

 private:
  void cut(size_t stage, std::string_view text, std::vector<uint32_t>& ids);
  void encode_pieces(std::span<const std::string_view> pieces, const char* readable_end, std::vector<uint32_t>& ids);
  void encode_slowly(std::string_view piece, std::vector<uint32_t>& ids);

  const PretokenStages& stages_;
  const BpeModel& model_;
  PieceCache cache_;
  BpeModel::Scratch scratch_;
};

}  // namespace sextant
