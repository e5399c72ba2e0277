// Reads tokenizer.json. What we do not do as HF does is refused by name here, so that ids are never quietly different.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "text/json_field.h"
#include "text/normalize/normalizer_read.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_parts.h"

namespace sextant {

namespace {

using Json = nlohmann::json;
using Field = JsonField;

constexpr int kDeepest = 64;  // levels of nesting; real files have 6

// Deep nesting would overflow the stack of whoever walks the tree, so it is refused before there is one.
void check_depth(std::string_view text, std::string_view place) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (in_string && c == '\\') ++at;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepest)
      throw UserError({.place = fmt::format("{} byte {}", place, at),
                       .got = fmt::format("nested over {} deep", kDeepest),
                       .expected = "a tokenizer.json"});
  }
}

// The library's reason begins with a name of its own: "[json.exception.parse_error.101] parse error at line 1, …".
[[noreturn]] void not_json(std::string place, std::string_view why) {
  if (size_t name = why.find("] "); why.starts_with('[') && name != why.npos) why.remove_prefix(name + 2);
  throw UserError(
      {.place = std::move(place), .got = "not valid JSON", .expected = "a tokenizer.json", .hint = std::string(why)});
}

Json parse_json(std::string_view text, std::string_view place) {
  check_depth(text, place);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    not_json(fmt::format("{} byte {}", place, error.byte), error.what());
  } catch (const Json::out_of_range& error) {  // a number too large for a double
    not_json(std::string(place), error.what());
  }
}

