// Converts one piece of text to ids: byte pairs that are merged, or the best path through a unigram vocabulary.
// Immutable after construction: threads may share it, each with its own scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/split/split.h"

namespace sextant {

class PieceModel {
 public:
  // Working memory of an encoding; the caller reuses it from piece to piece.
  struct Scratch {
    virtual ~Scratch() = default;
  };

  PieceModel() = default;
  PieceModel(const PieceModel&) = delete;
  PieceModel& operator=(const PieceModel&) = delete;
  virtual ~PieceModel() = default;
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;

  // Appends the ids of one piece of valid UTF-8. UserError for a piece of 4 GiB or more.
  virtual void encode(std::string_view piece, std::vector<uint32_t>& out, Scratch& scratch) const = 0;

  // Cuts a piece where that changes nothing, so that the parts, which are shorter and come again, can be remembered;
  // null where nothing is known about it. The parts are encoded by `encode_part`, unless the whole is one token.
  virtual const Splitter* parts_of_pieces() const { return nullptr; }
  virtual bool is_one_token(std::string_view, std::vector<uint32_t>&) const { return false; }
  virtual void encode_part(std::string_view part, std::vector<uint32_t>& out, Scratch& scratch) const {
    encode(part, out, scratch);
  }
};

}  // namespace sextant
