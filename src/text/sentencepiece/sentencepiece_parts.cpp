// A tokenizer.model as TokenizerParts.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "text/sentencepiece/model_proto.h"
#include "text/sentencepiece/sentencepiece_normalizer.h"
#include "text/tokenizer_parts.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

bool is_matched_in_text(const SentencePiece& piece) {
  return piece.type == PieceType::normal || piece.type == PieceType::user_defined;
}

class PartsOfModel {
 public:
  PartsOfModel(const SentencePieceModel& model, std::string_view place) : model_(model), place_(place) {}

  TokenizerParts parts() {
    refuse_what_is_not_supported();
    parts_.unit = BpeUnit::character;
    parts_.byte_fallback = model_.byte_fallback;
    parts_.spaces_as_metaspace = true;
    read_vocabulary();
    read_normalizer();
    if (model_.kind == SentencePieceModel::Kind::bpe)
      read_merges();
    else
      read_scores();
    if (model_.bos >= 0 && model_.bos < id_count()) parts_.stated_bos = static_cast<uint32_t>(model_.bos);
    if (model_.eos >= 0 && model_.eos < id_count()) parts_.stated_eos = static_cast<uint32_t>(model_.eos);
    return std::move(parts_);
  }

 private:
  int64_t id_count() const { return static_cast<int64_t>(model_.pieces.size()); }

  [[noreturn]] void refuse(std::string got, std::string expected) const {
    throw UserError({.place = std::string(place_), .got = std::move(got), .expected = std::move(expected)});
  }

  void refuse_what_is_not_supported() const {
    if (model_.kind == SentencePieceModel::Kind::word || model_.kind == SentencePieceModel::Kind::character)
      refuse("a sentencepiece model of words or of characters", "one of type BPE or unigram");
    if (model_.space_as_suffix) refuse("treat_whitespace_as_suffix is set", "white space before words");
    if (!model_.escape_spaces) refuse("escape_whitespaces is off", "spaces written as U+2581");
    for (const SentencePiece& piece : model_.pieces)
      if (piece.type == PieceType::unused && model_.kind == SentencePieceModel::Kind::bpe)
        refuse(fmt::format("the piece \"{}\" is marked as unused", piece.text), "a BPE model without unused pieces");
  }

  void read_vocabulary() {
    std::array<bool, 256> bytes{};
    for (uint32_t id = 0; id < model_.pieces.size(); ++id) {
      const SentencePiece& piece = model_.pieces[id];
      parts_.vocab.push_back({piece.text, id, is_matched_in_text(piece)});
      if (is_matched_in_text(piece) && !ids_.emplace(piece.text, id).second)
        refuse(fmt::format("the piece \"{}\" twice", piece.text), "pieces that differ");
      if (piece.type == PieceType::unknown) parts_.unknown = {.id = id, .fused = true};
      if (piece.type == PieceType::control || piece.type == PieceType::unknown) parts_.specials.push_back(id);
      if (auto byte = byte_of_fallback_name(piece.text); byte && piece.type == PieceType::byte) bytes[*byte] = true;
    }
    if (!parts_.unknown.id) refuse("no piece of type unknown", "one, for characters that no piece has");
    if (model_.byte_fallback && std::find(bytes.begin(), bytes.end(), false) != bytes.end())
      refuse("byte_fallback without a piece for every byte", "256 pieces of type byte");
  }

  void read_normalizer() {
    SentencePieceRules rules{.charsmap = nullptr,
                             .add_dummy_prefix = model_.add_dummy_prefix,
                             .remove_extra_spaces = model_.remove_extra_spaces,
                             .kept = {}};
    if (!model_.charsmap.empty())
      rules.charsmap = std::make_shared<const Charsmap>(model_.charsmap, fmt::format("{} charsmap", place_));
    for (const SentencePiece& piece : model_.pieces)
      if (piece.type == PieceType::user_defined) rules.kept.push_back(piece.text);
    parts_.normalizer = sentencepiece_normalizer(std::move(rules));
  }

  // Two neighbours merge where together they are a piece, the one of the best score first.
  void read_merges() {
    std::map<float, uint32_t, std::greater<>> ranks;
    for (const auto& [text, id] : ids_) ranks[model_.pieces[id].score] = 0;
    uint32_t next = 0;
    for (auto& [score, rank] : ranks) rank = next++;
    for (const auto& [text, id] : ids_) {
      add_merges(text, id, ranks[model_.pieces[id].score]);
      if (model_.pieces[id].type == PieceType::user_defined)
        parts_.added.push_back({.id = id, .content = text, .normalized = true});
    }
    std::sort(parts_.added.begin(), parts_.added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }

  void add_merges(const std::string& text, uint32_t id, uint32_t rank) {
    for (size_t cut = decode_valid_utf8(text.data()).size; cut < text.size();
         cut += decode_valid_utf8(text.data() + cut).size) {
      auto left = ids_.find(text.substr(0, cut)), right = ids_.find(text.substr(cut));
      for (const auto& [side, part] : {std::pair(left, text.substr(0, cut)), std::pair(right, text.substr(cut))})
        if (side == ids_.end() && decode_valid_utf8(part.data()).size == part.size())
          refuse(fmt::format("the piece \"{}\" with a character that is no piece", text),
                 "a piece for every character of the others");
      if (left == ids_.end() || right == ids_.end()) continue;
      parts_.merges.push_back({{left->second, right->second}, id});
      parts_.merge_ranks.push_back(rank);
    }
  }

  void read_scores() {
    UnigramScores unigram{.scores = {}, .unknown = *parts_.unknown.id, .sums = ScoreSums::floats, .lowest = {}};
    float lowest = std::numeric_limits<float>::max();
    for (const SentencePiece& piece : model_.pieces)
      if (piece.type == PieceType::normal) lowest = std::min(lowest, piece.score);
    for (const SentencePiece& piece : model_.pieces) {
      // A user-defined piece wins over all pieces that it is made of, by the same bonus that the library adds. Rounded
      // sums of the pieces after it, and therefore ties, depend on the amount.
      bool bonus = piece.type == PieceType::user_defined;
      unigram.scores.push_back(bonus ? static_cast<float>(piece.text.size()) * 0.1f - 0.1 : double{piece.score});
    }
    unigram.lowest = lowest;
    parts_.unigram = std::move(unigram);
  }

  const SentencePieceModel& model_;
  std::string_view place_;
  TokenizerParts parts_;
  std::unordered_map<std::string, uint32_t> ids_;  // of pieces that stand in text
};

}  // namespace

TokenizerParts parse_sentencepiece(std::string_view bytes, std::string_view place) {
  SentencePieceModel model = read_sentencepiece(bytes, place);
  TokenizerParts parts = PartsOfModel(model, place).parts();
  parts.sentencepiece = std::string(bytes);
  return parts;
}

}  // namespace sextant
