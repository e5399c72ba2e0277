#include "text/tokenizer_added.h"

#include <algorithm>

#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(decode_valid_utf8(previous_utf8(text.data() + text.size())).code);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(decode_valid_utf8(text.data()).code);
}

bool is_space(const char* at) {
  return UnicodeKinds::get().of(decode_valid_utf8(at).code) == CharKind::space;
}

size_t without_space_at_end(std::string_view text) {
  const char* end = text.data() + text.size();
  while (end != text.data() && is_space(previous_utf8(end))) end = previous_utf8(end);
  return static_cast<size_t>(end - text.data());
}

size_t space_at_start(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && is_space(text.data() + size)) size += decode_valid_utf8(text.data() + size).size;
  return size;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, const Normalizer* normalizer)
    : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    std::string content = token.normalized ? normalized(token.content, normalizer) : token.content;
    if (!content.empty()) (token.normalized ? normalized_ : raw_).add(content, static_cast<int32_t>(i));
  }
}

std::vector<TextPart> AddedTokenFinder::split_with(const Tree& tree, std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (auto match = tree.find(text, 0); match; match = tree.find(text, match->end)) {
    const AddedToken& token = tokens_[static_cast<size_t>(match->token)];
    size_t begin = match->begin, end = match->end;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    if (token.lstrip) begin = std::max(done, without_space_at_end(text.substr(0, begin)));
    if (token.rstrip) end += space_at_start(text.substr(end));
    // All of it is white space that the token before it took. (Where the end lies before `done`, HF panics.)
    if (begin >= end) continue;
    if (done < begin) parts.push_back({text.substr(done, begin - done), std::nullopt});
    parts.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), std::nullopt});
  return parts;
}

void AddedTokenFinder::Tree::add(std::string_view content, int32_t token) {
  if (empty())
    only_beginning = content[0];
  else if (only_beginning != content[0])
    only_beginning.reset();
  begins[static_cast<uint8_t>(content[0])] = true;
  int32_t at = 0;
  for (char byte : content) {
    int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes.size());
      nodes.push_back({.byte = byte, .next_sibling = nodes[static_cast<size_t>(at)].first_child});
      nodes[static_cast<size_t>(at)].first_child = next;
    }
    at = next;
  }
  // Of tokens that look the same when normalized, the first counts. (HF takes one of them by chance.)
  int32_t& last = nodes[static_cast<size_t>(at)].token;
  if (last < 0) last = token;
}

int32_t AddedTokenFinder::Tree::child(int32_t node, char byte) const {
  int32_t at = nodes[static_cast<size_t>(node)].first_child;
  while (at >= 0 && nodes[static_cast<size_t>(at)].byte != byte) at = nodes[static_cast<size_t>(at)].next_sibling;
  return at;
}

// The first byte from `from` on at which some token could begin.
size_t AddedTokenFinder::Tree::next_candidate(std::string_view text, size_t from) const {
  if (only_beginning) return std::min(text.find(*only_beginning, from), text.size());
  while (from < text.size() && !begins[static_cast<uint8_t>(text[from])]) ++from;
  return from;
}

std::optional<AddedTokenFinder::Tree::Match> AddedTokenFinder::Tree::find(std::string_view text, size_t from) const {
  if (empty()) return std::nullopt;
  for (size_t begin = next_candidate(text, from); begin < text.size(); begin = next_candidate(text, begin + 1)) {
    std::optional<Match> longest;
    int32_t node = 0;
    for (size_t at = begin; at < text.size() && (node = child(node, text[at])) >= 0; ++at)
      if (int32_t token = nodes[static_cast<size_t>(node)].token; token >= 0) longest = Match{begin, at + 1, token};
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace sextant
