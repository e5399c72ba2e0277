// Writes tokenizer.json, with the keys in the order HF `tokenizers` writes them.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "text/tokenizer_parts.h"

namespace sextant {

namespace {

std::string lines(const std::vector<std::string>& items, std::string_view open, std::string_view close,
                  std::string_view indent) {
  if (items.empty()) return fmt::format("{}{}", open, close);
  std::string out(open);
  for (size_t i = 0; i < items.size(); ++i) out += fmt::format("{}\n{}  {}", i == 0 ? "" : ",", indent, items[i]);
  return out + fmt::format("\n{}{}", indent, close);
}

std::string added_text(const TokenizerParts& parts) {
  std::vector<std::string> items;
  for (const AddedToken& token : parts.added)
    items.push_back(fmt::format(
        R"({{"id": {}, "content": {}, "single_word": {}, "lstrip": {}, "rstrip": {}, "normalized": {}, "special": {}}})",
        token.id, json_quoted(token.content), token.single_word, token.lstrip, token.rstrip, token.normalized,
        token.special));
  return lines(items, "[", "]", "  ");
}

std::string vocab_text(const TokenizerParts& parts) {
  std::vector<std::string> items;
  for (const VocabEntry& entry : parts.vocab) items.push_back(fmt::format("{}: {}", json_quoted(entry.name), entry.id));
  return lines(items, "{", "}", "    ");
}

std::string merges_text(const TokenizerParts& parts) {
  std::unordered_map<uint32_t, std::string_view> names;
  for (const VocabEntry& entry : parts.vocab) names.emplace(entry.id, entry.name);
  std::vector<std::string> items;
  for (const BpeMerge& merge : parts.merges) {
    std::string_view left = names.at(merge.pair.left), right = names.at(merge.pair.right);
    items.push_back(parts.notation == MergeNotation::joined
                        ? json_quoted(fmt::format("{} {}", left, right))
                        : fmt::format("[{}, {}]", json_quoted(left), json_quoted(right)));
  }
  return lines(items, "[", "]", "    ");
}

std::string unigram_text(const TokenizerParts& parts) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < parts.vocab.size(); ++i)
    pieces.push_back(
        fmt::format("[{}, {}]", json_quoted(parts.vocab[i].name), nlohmann::json(parts.unigram->scores[i]).dump()));
  std::vector<std::string> fields{
      R"("type": "Unigram")",
      fmt::format(R"("unk_id": {})", parts.unigram->unknown),
      fmt::format(R"("vocab": {})", lines(pieces, "[", "]", "    ")),
      fmt::format(R"("byte_fallback": {})", parts.byte_fallback),
  };
  return lines(fields, "{", "}", "  ");
}

std::string model_text(const TokenizerParts& parts) {
  if (parts.unigram) return unigram_text(parts);
  std::vector<std::string> fields{
      R"("type": "BPE")",
      R"("dropout": null)",
      fmt::format(R"("unk_token": {})", parts.unknown_name ? json_quoted(*parts.unknown_name) : "null"),
      R"("continuing_subword_prefix": null)",
      R"("end_of_word_suffix": null)",
      fmt::format(R"("fuse_unk": {})", parts.unknown.fused),
      fmt::format(R"("byte_fallback": {})", parts.byte_fallback),
      fmt::format(R"("ignore_merges": {})", parts.ignore_merges),
      fmt::format(R"("vocab": {})", vocab_text(parts)),
      fmt::format(R"("merges": {})", merges_text(parts)),
  };
  return lines(fields, "{", "}", "  ");
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string write_tokenizer(const TokenizerParts& parts) {
  std::vector<std::string> fields{
      R"("version": "1.0")",
      R"("truncation": null)",
      R"("padding": null)",
      fmt::format(R"("added_tokens": {})", added_text(parts)),
      fmt::format(R"("normalizer": {})", parts.extras.normalizer),
      fmt::format(R"("pre_tokenizer": {})", parts.extras.pre_tokenizer),
      fmt::format(R"("post_processor": {})", parts.extras.post_processor),
      fmt::format(R"("decoder": {})", parts.extras.decoder),
      fmt::format(R"("model": {})", model_text(parts)),
  };
  for (const auto& [key, value] : parts.extras.unknown_keys)
    fields.push_back(fmt::format("{}: {}", json_quoted(key), value));
  return lines(fields, "{", "}", "") + "\n";
}

}  // namespace sextant