// HF gives ids to added tokens anew when it reads a file, in order after the vocabulary. Files made by it agree with
// that; one that does not means different ids to different readers, so it is refused.
void read_added(const Field& added, TokenizerParts& parts) {
  if (added.is_null()) return;
  std::unordered_map<std::string, uint32_t> vocab;
  for (const VocabEntry& entry : parts.vocab) vocab.emplace(entry.name, entry.id);
  std::unordered_set<std::string> contents;
  auto next_id = static_cast<uint32_t>(parts.vocab.size());
  for (const Field& item : added.items()) {
    AddedToken token{.id = item["id"].id(),
                     .content = item["content"].text(),
                     .single_word = item["single_word"].flag(false),
                     .lstrip = item["lstrip"].flag(false),
                     .rstrip = item["rstrip"].flag(false),
                     .normalized = item["normalized"].flag(false),
                     .special = item["special"].flag(false)};
    if (token.content.empty()) item["content"].refuse("is empty", "a string to look for");
    if (!contents.insert(token.content).second)
      item["content"].refuse(fmt::format("\"{}\" is added twice", token.content), "unique tokens");
    auto known = vocab.find(token.content);
    uint32_t expected = known != vocab.end() ? known->second : next_id++;
    if (token.id != expected)
      item["id"].refuse(fmt::format("\"{}\" has id {}", token.content, token.id),
                        fmt::format("{}, where HF `tokenizers` puts it", expected),
                        "load and save the file with HF `tokenizers` to see the ids it uses");
    parts.added.push_back(std::move(token));
  }
  std::sort(parts.added.begin(), parts.added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (!parts.vocab.empty() && next_id > parts.vocab.size() && parts.vocab.back().id >= parts.vocab.size())
    added.refuse(
        fmt::format("ids from {} on, while the vocabulary reaches {}", parts.vocab.size(), parts.vocab.back().id),
        "a vocabulary without gaps below added tokens");
}

// HF finds a token that the normalizer removes between all bytes of a text, where it cuts.
void check_normalized(const Field& added, const TokenizerParts& parts) {
  if (added.is_null()) return;
  for (const Field& item : added.items())
    if (item["normalized"].flag(false) && normalized(item["content"].text(), parts.normalizer.get()).empty())
      item["content"].refuse("is removed by the normalizer", "a token that the normalizer leaves something of",
                             "set its \"normalized\" to false");
}

// Ids of a special token of a template.
std::vector<uint32_t> template_ids(const Field& processor, const std::string& name) {
  std::vector<uint32_t> ids;
  for (const Field& id : processor["special_tokens"][name]["ids"].items()) ids.push_back(id.id());
  return ids;
}

void read_template(const Field& processor, TokenizerParts& parts) {
  bool after_sequence = false;
  for (const Field& piece : processor["single"].items()) {
    if (const Field special = piece["SpecialToken"]; !special.is_null()) {
      std::vector<uint32_t> ids = template_ids(processor, special["id"].text());
      std::vector<uint32_t>& side = after_sequence ? parts.suffix : parts.prefix;
      side.insert(side.end(), ids.begin(), ids.end());
      continue;
    }
    if (after_sequence || piece["Sequence"]["id"].text() != "A")
      piece.refuse("more than the one sequence", "special tokens around sequence A");
    after_sequence = true;
  }
  if (!after_sequence) processor["single"].refuse("no sequence", "special tokens around sequence A");
}

void read_post_processor(const Field& field, TokenizerParts& parts) {
  if (field.is_null()) return;
  std::vector<Field> steps = field.type() == "Sequence" ? field["processors"].items() : std::vector{field};
  bool wrapped = false;
  for (const Field& step : steps) {
    std::string type = step.type();
    if (type == "ByteLevel") continue;  // changes offsets only
    if (std::exchange(wrapped, true)) step.refuse("a second processor that adds tokens", "at most one");
    if (type == "TemplateProcessing") {
      read_template(step, parts);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      std::vector<Field> first = step["cls"].items(), last = step["sep"].items();
      step.expect(first.size() == 2 && last.size() == 2, "cls and sep, each a token and its id");
      parts.prefix = {first[1].id()};
      parts.suffix = {last[1].id()};
    } else {
      step.refuse(fmt::format("a {} post-processor", type),
                  "TemplateProcessing, RobertaProcessing, BertProcessing or ByteLevel");
    }
  }
}

// Documents are trained on with these around them, so each must be a token.
void check_surrounding(const Field& field, const TokenizerParts& parts) {
  std::unordered_set<uint32_t> known;
  for (const VocabEntry& entry : parts.vocab) known.insert(entry.id);
  for (const AddedToken& token : parts.added) known.insert(token.id);
  for (const std::vector<uint32_t>* side : {&parts.prefix, &parts.suffix})
    for (uint32_t id : *side)
      if (!known.contains(id))
        field.refuse(fmt::format("adds id {}, which no token has", id), "ids of the vocabulary or of added tokens");
}

void read_extras(const Field& top, TokenizerExtras& extras) {
  extras.normalizer = top["normalizer"].json().dump();
  extras.pre_tokenizer = top["pre_tokenizer"].json().dump();
  extras.post_processor = top["post_processor"].json().dump();
  extras.decoder = top["decoder"].json().dump();
  static const std::unordered_set<std::string_view> kKnown{"version",        "truncation", "padding",
                                                           "added_tokens",   "normalizer", "pre_tokenizer",
                                                           "post_processor", "decoder",    "model"};
  for (const auto& [key, value] : top.json().items())
    if (!kKnown.contains(key)) extras.unknown_keys.emplace_back(key, value.dump());
}

}  // namespace

TokenizerParts parse_tokenizer(std::string_view text, std::string_view place) {
  Json document = parse_json(text, place);
  Field top(document, place);
  top.expect(document.is_object(), "an object");
  if (const Field version = top["version"]; !version.is_null() && version.text() != "1.0")
    version.refuse(fmt::format("is \"{}\"", version.text()), "\"1.0\"");
  for (std::string_view key : {"truncation", "padding"})
    if (!top[key].is_null())
      top[key].refuse("is set", "null", "set it to null: sequences are cut and packed when a dataset is made");
  TokenizerParts parts;
  parts.normalizer = read_normalizer(top["normalizer"]);
  read_pre_tokenizer(top["pre_tokenizer"], parts);
  read_model(top["model"], parts);
  read_added(top["added_tokens"], parts);
  check_normalized(top["added_tokens"], parts);
  read_post_processor(top["post_processor"], parts);
  check_surrounding(top["post_processor"], parts);
  read_extras(top, parts.extras);
  parts.spaces_as_metaspace = parts.extras.decoder.find("\u2581") != std::string::npos;
  return parts;
}

}  // namespace sextant
