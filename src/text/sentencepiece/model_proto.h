// A tokenizer.model of sentencepiece: the fields of its protocol buffer that say how text is encoded. All others are
// passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct SentencePieceModel {
  enum class Kind { unigram = 1, bpe = 2, word = 3, character = 4 };

  std::vector<SentencePiece> pieces;  // by id
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  bool space_as_suffix = false;
  int64_t bos = 1, eos = 2;  // -1: none
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
};

// UserError at `place` where the bytes are not such a file.
SentencePieceModel read_sentencepiece(std::string_view bytes, std::string_view place);

}  // namespace sextant
