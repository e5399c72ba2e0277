#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/threads.h"
#include "base/units.h"
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

std::vector<fs::path> as_paths(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

void report_hidden_files(const std::vector<std::string>& inputs, Verbosity verbosity) {
  std::string hidden = list_text_files(as_paths(inputs), nullptr).hidden_text();
  if (!hidden.empty() && verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", printable(hidden));
}

}  // namespace

void tokenize_verb(const TokenizeArguments& a) {
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

void train_tokenizer_verb(const TrainTokenizerArguments& a) {
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

// Sample s of a source begins at its token s × batch.seq.
void order_verb(const OrderArguments& a) {
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

}  // namespace sextant
