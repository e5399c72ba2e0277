// How sentencepiece normalizes text: by its charsmap, always the longest rule, with white space put in order.
#pragma once

#include <string>
#include <vector>

#include "text/normalize/charsmap.h"
#include "text/normalize/normalizer.h"

namespace sextant {

struct SentencePieceRules {
  std::shared_ptr<const Charsmap> charsmap;  // null: none
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  std::vector<std::string> kept;  // texts that no rule changes
};

NormalizerPtr sentencepiece_normalizer(SentencePieceRules rules);

}  // namespace sextant
