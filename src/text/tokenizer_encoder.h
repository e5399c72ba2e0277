// Encodes text with a cache of its own. One thread uses an encoder at a time; the stages and the model it refers to are
// shared, and must outlive it.
#pragma once

#include <array>
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
  static constexpr size_t kBatch = 256;  // pieces cut before they are encoded

  void cut(size_t stage, std::string_view text, TextPlace place, std::vector<uint32_t>& ids);
  void encode_uncut(std::string_view text, std::vector<uint32_t>& ids);
  void cut_into_parts(std::string_view piece, std::vector<uint32_t>& ids);
  void encode_pieces(std::span<const std::string_view> pieces, const char* readable_end, std::vector<uint32_t>& ids);
  void encode_slowly(std::string_view piece, std::vector<uint32_t>& ids);

  const PretokenStages& stages_;
  const PieceModel& model_;
  const Splitter* parts_ = nullptr;  // used where no stage cuts, so that documents are not one piece each
  size_t remembered_;                // the stage whose pieces the cache holds with the ids of all that follows
  PieceCache cache_;

  // Room that is used from call to call.
  std::vector<std::vector<std::string_view>> pieces_;                    // by stage
  std::array<PieceCache::ShortKey, kBatch> keys_;                        // of the pieces of a batch
  std::array<uint32_t, kBatch * PieceCache::kShortIds> remembered_ids_;  // of those that come one after the other
  std::unique_ptr<PieceModel::Scratch> scratch_;
};

}  // namespace sextant
