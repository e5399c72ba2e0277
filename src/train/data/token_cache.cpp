#include "train/data/token_cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "base/units.h"
#include "ckpt/staged_directory.h"
#include "data/text_source.h"
#include "data/tokenize.h"
#include "run/data_kind.h"
#include "run/tokenizer_choice.h"
#include "stories/stories.h"
#include "text/bpe/bpe_trainer.h"
#include "text/stated_eos.h"
#include "text/tokenizer_files.h"
#include "train/data/source_hashes.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::string_view kCacheVersion = "5";  // raise it when what is written changes

std::vector<fs::path> as_paths(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

TextOptions text_options(const RunConfig& run) {
  TextOptions options{.text_key = run.data.text_key};
  if (run.data.format == DataFormat::text) options.format = &kPlainText;
  if (run.data.format == DataFormat::jsonl) options.format = &kJsonLines;
  options.on_error = run.data.on_error;
  return options;
}

using PlacedVisitor = std::function<void(const PlacedDocument&)>;

// One part of the data, whatever it is made of.
struct Part {
  std::string file;  // "train.bin"
  bool trains = true;
  std::string name;  // of what it is made of, for people
  std::function<SkippedRecords(const PlacedVisitor&)> documents;
};

// "a.txt", "a.txt and 2 more"
std::string named(const std::vector<std::string>& files) {
  return files.size() == 1 ? files.front() : fmt::format("{} and {} more", files.front(), files.size() - 1);
}

// Stories of so many bytes, after those of `before` bytes.
Part part_of_stories(std::string file, uint64_t before, uint64_t bytes) {
  return {std::move(file), before == 0, "built-in stories", [before, bytes](const PlacedVisitor& visit) {
            uint64_t first = before == 0 ? 0 : for_each_story({.bytes = before}, [](std::string_view) {});
            auto number = static_cast<int64_t>(first);
            for_each_story({.first = first, .bytes = bytes}, [&](std::string_view text) {
              visit({text, "stories", ++number});
            });
            return SkippedRecords{};
          }};
}

Part part_of_files(std::string file, bool trains, const std::vector<std::string>& names, const TextOptions& options) {
  return {std::move(file), trains, named(names), [options, paths = as_paths(names)](const PlacedVisitor& visit) {
            return for_each_placed_document(paths, options, visit);
          }};
}

std::vector<Part> parts_of(const RunConfig& run) {
  TextOptions options = text_options(run);
  if (is_stories(run.data.train)) {
    auto bytes = static_cast<uint64_t>(run.data.stories_bytes);
    auto held_out =
        std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(bytes) * run.data.validation_fraction), 1);
    std::vector<Part> parts{part_of_stories("train.bin", 0, bytes)};
    if (run.data.validation_fraction > 0) parts.push_back(part_of_stories("validation.bin", bytes, held_out));
    return parts;
  }
  std::vector<Part> parts;
  // An entry of data.train with its own weight is sampled separately.
  for (size_t i = 0; i < run.data.weights.size(); ++i)
    parts.push_back(part_of_files(fmt::format("train-{}.bin", i), true, {run.data.train[i]}, options));
  if (parts.empty()) parts.push_back(part_of_files("train.bin", true, run.data.train, options));
  if (!run.data.validation.empty())
    parts.push_back(part_of_files("validation.bin", false, run.data.validation, options));
  return parts;
}

// All that decides which token is written behind a document.
std::string end_of_text_key(const RunConfig& run) {
  if (run.data.end_of_text) return fmt::format("|eos={}", *run.data.end_of_text);
  auto path = tokenizer_path(run);
  auto stated = path ? stated_eos(*path) : std::nullopt;
  return stated ? fmt::format("|eos={}:{}", stated->token, fmt::join(stated->ids, ",")) : "";
}

// A tokenizer from the cache is a copy: it lacks the end-of-text token that files next to the original state.
void settle_end_of_text(const RunConfig& run, Tokenizer& tokenizer) {
  auto path = tokenizer_path(run);
  if (path) take_stated_eos(stated_eos(*path), tokenizer);
  if (run.data.end_of_text) {
    if (*run.data.end_of_text >= static_cast<int64_t>(tokenizer.vocab_size()))
      throw UserError({.place = run.place_of("data.end_of_text"),
                       .got = std::to_string(*run.data.end_of_text),
                       .expected = fmt::format("an id below {}, the tokenizer's vocabulary", tokenizer.vocab_size())});
    tokenizer.set_eos(static_cast<uint32_t>(*run.data.end_of_text));
  }
  require_end_of_text(tokenizer, path ? path->string() : run.place_of("data.tokenizer"), "data.end_of_text");
}

// The text files of a run, with what they hold; none of the built-in stories.
struct TextSources {
  TextFiles files;
  std::string key;
};

TextSources text_sources(const RunConfig& run, SourceHashes& hashes) {
  TextSources sources;
  if (is_stories(run.data.train)) return sources;
  for (const auto* names : {&run.data.train, &run.data.validation}) {
    sources.key += "|";
    if (names->empty()) continue;
    TextFiles found = list_text_files(as_paths(*names), text_options(run).format);
    for (const fs::path& file : found.files)
      sources.key += fmt::format("{}:{}:{};", fs::absolute(file).string(), fs::file_size(file), hashes.of(file));
    sources.files.files.insert(sources.files.files.end(), found.files.begin(), found.files.end());
    sources.files.hidden.insert(sources.files.hidden.end(), found.hidden.begin(), found.hidden.end());
  }
  return sources;
}

