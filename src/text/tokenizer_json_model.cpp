// Reads the model of a tokenizer.json: its vocabulary, and its merges or scores.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "text/bpe/bpe_alphabet.h"
#include "text/tokenizer_json.h"

namespace sextant {

namespace {

// Ids that may be without a token. It bounds the tables by id, which a hostile id would make huge.
constexpr uint32_t kHoles = 1 << 20;

using IdOfName = std::unordered_map<std::string_view, uint32_t>;

IdOfName read_vocab(const JsonField& vocab, TokenizerParts& parts) {
  vocab.expect(vocab.json().is_object(), "an object of tokens and ids");
  size_t count = vocab.json().size();
  IdOfName ids;
  for (const auto& [name, value] : vocab.json().items()) {
    uint32_t id = vocab[name].id();
    if (id >= count + kHoles)
      vocab[name].refuse(fmt::format("id {} in a vocabulary of {}", id, count), "ids without wide gaps");
    parts.vocab.push_back({name, id});
  }
  std::sort(parts.vocab.begin(), parts.vocab.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (size_t i = 0; i < parts.vocab.size(); ++i) {
    const VocabEntry& entry = parts.vocab[i];
    if (i > 0 && parts.vocab[i - 1].id == entry.id)
      vocab.refuse(fmt::format("\"{}\" and \"{}\" share id {}", parts.vocab[i - 1].name, entry.name, entry.id),
                   "unique ids");
    ids.emplace(entry.name, entry.id);
  }
  return ids;
}

// One merge as two names; none for the version line that old files carry.
std::optional<std::pair<std::string, std::string>> read_merge(const JsonField& merge, MergeNotation notation) {
  if (notation == MergeNotation::pairs) {
    std::vector<JsonField> names = merge.items();
    merge.expect(names.size() == 2, "a pair of tokens");
    return std::pair(names[0].text(), names[1].text());
  }
  const std::string& text = merge.text();
  if (text.starts_with("#version")) return std::nullopt;
  size_t space = text.find(' ');
  merge.expect(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, "two tokens and a space");
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

void read_merges(const JsonField& merges, const IdOfName& ids, TokenizerParts& parts) {
  std::vector<JsonField> list = merges.items();
  parts.notation = !list.empty() && list[0].json().is_string() ? MergeNotation::joined : MergeNotation::pairs;
  for (const JsonField& merge : list) {
    auto names = read_merge(merge, parts.notation);
    if (!names) continue;
    auto id_of = [&](const std::string& name) {
      auto found = ids.find(name);
      if (found == ids.end())
        merge.refuse(fmt::format("\"{}\" is not in the vocabulary", name), "tokens of model.vocab");
      return found->second;
    };
    parts.merges.push_back({{id_of(names->first), id_of(names->second)}, id_of(names->first + names->second)});
  }
}

void read_bpe(const JsonField& model, TokenizerParts& parts) {
  const JsonField dropout = model["dropout"];
  if (!dropout.is_null() && dropout.json() != 0) dropout.refuse("merges are dropped at random", "no dropout");
  for (std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].is_null() && !model[key].text().empty())
      model[key].refuse(fmt::format("is \"{}\"", model[key].text()), "null: affixes of subwords are not supported");
  IdOfName ids = read_vocab(model["vocab"], parts);
  read_merges(model["merges"], ids, parts);
  parts.ignore_merges = model["ignore_merges"].flag(false);
  parts.unknown.fused = model["fuse_unk"].flag(false);
  if (const JsonField unknown = model["unk_token"]; !unknown.is_null()) {
    parts.unknown_name = unknown.text();
    auto found = ids.find(*parts.unknown_name);
    if (found != ids.end()) parts.unknown.id = found->second;
  }
  parts.byte_fallback = model["byte_fallback"].flag(false);
  bool all_bytes = parts.unit == BpeUnit::byte;
  for (int byte = 0; byte < 256 && parts.unit == BpeUnit::byte; ++byte)
    all_bytes &= ids.contains(name_of_bytes(std::string(1, static_cast<char>(byte))));
  if (!all_bytes && parts.unit == BpeUnit::byte && parts.byte_fallback)
    model["byte_fallback"].refuse("is true", "a vocabulary that holds all 256 bytes");
  if (!all_bytes && parts.unknown_name && !parts.unknown.id)
    model["unk_token"].refuse(fmt::format("\"{}\" is not in the vocabulary", *parts.unknown_name),
                              "a token of model.vocab");
}

void read_unigram(const JsonField& model, TokenizerParts& parts) {
  if (parts.unit == BpeUnit::byte)
    model.refuse("a Unigram model behind a ByteLevel pre-tokenizer",
                 "a vocabulary of characters, as sentencepiece makes");
  UnigramScores unigram;
  for (const JsonField& item : model["vocab"].items()) {
    std::vector<JsonField> piece = item.items();
    item.expect(piece.size() == 2 && piece[1].json().is_number(), "a piece and its score");
    double score = piece[1].json().get<double>();
    item.expect(std::isfinite(score), "a score that is finite");
    parts.vocab.push_back({piece[0].text(), static_cast<uint32_t>(parts.vocab.size())});
    unigram.scores.push_back(score);
  }
  if (model["unk_id"].is_null()) model["unk_id"].refuse("is missing", "the id of the token for unknown characters");
  unigram.unknown = model["unk_id"].id();
  model["unk_id"].expect(unigram.unknown < parts.vocab.size(), "an id of the vocabulary");
  parts.byte_fallback = model["byte_fallback"].flag(false);
  parts.unigram = std::move(unigram);
}

}  // namespace

void read_model(const JsonField& model, TokenizerParts& parts) {
  std::string type = model["type"].is_null() ? "BPE" : model.type();
  if (type == "Unigram") return read_unigram(model, parts);
  if (type != "BPE") model.refuse(fmt::format("a {} model", type), "a BPE or Unigram model");
  read_bpe(model, parts);
}

}  // namespace sextant
