// Encodes text with a cache of its own. One thread uses an encoder at a time; the stages and the model it refers to are
// shared, and must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/bpe_cache.h"
#include "text/piece_model.h"
#include "text/pretoken_stages.h"

namespace sextant {

// Where a text stands in its document, which decides what may go before it.
enum class TextPlace { start, later };

class Encoder {
 public:
  Encoder(const PretokenStages& stages, const PieceModel& model);

  // Appends the ids of `text`: valid UTF-8 that holds no added tokens.
  void encode(std::string_view text, TextPlace place, std::vector<uint32_t>& ids) { cut(0, text, place, ids); }

 private:
  void cut(size_t stage, std::string_view text, TextPlace place, std::vector<uint32_t>& ids);
  void cut_into_parts(std::string_view piece, std::vector<uint32_t>& ids);
  void encode_pieces(std::span<const std::string_view> pieces, const char* readable_end, std::vector<uint32_t>& ids);
  void encode_slowly(std::string_view piece, std::vector<uint32_t>& ids);

  const PretokenStages& stages_;
  const PieceModel& model_;
  const Splitter* parts_ = nullptr;  // used where no stage cuts, so that documents are not one piece each
  PieceCache cache_;
  std::unique_ptr<PieceModel::Scratch> scratch_;
};

}  // namespace sextant
