// How text becomes pieces: stages one after the other, each cutting what the one before it left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/split/split.h"

namespace sextant {

// When the prefix is added to a text that does not begin with it: never, always, or only at the very begin of the
// document.
enum class PrefixScheme { never, always, first };

struct PretokenStage {
  std::string space = {};  // what takes the place of each space (Metaspace); empty: spaces stay
  std::string prefix = {};
  PrefixScheme scheme = PrefixScheme::never;
  bool to_byte_alphabet = false;  // instead of these: bytes become the characters that stand for them
  std::shared_ptr<const Splitter> splitter = nullptr;  // then cut; null cuts nothing

  bool changes_text() const { return to_byte_alphabet || !space.empty() || scheme != PrefixScheme::never; }
};

using PretokenStages = std::vector<PretokenStage>;

}  // namespace sextant
