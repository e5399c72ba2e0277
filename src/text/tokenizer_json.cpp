// Reads tokenizer.json. What we do not do as HF does is refused by name here, so that ids are never quietly different.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "text/bpe/bpe_alphabet.h"
#include "text/tokenizer_parts.h"

namespace sextant {

namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;  // levels of nesting; real files have 6

// Ids that may be without a token. It bounds the tables by id, which a hostile id would make huge.
constexpr uint32_t kHoles = 1 << 20;

// A value of the file and the way to it, for errors.
class Field {
 public:
  Field(const Json& value, std::string_view place) : value_(&value), place_(place) {}

  const Json& json() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  // A key that is missing reads as null.
  Field operator[](std::string_view key) const {
    static const Json kNull;
    expect(value_->is_object(), "an object");
    auto found = value_->find(key);
    return {found == value_->end() ? kNull : *found, place_,
            path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
  }
  std::vector<Field> items() const {
    expect(value_->is_array(), "an array");
    std::vector<Field> out;
    for (size_t i = 0; i < value_->size(); ++i) out.push_back({(*value_)[i], place_, fmt::format("{}[{}]", path_, i)});
    return out;
  }
  const std::string& text() const {
    expect(value_->is_string(), "a string");
    return value_->get_ref<const std::string&>();
  }
  bool flag(bool if_missing) const {
    if (is_null()) return if_missing;
    expect(value_->is_boolean(), "true or false");
    return value_->get<bool>();
  }
  uint32_t id() const {
    expect(value_->is_number_unsigned() && value_->get<uint64_t>() < UINT32_MAX, "a token id");
    return value_->get<uint32_t>();
  }
  std::string type() const { return (*this)["type"].text(); }

  void expect(bool right, std::string_view what) const {
    if (!right) refuse(fmt::format("is {}", shortened()), what);
  }
  [[noreturn]] void refuse(std::string_view got, std::string_view expected, std::string_view hint = "") const {
    throw UserError({.place = path_.empty() ? std::string(place_) : fmt::format("{} {}", place_, path_),
                     .got = std::string(got),
                     .expected = std::string(expected),
                     .hint = std::string(hint)});
  }
  std::string place() const { return fmt::format("{} {}", place_, path_); }

 private:
  Field(const Json& value, std::string_view place, std::string path)
      : value_(&value), place_(place), path_(std::move(path)) {}

  std::string shortened() const {
    if (value_->is_null()) return "missing";
    if (value_->is_structured()) return fmt::format("an {} of {}", value_->type_name(), value_->size());
    std::string text = value_->dump(-1, ' ', true);
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
  }

  const Json* value_;
  std::string_view place_;
  std::string path_;
};

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

[[noreturn]] void not_json(std::string place, std::string_view why) {
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

using IdOfName = std::unordered_map<std::string_view, uint32_t>;

IdOfName read_vocab(const Field& vocab, TokenizerParts& parts) {
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
std::optional<std::pair<std::string, std::string>> read_merge(const Field& merge, MergeNotation notation) {
  if (notation == MergeNotation::pairs) {
    std::vector<Field> names = merge.items();
    merge.expect(names.size() == 2, "a pair of tokens");
    return std::pair(names[0].text(), names[1].text());
  }
  const std::string& text = merge.text();
  if (text.starts_with("#version")) return std::nullopt;
  size_t space = text.find(' ');
  merge.expect(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, "two tokens and a space");
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

void read_merges(const Field& merges, const IdOfName& ids, TokenizerParts& parts) {
  std::vector<Field> list = merges.items();
  parts.notation = !list.empty() && list[0].json().is_string() ? MergeNotation::joined : MergeNotation::pairs;
  for (const Field& merge : list) {
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

void read_model(const Field& model, TokenizerParts& parts) {
  if (!model["type"].is_null() && model.type() != "BPE")
    model.refuse(fmt::format("a {} model", model.type()), "a byte-level BPE model");
  const Field dropout = model["dropout"];
  if (!dropout.is_null() && dropout.json() != 0) dropout.refuse("merges are dropped at random", "no dropout");
  for (std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].is_null() && !model[key].text().empty())
      model[key].refuse(fmt::format("is \"{}\"", model[key].text()), "null, as in byte-level models");
  IdOfName ids = read_vocab(model["vocab"], parts);
  read_merges(model["merges"], ids, parts);
  parts.ignore_merges = model["ignore_merges"].flag(false);
  parts.unknown.fused = model["fuse_unk"].flag(false);
  if (const Field unknown = model["unk_token"]; !unknown.is_null()) {
    parts.unknown_name = unknown.text();
    auto found = ids.find(*parts.unknown_name);
    if (found != ids.end()) parts.unknown.id = found->second;
  }
  bool all_bytes = true;
  for (int byte = 0; byte < 256; ++byte)
    all_bytes &= ids.contains(name_of_bytes(std::string(1, static_cast<char>(byte))));
  if (!all_bytes && model["byte_fallback"].flag(false))
    model["byte_fallback"].refuse("is true", "a vocabulary that holds all 256 bytes");
  if (!all_bytes && parts.unknown_name && !parts.unknown.id)
    model["unk_token"].refuse(fmt::format("\"{}\" is not in the vocabulary", *parts.unknown_name),
                              "a token of model.vocab");
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

PretokenStage byte_level_stage(const Field& field) {
  PretokenStage stage{.prefix_space = field["add_prefix_space"].flag(true)};
  if (field["use_regex"].flag(true)) stage.splitter = known_splitter(kGpt2Pattern);
  return stage;
}

PretokenStage split_stage(const Field& field) {
  const std::string& behavior = field["behavior"].text();
  bool invert = field["invert"].flag(false);
  SplitPattern pattern;
  if (behavior == "Removed")
    pattern.keep = invert ? SplitKeep::matches_only : SplitKeep::gaps_only;
  else if (behavior != "Isolated")
    field["behavior"].refuse(fmt::format("is \"{}\"", behavior), "\"Isolated\" or \"Removed\"");
  const Field given = field["pattern"];
  pattern.kind = given["Regex"].is_null() ? PatternKind::literal : PatternKind::regex;
  pattern.text = given[pattern.kind == PatternKind::regex ? "Regex" : "String"].text();
  return {.splitter = make_splitter(pattern, given.place())};
}

PretokenStages read_stages(const Field& field) {
  if (field.is_null())
    field.refuse("no pre_tokenizer", "one of byte-level BPE", "other kinds of tokenizers are not supported");
  std::vector<Field> steps = field.type() == "Sequence" ? field["pretokenizers"].items() : std::vector{field};
  PretokenStages stages;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Field& step = steps[i];
    std::string type = step.type();
    bool last = i + 1 == steps.size();
    if ((type == "ByteLevel") != last)
      step.refuse(fmt::format("{} at place {}", type, i + 1), "ByteLevel as the last step, and only there");
    if (type == "ByteLevel")
      stages.push_back(byte_level_stage(step));
    else if (type == "Split")
      stages.push_back(split_stage(step));
    else if (type == "Digits")
      stages.push_back(
          {.splitter = digit_splitter(step["individual_digits"].flag(false) ? DigitRuns::single : DigitRuns::whole)});
    else
      step.refuse(fmt::format("a {} pre-tokenizer", type), "ByteLevel, Split or Digits");
  }
  if (steps.empty()) field.refuse("an empty sequence", "ByteLevel as the last step");
  // A stage that does nothing at the end would keep the one before it from handing over its pieces in batches.
  if (!stages.back().prefix_space && !stages.back().splitter) stages.pop_back();
  return stages;
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
  extras.pre_tokenizer = top["pre_tokenizer"].json().dump();
  extras.post_processor = top["post_processor"].json().dump();
  extras.decoder = top["decoder"].json().dump();
  static const std::unordered_set<std::string_view> kKnown{"version",        "truncation", "padding",
                                                           "added_tokens",   "normalizer", "pre_tokenizer",
                                                           "post_processor", "decoder",    "model"};
  for (const auto& [key, value] : top.json().items())
    if (!kKnown.contains(key)) extras.unknown_keys.emplace_back(key, value.dump());
}

bool does_nothing(const Field& normalizer) {
  return normalizer.is_null() || (normalizer.type() == "Sequence" && normalizer["normalizers"].items().empty());
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
  if (const Field normalizer = top["normalizer"]; !does_nothing(normalizer))
    normalizer.refuse(fmt::format("a {} normalizer", normalizer.type()), "none", "normalizers are not supported");
  TokenizerParts parts;
  read_model(top["model"], parts);
  read_added(top["added_tokens"], parts);
  parts.stages = read_stages(top["pre_tokenizer"]);
  read_post_processor(top["post_processor"], parts);
  check_surrounding(top["post_processor"], parts);
  read_extras(top, parts.extras);
  return parts;
}

}  // namespace sextant
