// `sextant data inspect`: what a data file, a folder of text or a token cache holds.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verb.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/units.h"
#include "data/data_facts.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"
#include "train/data/cache_contents.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

struct InspectArguments {
  std::string path;
  std::string tokenizer;  // to show the first tokens as text
  std::string text_key = "text";
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print_facts(const DataFacts& facts) {
  fmt::print("kind        {}\nsize        {}\n", facts.kind, human(Bytes{facts.bytes_on_disk}));
  if (!facts.hidden.empty()) fmt::print("left out    {}\n", printable(facts.hidden));
  if (facts.text_bytes) fmt::print("text        {}\n", human(Bytes{*facts.text_bytes}));
  if (facts.type) fmt::print("type        {}\n", name_of(*facts.type));
  if (facts.tokens) fmt::print("tokens      {}\n", human_count(*facts.tokens));
  if (facts.max_id) fmt::print("highest id  {}\n", human_count(*facts.max_id));
  if (facts.documents) fmt::print("documents   {}\n", human_count(*facts.documents));
  if (facts.lengths)
    fmt::print("length      {} to {}, mean {:.1f} ({})\n", human_count(facts.lengths->shortest),
               human_count(facts.lengths->longest), facts.lengths->mean, facts.tokens ? "tokens" : "bytes");
}

// How it begins: text, or tokens as text where there is a tokenizer.
std::string beginning(const DataFacts& facts, const Tokenizer* tokenizer) {
  if (!facts.tokens) return facts.first_text;
  if (!tokenizer) return fmt::format("{}", fmt::join(facts.first_ids, " "));
  return tokenizer->decode(std::vector<uint32_t>(facts.first_ids.begin(), facts.first_ids.end()));
}

Json facts_json(const DataFacts& facts, const Tokenizer* tokenizer) {
  Json json{{"kind", facts.kind}, {"bytes", facts.bytes_on_disk}};
  if (!facts.hidden.empty()) json["left_out"] = facts.hidden;
  if (facts.text_bytes) json["text_bytes"] = *facts.text_bytes;
  if (facts.type) json["type"] = name_of(*facts.type);
  if (facts.tokens) json["tokens"] = *facts.tokens;
  if (facts.max_id) json["max_id"] = *facts.max_id;
  if (facts.documents) json["documents"] = *facts.documents;
  if (facts.lengths)
    json["document_length"] = {
        {"min", facts.lengths->shortest}, {"max", facts.lengths->longest}, {"mean", facts.lengths->mean}};
  if (facts.tokens) json["first_ids"] = facts.first_ids;
  if (!facts.tokens || tokenizer) json["begins"] = beginning(facts, tokenizer);
  return json;
}

bool is_token_cache(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path / kContentsFile, failure);
}

void inspect_cache(const InspectArguments& a) {
  if (!a.tokenizer.empty())
    throw UserError({.place = "--tokenizer",
                     .got = fmt::format("is not used: {} has a tokenizer", a.path),
                     .hint = "leave it out"});
  Tokenizer tokenizer = Tokenizer::load(find_tokenizer(a.path).value_or(fs::path(a.path) / kTokenizerFile));
  CacheContents contents = read_cache_contents(a.path);
  Json json{{"kind", "token cache"}, {"vocabulary", tokenizer.vocab_size()}, {"parts", Json::object()}};
  if (!a.json) fmt::print("kind        token cache\nvocabulary  {}\n", human_count(tokenizer.vocab_size()));
  for (const auto& [name, part] : contents) {
    DataFacts facts = inspect_data(fs::path(a.path) / name);
    facts.text_bytes = part.text_bytes;
    if (!a.json) {
      fmt::print("\n{}\n", name);
      print_facts(facts);
      for (const std::string& file : part.origins.files()) fmt::print("from        {}\n", printable(file));
      if (part.skipped.count > 0) fmt::print("skipped     {}\n", printable(part.skipped.text()));
      fmt::print("begins      {}\n", printable(beginning(facts, &tokenizer)));
      continue;
    }
    Json one = facts_json(facts, &tokenizer);
    one["skipped"] = {{"count", part.skipped.count}, {"first", part.skipped.first}};
    one["files"] = part.origins.files();
    json["parts"][name] = std::move(one);
  }
  if (a.json) print_json(json);
}

void add_data_inspect_options(CLI::App& verb, InspectArguments& a) {
  verb.add_option("path", a.path, "file or folder")->required();
  verb.add_option("--tokenizer", a.tokenizer, "tokenizer.json, to show the first tokens as text");
  verb.add_option("--text-key", a.text_key, "the JSON key or column of the text")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON");
}

void run_data_inspect(const InspectArguments& a) {
  if (is_token_cache(a.path)) return inspect_cache(a);
  InspectOptions options{.text = {.text_key = a.text_key}};
  std::optional<Tokenizer> tokenizer;
  if (!a.tokenizer.empty()) tokenizer = Tokenizer::load(a.tokenizer);
  if (tokenizer && tokenizer->eos_id()) options.end_of_text = static_cast<int32_t>(*tokenizer->eos_id());
  DataFacts facts = inspect_data(a.path, options);
  if (tokenizer && !facts.tokens)
    throw UserError({.place = "--tokenizer",
                     .got = fmt::format("is not used: {} holds text, not tokens", a.path),
                     .hint = "leave it out; `data tokenize` makes tokens of text"});
  const Tokenizer* known = tokenizer ? &*tokenizer : nullptr;
  if (a.json) return print_json(facts_json(facts, known));
  print_facts(facts);
  fmt::print("begins      {}\n", printable(beginning(facts, known)));
}

constexpr ValueFormat kDataInspectValues[] = {
    {"PATH", "a file or a folder", "path"},
};

}  // namespace

const VerbDef data_inspect_verb{
    .words = "data inspect",
    .summary = "Contents of a text file, token file, folder or cache",
    .details = "",
    .examples = "sextant data inspect my.bin --tokenizer tokenizer.json",
    .values = kDataInspectValues,
    .declare = declare_verb<add_data_inspect_options, run_data_inspect>,
};

}  // namespace sextant
