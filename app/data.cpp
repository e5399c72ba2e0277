#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/output_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/threads.h"
#include "base/units.h"
#include "base/verbosity.h"
#include "config/load.h"
#include "data/text_source.h"
#include "data/tokenize.h"
#include "run/resolve_spec.h"
#include "stories/stories.h"
#include "text/bpe/bpe_trainer.h"
#include "train/data/dataset.h"
#include "train/health/stop.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

struct OrderArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t samples = 0;
  bool json = false;  // which it always is
  Verbosity verbosity = Verbosity::usual;
};

struct TrainTokenizerArguments {
  std::vector<std::string> inputs;
  std::string output = "tokenizer.json";
  int64_t vocab = 4096;
  std::string pattern = "gpt2";  // or llama3
  std::string text_key = "text";
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

struct TokenizeArguments {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::string format = "flat";  // or megatron
  std::string text_key = "text";
  std::string on_error = "stop";  // or skip
  int64_t end_of_text = -1;       // -1 = the tokenizer's
  int64_t threads = 0;
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

std::vector<fs::path> as_paths(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

void report_hidden_files(const std::vector<std::string>& inputs, Verbosity verbosity) {
  std::string hidden = list_text_files(as_paths(inputs), nullptr).hidden_text();
  if (!hidden.empty() && verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", printable(hidden));
}

void add_data_tokenize_options(CLI::App& verb, TokenizeArguments& a) {
  verb.add_option("inputs", a.inputs, "files or folders")->required();
  verb.add_option("--tokenizer", a.tokenizer, "tokenizer.json")->required();
  verb.add_option("--out", a.output, "file to write, such as train.bin")->required()->check(output_file("--out"));
  verb.add_option("--format", a.format, "flat or megatron; flat has a header (llm.c's) where u16 cannot hold the ids")
      ->check(CLI::IsMember({"flat", "megatron"}))
      ->capture_default_str();
  verb.add_option("--text-key", a.text_key, "the JSON key or column of the text")->capture_default_str();
  verb.add_option("--on-error", a.on_error, "at a document that cannot be read: stop, or skip and count it")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  verb.add_option("--end-of-text", a.end_of_text,
                  "id to write behind each document instead of the tokenizer's end token");
  verb.add_option("--threads", a.threads, "0 = one per core")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON: documents, tokens, bytes of text, what was skipped");
  add_quiet(verb, a.verbosity, "print nothing: the file is the result");
}

void run_data_tokenize(const TokenizeArguments& a) {
  if (a.threads < 0 || a.threads > kMaxThreads)
    throw UserError({.place = "--threads",
                     .got = std::to_string(a.threads),
                     .expected = fmt::format("an integer from 0 to {}", kMaxThreads)});
  Tokenizer tokenizer = Tokenizer::load(a.tokenizer);
  if (a.end_of_text >= static_cast<int64_t>(tokenizer.vocab_size()))
    throw UserError({.place = "--end-of-text",
                     .got = std::to_string(a.end_of_text),
                     .expected = fmt::format("an id below {}, the tokenizer's vocabulary", tokenizer.vocab_size())});
  if (a.end_of_text >= 0) tokenizer.set_eos(static_cast<uint32_t>(a.end_of_text));
  require_end_of_text(tokenizer, a.tokenizer, "--end-of-text");
  ThreadTeam team(static_cast<int>(a.threads));
  int64_t vocab = tokenizer.vocab_size();
  TokenFormat format = a.format == "megatron"
                           ? TokenFormat{TokenKind::megatron, token_type_for(vocab, TokenKind::megatron)}
                           : token_format_for(vocab, a.output);
  TextOptions text{.text_key = a.text_key, .on_error = *value_of_word<OnError>(a.on_error)};
  report_hidden_files(a.inputs, a.verbosity);
  StopRequest stop;
  SkippedRecords skipped;
  auto documents = [&](const DocumentVisitor& visit) {
    skipped = for_each_document(as_paths(a.inputs), text, [&](std::string_view document) {
      // The exception discards the output that was written so far.
      if (stop.asked()) throw RunError(a.output, "stopped by a signal: nothing was written", "", ExitCode::stopped);
      visit(document);
    });
  };
  TokenizeSummary done = tokenize_documents(documents, tokenizer, {.path = a.output, .format = format}, team);
  if (a.json)
    return print_json({{"file", a.output},
                       {"documents", done.documents},
                       {"tokens", done.tokens},
                       {"text_bytes", done.text_bytes},
                       {"skipped", {{"count", skipped.count}, {"first", skipped.first}}}});
  if (skipped.count > 0) fmt::print(stderr, "{}\n", printable(skipped.text()));
  if (a.verbosity == Verbosity::quiet) return;
  fmt::print("{}: {} documents, {} tokens from {} of text\n", printable(a.output), human_count(done.documents),
             human_count(done.tokens), human(Bytes{done.text_bytes}));
}

void add_data_train_tokenizer_options(CLI::App& verb, TrainTokenizerArguments& a) {
  verb.add_option("inputs", a.inputs, "files or folders, or \"stories\"")->required();
  verb.add_option("--out", a.output, "file to write")->capture_default_str()->check(output_file("--out"));
  verb.add_option("--vocab", a.vocab, "how many tokens")->capture_default_str();
  verb.add_option("--pattern", a.pattern, "how text is split: gpt2 or llama3")
      ->check(CLI::IsMember({"gpt2", "llama3"}))
      ->capture_default_str();
  verb.add_option("--text-key", a.text_key, "the JSON key or column of the text")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON: the file and how many tokens it has");
  add_quiet(verb, a.verbosity, "print nothing: the file is the result");
}

void run_data_train_tokenizer(const TrainTokenizerArguments& a) {
  if (a.vocab < 257 || a.vocab > (int64_t{1} << 24))
    throw UserError({.place = "--vocab",
                     .got = std::to_string(a.vocab),
                     .expected = "an integer from 257 (all bytes and one "
                                 "special token) to 16777216"});
  BpeTrainer trainer({.vocab_size = static_cast<uint32_t>(a.vocab),
                      .special_tokens = {"<|endoftext|>"},
                      .pattern = std::string(a.pattern == "llama3" ? kLlama3Pattern : kGpt2Pattern)});
  auto feed = [&](std::string_view document) { trainer.feed(document); };
  if (a.inputs == std::vector<std::string>{"stories"}) {
    for_each_story({.bytes = 4'000'000}, feed);
  } else {
    report_hidden_files(a.inputs, a.verbosity);
    for_each_document(as_paths(a.inputs), {.text_key = a.text_key}, feed);
  }
  Tokenizer tokenizer = trainer.train();
  write_file_atomically(a.output, tokenizer.to_json());
  if (a.json) return print_json({{"file", a.output}, {"tokens", tokenizer.vocab_size()}});
  if (a.verbosity == Verbosity::quiet) return;
  fmt::print("{}: {} tokens\n", printable(a.output), human_count(tokenizer.vocab_size()));
}

void add_data_order_options(CLI::App& verb, OrderArguments& a) {
  verb.add_option("config", a.config, "config file")->required();
  verb.add_option("overrides", a.overrides, "key=value");
  verb.add_option("--samples", a.samples, "how many")->required();
  verb.add_flag("--json", a.json, "print JSON, as it always does");
  add_quiet(verb, a.verbosity, "no remarks on standard error when data is read");
}

// Sample s of a source begins at its token s × batch.seq.
void run_data_order(const OrderArguments& a) {
  constexpr int64_t kMost = 1'000'000'000;
  if (a.samples < 0 || a.samples > kMost)
    throw UserError({.place = "--samples",
                     .got = std::to_string(a.samples),
                     .expected = fmt::format("an integer from 0 to {}", kMost)});
  RunConfig run = load_config(a.config, a.overrides);
  ThreadTeam team(static_cast<int>(run.train.threads));
  Dataset dataset = open_dataset(run, resolve_spec(run), team, [&](std::string_view line) {
    if (a.verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", printable(line));
  });
  // In pieces, as many as there may be.
  constexpr size_t kPiece = 1 << 16;
  std::string text = "[";
  for (int64_t k = 0; k < a.samples; ++k) {
    BatchSampler::Draw draw = dataset.train.draw(k);
    fmt::format_to(std::back_inserter(text), "{}[{}, {}]", k == 0 ? "" : ", ", draw.source, draw.sample);
    if (text.size() < kPiece) continue;
    fmt::print("{}", text);
    text.clear();
  }
  fmt::print("{}]\n", text);
}

constexpr ValueFormat kDataTokenizeValues[] = {
    {"FILE", "the name of a file to write", "--out"},
    {"ID", "", "--end-of-text"},
};

constexpr ValueFormat kDataTrainTokenizerValues[] = {
    {"FILE", "the name of a file to write", "--out"},
    {"TOKENS", "tokens", "--vocab"},
};

constexpr ValueFormat kDataOrderValues[] = {
    {"SAMPLES", "samples", "--samples"},
};

}  // namespace

const VerbDef data_verb{
    .words = "data",
    .summary = "Tokenize text, train a tokenizer, look into data files",
    .details = "",
    .examples = "sextant data train-tokenizer my.txt --vocab 512 --out tokenizer.json",
    .values = {},
    .declare = nullptr,
};

const VerbDef data_tokenize_verb{
    .words = "data tokenize",
    .summary = "Text, JSON, CSV, Parquet or Arrow files to a token file",
    .details = "",
    .examples = "sextant data tokenize my.txt --tokenizer tokenizer.json --out my.bin",
    .values = kDataTokenizeValues,
    .declare = declare_verb<add_data_tokenize_options, run_data_tokenize>,
};

const VerbDef data_train_tokenizer_verb{
    .words = "data train-tokenizer",
    .summary = "Train a byte-level BPE tokenizer from text",
    .details = "",
    .examples = "sextant data train-tokenizer stories --vocab 1024 --out stories.json",
    .values = kDataTrainTokenizerValues,
    .declare = declare_verb<add_data_train_tokenizer_options, run_data_train_tokenizer>,
};

const VerbDef data_order_verb{
    .words = "data order",
    .summary = "Samples that a run reads, in order, as JSON",
    .details = "These are [source, sample] pairs",
    .examples = "sextant data order configs/tiny-llama.toml --samples 8",
    .values = kDataOrderValues,
    .declare = declare_verb<add_data_order_options, run_data_order>,
};

}  // namespace sextant
