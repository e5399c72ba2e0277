#include "text/tokenizer_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hub_hint.h"
#include "base/path_error.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

std::string read_if_there(const fs::path& path) {
  return is_there(path) ? read_file(path) : std::string();
}

Json object_of(std::string_view text, const std::string& place) {
  if (text.empty()) return Json::object();
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    throw UserError({.place = place, .got = "is not a JSON object", .expected = "a file as transformers writes it"});
  return json;
}

std::string text_in(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

bool flag_in(const Json& json, const char* key, bool if_missing) {
  auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : if_missing;
}

// Text processing before the merges, as the class that tokenizer_config.json names does it.
Json steps_of(const Json& config, std::string_view place) {
  std::string name = text_in(config, "tokenizer_class");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  Json byte_level{{"type", "ByteLevel"},
                  {"trim_offsets", true},
                  {"use_regex", true},
                  {"add_prefix_space", flag_in(config, "add_prefix_space", false)}};
  if (name.empty() || name == "GPT2Tokenizer") return {{"normalizer", nullptr}, {"pre_tokenizer", byte_level}};
  if (name == "Qwen2Tokenizer") {
    byte_level["use_regex"] = false;
    Json split{{"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
    Json sequence{{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level})}};
    return {{"normalizer", {{"type", "NFC"}}}, {"pre_tokenizer", sequence}};
  }
  throw UserError({.place = std::string(place),
                   .got = fmt::format("vocab.json and merges.txt of a {}", name),
                   .expected = "GPT2Tokenizer or Qwen2Tokenizer",
                   .hint = "save the tokenizer with transformers, which writes a tokenizer.json"});
}

// Tokens by id: those of tokenizer_config.json, of added_tokens.json, and the end of text, which is always one.
Json added_tokens(const Json& config, const Json& added, const Json& vocab) {
  std::map<int64_t, Json> tokens;
  auto add = [&](int64_t id, Json token) {
    token["id"] = id;
    tokens.emplace(id, std::move(token));
  };
  if (auto listed = config.find("added_tokens_decoder"); listed != config.end() && listed->is_object())
    for (const auto& [id, token] : listed->items())
      if (token.is_object()) add(std::atoll(id.c_str()), token);
  for (const auto& [content, id] : added.items())
    if (id.is_number_unsigned()) add(id.get<int64_t>(), {{"content", content}, {"special", true}});
  for (const char* key : {"eos_token", "bos_token", "unk_token"}) {
    std::string name = text_in(config, key);
    if (name.empty()) name = "<|endoftext|>";
    if (auto found = vocab.find(name); found != vocab.end() && found->is_number_unsigned())
      add(found->get<int64_t>(), {{"content", name}, {"special", true}});
  }
  Json out = Json::array();
  for (auto& [id, token] : tokens) out.push_back(std::move(token));
  return out;
}

Json merges_of(std::string_view text, std::string_view place) {
  if (!is_valid_utf8(text))
    throw UserError({.place = std::string(place), .got = "merges.txt is not UTF-8", .expected = "pairs of tokens"});
  Json merges = Json::array();
  while (!text.empty()) {
    std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::string(line));
  }
  return merges;
}

// The begin token that tokenizer_config.json asks to put before a text.
Json post_processor_of(const Json& config, const Json& added) {
  std::string name = text_in(config, "bos_token");
  if (!flag_in(config, "add_bos_token", false) || name.empty()) return nullptr;
  for (const Json& token : added)
    if (token.value("content", Json()) == name)
      return {{"type", "TemplateProcessing"},
              {"single", Json::array({{{"SpecialToken", {{"id", name}, {"type_id", 0}}}},
                                      {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
              {"pair", Json::array()},
              {"special_tokens", {{name, {{"id", name}, {"ids", {token["id"]}}, {"tokens", {name}}}}}}};
  return nullptr;
}

// sentencepiece leaves it to the caller whether a text begins with the token that its model names for that.
void add_begin_and_end(const Json& config, TokenizerParts& parts) {
  bool begins = text_in(config, "tokenizer_class").starts_with("LlamaTokenizer");
  if (flag_in(config, "add_bos_token", begins) && parts.stated_bos) parts.prefix = {*parts.stated_bos};
  if (flag_in(config, "add_eos_token", false) && parts.stated_eos) parts.suffix = {*parts.stated_eos};
}

}  // namespace

TokenizerParts parse_vocab_and_merges(const VocabAndMerges& files, std::string_view place) {
  std::string where(place);
  Json config = object_of(files.config, where + " tokenizer_config.json"), vocab = object_of(files.vocab, where);
  Json whole = steps_of(config, place);
  whole["version"] = "1.0";
  whole["added_tokens"] = added_tokens(config, object_of(files.added, where + " added_tokens.json"), vocab);
  whole["post_processor"] = post_processor_of(config, whole["added_tokens"]);
  whole["decoder"] = {{"type", "ByteLevel"}};
  whole["model"] = {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", merges_of(files.merges, place)}};
  return parse_tokenizer(whole.dump(), place);
}

std::optional<fs::path> find_tokenizer(const fs::path& directory) {
  for (const char* name : kTokenizerSources)
    if (is_there(directory / name) && (std::string_view(name) != kVocabFile || is_there(directory / "merges.txt")))
      return directory / name;
  return std::nullopt;
}

namespace {

void require_tokenizer_file(const fs::path& path) {
  constexpr std::string_view kExpected = "a tokenizer.json, a tokenizer.model, or a vocab.json beside merges.txt";
  if (fs::is_directory(look_at(path))) {
    std::optional<fs::path> file = find_tokenizer(path);
    throw UserError({.place = path.string(),
                     .got = file ? "is a directory" : "is a directory without a tokenizer",
                     .expected = std::string(kExpected),
                     .hint = file ? fmt::format("name the file: {}", file->string()) : ""});
  }
  if (!is_there(path))
    throw UserError({.place = path.string(),
                     .got = "file not found",
                     .expected = std::string(kExpected),
                     .hint = tokenizer_download_hint(path.string())});
}

}  // namespace

std::string tokenizer_source(const fs::path& path) {
  require_tokenizer_file(path);
  std::string source = read_file(path);
  if (path.extension() != ".model" && path.filename() != kVocabFile) return source;
  for (const char* name : {"merges.txt", kTokenizerConfigFile, "added_tokens.json"})
    source += fmt::format("|{}:{}", name, read_if_there(path.parent_path() / name));
  return source;
}

TokenizerParts read_tokenizer_file(const fs::path& path) {
  require_tokenizer_file(path);
  fs::path directory = path.parent_path();
  if (path.extension() == ".model") {
    TokenizerParts parts = parse_sentencepiece(read_file(path), path.string());
    fs::path config = directory / kTokenizerConfigFile;
    add_begin_and_end(object_of(read_if_there(config), config.string()), parts);
    return parts;
  }
  if (path.filename() != kVocabFile) return parse_tokenizer(read_file(path), path.string());
  return parse_vocab_and_merges({.vocab = read_file(path),
                                 .merges = read_file(directory / "merges.txt"),
                                 .config = read_if_there(directory / kTokenizerConfigFile),
                                 .added = read_if_there(directory / "added_tokens.json")},
                                path.string());
}

}  // namespace sextant
