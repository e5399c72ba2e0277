// The best path through a vocabulary of scored pieces. Results equal HF's `Unigram` model, or the sentencepiece
// library, to the last tie: the two add scores up in different types.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "text/piece_model.h"
#include "text/unigram/piece_trie.h"

namespace sextant {

enum class ScoreSums {
  doubles,  // HF `tokenizers`
  floats    // sentencepiece 0.2.2
};

struct UnigramPiece {
  std::string text;
  uint32_t id = 0;
  double score = 0;
  bool in_text = true;  // else it only names a byte for the fallback
};

struct UnigramModelParts {
  std::vector<UnigramPiece> pieces;  // those that text can reach
  double lowest_score = 0;           // an unknown character scores 10 less
  uint32_t unknown = 0;
  bool byte_fallback = false;  // unknown characters become the tokens of their bytes, "<0x0A>"
  ScoreSums sums = ScoreSums::doubles;
};

class UnigramModel : public PieceModel {
 public:
  explicit UnigramModel(const UnigramModelParts& parts);

  std::unique_ptr<PieceModel::Scratch> make_scratch() const override;
  void encode(std::string_view piece, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const override;

 private:
  struct Path;
  struct Work;

  template <class Sum>
  void find_paths(std::string_view piece, std::vector<Path>& paths) const;
  void append_unknown(std::string_view text, std::vector<uint32_t>& out) const;

  PieceTrie trie_;  // values are places in ids_ and scores_
  std::vector<uint32_t> ids_;
  std::vector<double> scores_;
  std::array<uint32_t, 256> byte_ids_;
  UnigramModelParts parts_;  // without the pieces
};

}  // namespace sextant
