// What every decoder-only language model shares: tokens in at one end, loss or logits out at the other.
#pragma once

#include <optional>

#include "models/model.h"
#include "nn/blocks.h"

namespace sextant {

// The feeds of a use, made before the model's first op.
struct Frame {
  ValueId tokens = kNoValue;
  ValueId begins = kNoValue;           // with a mask of documents
  std::optional<CachePosition> cache;  // generation only
  ValueId at = kNoValue;               // generation only: the position whose logits are wanted
};

Frame open_frame(Builder& b, const Use& use);

// The end of a model: `x` after the last norm, `head` the output matrix.
void close_frame(Builder& b, const Use& use, const Frame& frame, ValueId x, ValueId head);

}  // namespace sextant
