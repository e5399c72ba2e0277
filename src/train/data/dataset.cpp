#include "train/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "base/units.h"
#include "config/resolve.h"
#include "data/document_split.h"
#include "run/tokenizer_choice.h"
#include "train/data/sample_check.h"
#include "train/data/token_cache.h"

namespace sextant {

namespace {

// The entropy of single tokens, in nats; nullopt where there are too few to tell. Estimated from N tokens with K
// different ids it comes out too low by about (K - 1) / 2N (Miller, "Note on the bias of information estimates", 1955).
std::optional<double> unigram_entropy(const std::vector<SampleSource>& sources, int64_t vocab) {
  constexpr int64_t kEnough = 5'000'000;  // tell the entropy to three digits
  constexpr double kMostBias = 0.01;      // of the entropy
  int64_t all = 0;
  for (const SampleSource& source : sources) all += source.tokens.size();
  std::vector<int64_t> counts(static_cast<size_t>(vocab), 0);
  for (const SampleSource& source : sources) {
    int64_t size = source.tokens.size();
    auto part = static_cast<int64_t>(static_cast<double>(size) *
                                     std::min(1.0, static_cast<double>(kEnough) / static_cast<double>(all)));
    source.tokens.for_each_range(0, part, [&](TokenRange range) {
      for_each_piece(*source.file, range.begin, range.end, [&](int64_t, std::span<const int32_t> ids) {
        for (int32_t id : ids)
          if (id < vocab) ++counts[static_cast<size_t>(id)];
      });
    });
  }
  double total = 0, entropy = 0, distinct = 0;
  for (int64_t count : counts) total += static_cast<double>(count);
  for (int64_t count : counts) {
    if (count == 0) continue;
    double p = static_cast<double>(count) / total;
    entropy -= p * std::log(p);
    distinct += 1;
  }
  bool enough = total > 0 && (distinct - 1) / (2 * total) <= kMostBias * entropy;
  return enough ? std::optional(entropy) : std::nullopt;
}

// Bytes of text that a target of the measured validation samples stands for, on average; tokens that are no text
// (end of text, begin of text) count with none.
double text_bytes_per_target(const BatchSampler& validation, int64_t samples, const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens(static_cast<size_t>(validation.seq())), targets(tokens.size());
  int64_t bytes = 0;
  for (int64_t k = 0; k < samples; ++k) {
    validation.fill(k, 1, tokens, targets);
    std::vector<uint32_t> ids(targets.begin(), targets.end());
    bytes += std::ssize(tokenizer.decode(ids, Specials::skip));
  }
  return static_cast<double>(bytes) / static_cast<double>(samples * validation.seq());
}

// Without weights, files count by their size, as if they were one.
std::vector<SampleSource> sources_of(const std::vector<std::shared_ptr<const TokenFile>>& files,
                                     const std::vector<double>& weights = {}) {
  BUG_IF(!weights.empty() && weights.size() != files.size(), "{} weights of {} files", weights.size(), files.size());
  std::vector<SampleSource> sources;
  for (size_t i = 0; i < files.size(); ++i)
    sources.push_back({files[i],
                       {0, files[i]->token_count()},
                       weights.empty() ? static_cast<double>(files[i]->token_count()) : weights[i]});
  return sources;
}

int64_t tokens_in(const std::vector<SampleSource>& sources) {
  int64_t tokens = 0;
  for (const SampleSource& source : sources) tokens += source.tokens.size();
  return tokens;
}

std::optional<int32_t> document_end(const RunConfig& run, const Tokenizer* tokenizer) {
  if (run.data.end_of_text) return static_cast<int32_t>(*run.data.end_of_text);
  if (tokenizer && tokenizer->eos_id()) return static_cast<int32_t>(*tokenizer->eos_id());
  return std::nullopt;
}

// Holds documents of every training source out, or, where documents cannot be told apart or are too few, its tail.
class HeldOutData {
 public:
  HeldOutData(const RunConfig& run, const Tokenizer* tokenizer, const Say& say)
      : run_(run), end_of_text_(document_end(run, tokenizer)), say_(say) {}

  std::vector<SampleSource> take_from(std::vector<SampleSource>& train) const {
    std::vector<SampleSource> validation;
    for (size_t i = 0; i < train.size(); ++i) {
      DocumentSplit split = split_of(train[i].file, i);
      train[i].tokens = split.train;
      if (split.validation.size() > 1) validation.push_back({train[i].file, split.validation, train[i].weight});
    }
    return validation;
  }

