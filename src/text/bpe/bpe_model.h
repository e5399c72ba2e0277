// Byte-pair encoding of one piece: bytes or characters become symbols, then the pair of neighbours with the lowest rank
// is merged, the leftmost first, until no pair has a rank. Results equal HF's `BPE` model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bpe/bpe_merges.h"
#include "text/bpe/bpe_symbols.h"
#include "text/bpe/bpe_whole.h"
#include "text/piece_model.h"

namespace sextant {

struct BpeModelParts {
  BpeTokens tokens;              // those that text can reach; as bytes, or as the names of a character vocabulary
  std::vector<BpeMerge> merges;  // in rank order; of equal pairs the last counts
  BpeUnknown unknown;
  bool whole_pieces_first = false;  // HF's ignore_merges: a piece that is a token is that token
  BpeUnit unit = BpeUnit::byte;
  BpeSymbols::Fallback fallback = BpeSymbols::Fallback::none;
  std::vector<uint32_t> ranks = {};  // of the merges, where several have the same; else a merge's rank is its place
};

class BpeModel : public PieceModel {
 public:
  explicit BpeModel(const BpeModelParts& parts);

  struct Scratch : PieceModel::Scratch {
    struct Symbol {
      uint32_t id;
      uint32_t previous, next;  // positions
    };
    struct Candidate {
      MergeTable::Merge merge;
      uint32_t at;
    };
    std::vector<uint32_t> ids;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  std::unique_ptr<PieceModel::Scratch> make_scratch() const override { return std::make_unique<Scratch>(); }
  void encode(std::string_view piece, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const override;
  const Splitter* parts_of_pieces() const override { return cuts_.get(); }
  bool is_one_token(std::string_view piece, std::vector<uint32_t>& out) const override;
  void encode_part(std::string_view part, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const override;

 private:
  void merge_symbols(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const;
  void merge_short(std::vector<uint32_t>& ids) const;
  void merge_long(Scratch& scratch) const;

  static constexpr uint32_t kNoToken = BpeSymbols::kNoToken;
  BpeSymbols symbols_;
  MergeTable merges_;
  bool scan_is_exact_;              // merge_short gives what merge_long does
  WholeTokens whole_;               // empty unless whole_pieces_first
  std::unique_ptr<Splitter> cuts_;  // null where they may change ids
};

}  // namespace sextant