std::string cache_key(const RunConfig& run, const TextSources& sources) {
  std::string text = fmt::format("{}|{}|{}|{}|{}|{}|{}", kCacheVersion, word_of(run.data.format), run.data.text_key,
                                 word_of(run.data.on_error), run.data.tokenizer_vocab, run.data.stories_bytes,
                                 run.data.validation_fraction);
  if (auto path = tokenizer_path(run)) text += fmt::format("|{:016x}", hash64(tokenizer_source(*path)));
  text += end_of_text_key(run);
  if (!run.data.weights.empty()) text += "|apart";
  if (is_stories(run.data.train)) return fmt::format("stories-{:016x}", hash64(text));
  return fmt::format("text-{:016x}", hash64(text + sources.key));
}

Tokenizer make_tokenizer(const RunConfig& run, const std::vector<Part>& parts,
                         const std::function<void(std::string_view)>& say) {
  if (auto path = tokenizer_path(run)) return Tokenizer::load(*path);
  say(fmt::format("training a tokenizer of {} tokens", human_count(run.data.tokenizer_vocab)));
  BpeTrainer trainer(
      {.vocab_size = static_cast<uint32_t>(run.data.tokenizer_vocab), .special_tokens = {std::string(kEndOfText)}});
  for (const Part& part : parts)
    if (part.trains) part.documents([&](const PlacedDocument& document) { trainer.feed(document.text); });
  return trainer.train();
}

// Pairs, whose index says where documents begin.
TokenFormat cache_format(const Tokenizer& tokenizer) {
  return {TokenKind::megatron, token_type_for(tokenizer.vocab_size(), TokenKind::megatron)};
}

void fill_cache(const RunConfig& run, const fs::path& place, ThreadTeam& team,
                const std::function<void(std::string_view)>& say) {
  fs::create_directories(place.parent_path());
  StagedDirectory staged(place, Existing::replace);
  std::vector<Part> parts = parts_of(run);
  Tokenizer tokenizer = make_tokenizer(run, parts, say);
  settle_end_of_text(run, tokenizer);
  for (const TokenizerFile& file : tokenizer.to_files()) write_file_atomically(staged.path() / file.name, file.content);
  CacheContents contents;
  for (const Part& part : parts) {
    say(fmt::format("tokenizing the {} data: {}", part.trains ? "training" : "validation", part.name));
    PartContents& made = contents[part.file];
    TokenizeSummary done = tokenize_documents(
        [&](const DocumentVisitor& visit) {
          made.skipped = part.documents([&](const PlacedDocument& document) {
            made.origins.add(document.file, document.record);
            visit(document.text);
          });
        },
        tokenizer, {.path = staged.path() / part.file, .format = cache_format(tokenizer)}, team);
    made.documents = done.documents;
    made.tokens = done.tokens;
    made.text_bytes = done.text_bytes;
  }
  write_cache_contents(staged.path(), contents);
  write_cache_manifest(staged.path());
  staged.commit();
}

std::shared_ptr<const TokenFile> open_shared(const fs::path& path, TokenFileOptions options = {}) {
  return std::make_shared<const TokenFile>(open_token_file(path, options));
}

TokenizedData open_token_files(const RunConfig& run, const std::function<void(std::string_view)>& say) {
  if (run.data.end_of_text && !run.data.mask_documents && !run.data.holds_out_documents())
    throw UserError({.place = run.place_of("data.end_of_text"),
                     .got = "token files hold it already, and nothing else asks for it",
                     .expected = "data.mask_documents = true, or documents to hold out (data.validation_fraction)"});
  const TokenFileOptions options = token_file_options(run);
  TokenizedData data;
  for (const std::string& name : run.data.train) data.train.push_back(open_shared(name, options));
  for (const std::string& name : run.data.validation) data.validation.push_back(open_shared(name, options));
  data.tokenizer = tokenizer_beside_tokens(run, say);
  return data;
}

}  // namespace

TokenizedData tokenize_once(const RunConfig& run, ThreadTeam& team, const std::function<void(std::string_view)>& say,
                            CacheCheck check) {
  if (!has_text(run)) return open_token_files(run, say);
  require_tokenizer_of_model(run);
  SourceHashes hashes(run.data.cache);
  const TextSources sources = text_sources(run, hashes);
  if (!sources.files.hidden.empty()) say(sources.files.hidden_text());
  fs::path place = fs::path(run.data.cache) / cache_key(run, sources);
  auto fill = [&] {
    hashes.require_unchanged(sources.files.files);
    fill_cache(run, place, team, say);
  };
  if (!fs::exists(place)) {
    fill();
  } else if (auto damage = damage_of_cache(place, check)) {
    say(fmt::format("token cache {} is damaged: {}; tokenizing again", place.string(), *damage));
    fill();
  }
  if (std::string failure = hashes.remember(); !failure.empty())
    say(fmt::format("the hashes of the text files cannot be kept, they are read at every start: {}", failure));
  TokenizedData data;
  Tokenizer tokenizer = Tokenizer::load(find_tokenizer(place).value_or(place / kTokenizerFile));
  settle_end_of_text(run, tokenizer);
  data.tokenizer = std::make_shared<const Tokenizer>(std::move(tokenizer));
  TokenFormat format = cache_format(*data.tokenizer);
  TokenFileOptions options{format.kind, format.type};
  CacheContents contents = read_cache_contents(place);
  for (const Part& part : parts_of(run)) {
    (part.trains ? data.train : data.validation).push_back(open_shared(place / part.file, options));
    const PartContents& made = contents[part.file];
    if (made.skipped.count > 0)
      say(fmt::format("data.on_error = skip: of the {} data, {}", part.trains ? "training" : "validation",
                      made.skipped.text()));
    if (part.trains) data.train_origins.push_back(std::make_shared<const DocumentOrigins>(made.origins));
  }
  return data;
}

}  // namespace sextant
