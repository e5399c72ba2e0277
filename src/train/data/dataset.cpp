#include "train/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "config/resolve.h"
#include "run/tokenizer_choice.h"
#include "train/data/token_cache.h"

namespace sextant {

namespace {

double entropy_of(const TokenFile& file, TokenRange range, int64_t vocab) {
  // A sample of this many tokens tells the entropy to three digits.
  constexpr int64_t kEnough = 5'000'000;
  std::vector<int64_t> counts(static_cast<size_t>(vocab), 0);
  int64_t total = 0;
  for_each_piece(file, range.begin, std::min(range.end, range.begin + kEnough),
                 [&](int64_t, std::span<const int32_t> ids) {
                   for (int32_t id : ids)
                     if (id < vocab) ++counts[static_cast<size_t>(id)], ++total;
                 });
  double entropy = 0;
  for (int64_t count : counts) {
    double p = static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, total));
    if (count > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

std::vector<SampleSource> sources_of(const std::vector<std::shared_ptr<const TokenFile>>& files) {
  std::vector<SampleSource> sources;
  // Files count by their size, as if they were one.
  for (const auto& file : files)
    sources.push_back({file, {0, file->token_count()}, static_cast<double>(file->token_count())});
  return sources;
}

int64_t tokens_in(const std::vector<SampleSource>& sources) {
  int64_t tokens = 0;
  for (const SampleSource& source : sources) tokens += source.range.size();
  return tokens;
}

// Takes the tail of every training source where no validation files are given.
std::vector<SampleSource> split_off_validation(std::vector<SampleSource>& train, double fraction) {
  std::vector<SampleSource> validation;
  for (SampleSource& source : train) {
    Split split = split_tail(source.file->token_count(), fraction);
    source.range = split.train;
    if (split.validation.size() > 1) validation.push_back({source.file, split.validation, source.weight});
  }
  return validation;
}

int32_t end_of_text(const RunConfig& run, const ModelSpec& spec, const Tokenizer* tokenizer) {
  if (!run.data.mask_documents) return -1;
  if (run.data.end_of_text && *run.data.end_of_text >= spec.vocab)
    throw UserError({.place = run.place_of("data.end_of_text"),
                     .got = std::to_string(*run.data.end_of_text),
                     .expected = fmt::format("an id below {}, the vocabulary", spec.vocab)});
  if (run.data.end_of_text) return static_cast<int32_t>(*run.data.end_of_text);
  if (tokenizer && tokenizer->eos_id()) return static_cast<int32_t>(*tokenizer->eos_id());
  throw UserError({.place = run.place_of("data.mask_documents"),
                   .got = "the id that ends a document is unknown",
                   .expected = "data.end_of_text"});
}

}  // namespace

Dataset open_dataset(const RunConfig& run, const ModelSpec& spec, ThreadTeam& team, const Say& say, CacheCheck check) {
  TokenizedData data = tokenize_once(run, team, say, check);
  if (data.tokenizer && data.tokenizer->vocab_size() > spec.vocab)
    throw UserError(
        {.place = run.place_of("model.vocab"),
         .got = fmt::format("the tokenizer has {} ids, the model {}", data.tokenizer->vocab_size(), spec.vocab),
         .expected = "a vocabulary at least as large as the tokenizer's"});
  std::vector<SampleSource> train = sources_of(data.train), validation = sources_of(data.validation);
  if (validation.empty() && run.data.validation_fraction > 0)
    validation = split_off_validation(train, run.data.validation_fraction);

  SamplerOptions options{.seq = run.batch.seq, .vocab = spec.vocab, .seed = static_cast<uint64_t>(run.train.seed)};
  const SampleSource& measured = validation.empty() ? train.front() : validation.front();
  double entropy = entropy_of(*measured.file, measured.range, spec.vocab);
  int64_t train_tokens = tokens_in(train), validation_tokens = tokens_in(validation);
  Dataset dataset{.tokenizer = data.tokenizer,
                  .train_files = data.train,
                  .train = BatchSampler(std::move(train), options),
                  .validation = {},
                  .train_tokens = train_tokens,
                  .validation_tokens = validation_tokens,
                  .end_of_text = end_of_text(run, spec, data.tokenizer.get()),
                  .unigram_entropy = entropy};
  if (!validation.empty()) {
    options.order = SampleOrder::sequential;
    dataset.validation.emplace(std::move(validation), options);
  }
  return dataset;
}

}  // namespace sextant
