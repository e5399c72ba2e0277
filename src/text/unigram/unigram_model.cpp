#include "text/unigram/unigram_model.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "text/bpe/bpe_symbols.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

constexpr double kUnknownPenalty = 10;
constexpr uint32_t kNowhere = ~uint32_t{0};
constexpr size_t kHugePiece = 1 << 20;  // a longer piece does not leave its memory to the next

}  // namespace

// The best path that ends at a byte of the piece.
struct UnigramModel::Path {
  double score = 0;           // of type Sum, which a double holds
  uint32_t begin = kNowhere;  // of its last token
  uint32_t token = 0;         // its place in ids_; kNowhere: unknown
};

struct UnigramModel::Work : PieceModel::Scratch {
  std::vector<Path> paths;
  std::vector<uint32_t> ends;  // of the tokens, the last first
};

UnigramModel::UnigramModel(const UnigramModelParts& parts) : parts_(parts) {
  byte_ids_.fill(kNowhere);
  std::vector<std::pair<std::string, uint32_t>> texts;
  for (const UnigramPiece& piece : parts.pieces) {
    if (auto byte = byte_of_fallback_name(piece.text); byte && parts.byte_fallback) byte_ids_[*byte] = piece.id;
    if (piece.text.empty() || !piece.in_text) continue;
    texts.emplace_back(piece.text, static_cast<uint32_t>(ids_.size()));
    ids_.push_back(piece.id);
    scores_.push_back(piece.score);
  }
  trie_ = PieceTrie(std::move(texts));
  parts_.pieces.clear();
}

std::unique_ptr<PieceModel::Scratch> UnigramModel::make_scratch() const {
  return std::make_unique<Work>();
}

template <class Sum>
void UnigramModel::find_paths(std::string_view piece, std::vector<Path>& paths) const {
  auto unknown_score = static_cast<Sum>(static_cast<Sum>(parts_.lowest_score) - static_cast<Sum>(kUnknownPenalty));
  auto offer = [](Path& path, double score, uint32_t begin, uint32_t token) {
    if (path.begin != kNowhere && !(score > path.score)) return;
    path = {score, begin, token};
  };
  paths.assign(piece.size() + 1, Path{});
  for (size_t at = 0; at < piece.size();) {
    auto begin = static_cast<uint32_t>(at);
    uint32_t character = decode_valid_utf8(piece.data() + at).size;
    double till_here = paths[at].score;
    bool alone = false;  // the character is a piece by itself
    trie_.walk(piece.substr(at), [&](size_t size, uint32_t token) {
      offer(paths[at + size], static_cast<Sum>(scores_[token] + till_here), begin, token);
      alone |= size == character;
    });
    if (!alone)
      offer(paths[at + character], static_cast<Sum>(unknown_score + static_cast<Sum>(till_here)), begin, kNowhere);
    at += character;
  }
}

void UnigramModel::encode(std::string_view piece, std::vector<uint32_t>& out, PieceModel::Scratch& scratch) const {
  if (piece.size() >= kNowhere)
    throw UserError({.place = "text",
                     .got = fmt::format("{} bytes that the tokenizer's pattern does not split", piece.size()),
                     .expected = "pieces under 4 GiB"});
  Work for_this_piece;
  Work& work = piece.size() > kHugePiece ? for_this_piece : static_cast<Work&>(scratch);
  if (parts_.sums == ScoreSums::doubles)
    find_paths<double>(piece, work.paths);
  else
    find_paths<float>(piece, work.paths);
  work.ends.clear();
  for (auto end = static_cast<uint32_t>(piece.size()); end > 0; end = work.paths[end].begin) work.ends.push_back(end);
  uint32_t unknown_from = kNowhere, begin = 0;  // a run of unknown characters is one
  auto end_unknown = [&](uint32_t end) {
    if (unknown_from != kNowhere) append_unknown(piece.substr(unknown_from, end - unknown_from), out);
    unknown_from = kNowhere;
  };
  for (auto end = work.ends.rbegin(); end != work.ends.rend(); begin = *end++) {
    uint32_t token = work.paths[*end].token;
    if (token == kNowhere || ids_[token] == parts_.unknown) {
      if (unknown_from == kNowhere) unknown_from = begin;
      continue;
    }
    end_unknown(begin);
    out.push_back(ids_[token]);
  }
  end_unknown(static_cast<uint32_t>(piece.size()));
}

void UnigramModel::append_unknown(std::string_view text, std::vector<uint32_t>& out) const {
  // HF looks the run up as a whole, and finds it where it is a piece that no best path takes.
  if (uint32_t token = parts_.sums == ScoreSums::doubles ? trie_.find(text) : PieceTrie::kNone;
      token != PieceTrie::kNone)
    return out.push_back(ids_[token]);
  bool bytes = parts_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char byte) {
                 return byte_ids_[static_cast<uint8_t>(byte)] != kNowhere;
               });
  if (!bytes) return out.push_back(parts_.unknown);
  for (char byte : text) out.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
}

}  // namespace sextant
