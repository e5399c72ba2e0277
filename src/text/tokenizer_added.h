// Added tokens: strings that become one id wherever they stand in text, before anything is split.
// The rules are HF's: the leftmost match counts, and of those the longest; flags widen a match over white space, or
// refuse it beside word characters; `normalized` tokens are looked for only in what the others left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalize/normalizer.h"

namespace sextant {

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool single_word = false;  // not beside word characters
  bool lstrip = false;       // takes the white space to its left
  bool rstrip = false;       // and to its right
  bool normalized = false;   // second round: looked for in normalized text, as it looks when normalized itself
  bool special = false;      // may be left out when decoding
};

// A part of a text: an added token where `id` is there, else plain.
struct TextPart {
  std::string_view text;
  std::optional<uint32_t> id;
};

class AddedTokenFinder {
 public:
  // `normalizer` is what the text of the second round went through; null: nothing.
  AddedTokenFinder(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  // The parts of `text`, which is valid UTF-8, in order, by the tokens of one round.
  std::vector<TextPart> split_raw(std::string_view text) const { return split_with(raw_, text); }
  std::vector<TextPart> split_normalized(std::string_view text) const { return split_with(normalized_, text); }

 private:
  // The contents of some tokens as a tree of bytes.
  struct Tree {
    struct Node {
      char byte = 0;
      int32_t token = -1;  // the token that ends here
      int32_t first_child = -1, next_sibling = -1;
    };
    struct Match {
      size_t begin, end;
      int32_t token;
    };

    bool empty() const { return nodes.size() == 1; }
    void add(std::string_view content, int32_t token);
    std::optional<Match> find(std::string_view text, size_t from) const;
    int32_t child(int32_t node, char byte) const;
    size_t next_candidate(std::string_view text, size_t from) const;

    std::vector<Node> nodes = std::vector<Node>(1);  // the root
    std::array<bool, 256> begins{};                  // bytes with which tokens begin
    std::optional<char> only_beginning;              // where it is but one
  };

  std::vector<TextPart> split_with(const Tree& tree, std::string_view text) const;

  std::vector<AddedToken> tokens_;
  Tree raw_, normalized_;
};

}  // namespace sextant