 private:
  DocumentSplit split_of(const std::shared_ptr<const TokenFile>& file, size_t source) const {
    if (run_.data.validation_split == ValidationSplit::tail) return tail_of(*file);
    std::optional<DocumentIndex> documents = index_documents(file, end_of_text_);
    if (!documents) {
      say_tail(*file, "where documents end is unknown (data.end_of_text or data.tokenizer says it)");
      return tail_of(*file);
    }
    Random keys(static_cast<uint64_t>(run_.train.seed), "validation documents", source);
    if (auto split = split_documents(*documents, run_.data.validation_fraction, keys.bits(0))) return *split;
    say_tail(*file, documents->count() == 1 ? "it is one document"
                                            : fmt::format("{} documents are too few to hold some of them out",
                                                          human_count(documents->count())));
    return tail_of(*file);
  }

  DocumentSplit tail_of(const TokenFile& file) const {
    Split split = split_tail(file.token_count(), run_.data.validation_fraction);
    return {split.train, split.validation};
  }

  void say_tail(const TokenFile& file, std::string_view why) const {
    say_(fmt::format("{}: {}; the last {:g} % of its tokens are held out for validation", file.name(), why,
                     100 * run_.data.validation_fraction));
  }

  const RunConfig& run_;
  std::optional<int32_t> end_of_text_;
  const Say& say_;
};

int32_t end_of_text(const RunConfig& run, const ModelSpec& spec, const Tokenizer* tokenizer) {
  if (!run.data.mask_documents) return -1;
  if (run.data.end_of_text && *run.data.end_of_text >= spec.vocab)
    throw UserError({.place = run.place_of("data.end_of_text"),
                     .got = std::to_string(*run.data.end_of_text),
                     .expected = fmt::format("an id below {}, the vocabulary", spec.vocab)});
  if (auto id = document_end(run, tokenizer)) return *id;
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
  // Rows of no token cost memory and time: most often a preset's own vocabulary beside a tokenizer trained here.
  if (data.tokenizer && data.tokenizer->vocab_size() * 2 < static_cast<size_t>(spec.vocab))
    say(fmt::format("the tokenizer has {} ids, the model {} rows of vocabulary: the rest is of no token (model.vocab)",
                    human_count(static_cast<int64_t>(data.tokenizer->vocab_size())), human_count(spec.vocab)));
  std::vector<SampleSource> train = sources_of(data.train, run.data.weights), validation = sources_of(data.validation);
  if (validation.empty() && run.data.holds_out_part())
    validation = HeldOutData(run, data.tokenizer.get(), say).take_from(train);

  require_training_samples(run, train);
  require_validation_samples(run, validation);
  SamplerOptions options{.seq = run.batch.seq, .vocab = spec.vocab, .seed = static_cast<uint64_t>(run.train.seed)};
  if (!run.data.weights.empty()) options.mix_period = Blend::exact_period(run.data.weights);
  int64_t train_tokens = tokens_in(train), validation_tokens = tokens_in(validation);
  Dataset dataset{.tokenizer = data.tokenizer,
                  .train_files = data.train,
                  .train_origins = data.train_origins,
                  .train = BatchSampler(std::move(train), options),
                  .validation = {},
                  .train_tokens = train_tokens,
                  .validation_tokens = validation_tokens,
                  .document_end = document_end(run, data.tokenizer.get()),
                  .end_of_text = end_of_text(run, spec, data.tokenizer.get()),
                  .unigram_entropy = {},
                  .validation_bytes_per_token = {}};
  if (validation.empty()) return dataset;
  // The first loss of trained weights is already far below the unigram entropy.
  if (!run.model.from) dataset.unigram_entropy = unigram_entropy(validation, spec.vocab);
  options.order = SampleOrder::sequential;
  if (!run.data.validation.empty()) options.mix_period = Blend::kSlots;  // these have no weights
  dataset.validation.emplace(std::move(validation), options);
  if (data.tokenizer && run.train.eval_every > 0)
    dataset.validation_bytes_per_token =
        text_bytes_per_target(*dataset.validation, measured_samples(run, *dataset.validation), *data.tokenizer);
  return dataset;
}

int64_t measured_samples(const RunConfig& run, const BatchSampler& validation) {
  int64_t available = 0;
  for (int source = 0; source < validation.source_count(); ++source) available += validation.samples(source);
  return std::min(available, run.train.eval_sequences);
}

}  // namespace sextant
