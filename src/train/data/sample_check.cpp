#include "train/data/sample_check.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

const SampleSource* without_sample(const RunConfig& run, std::span<const SampleSource> sources) {
  auto found = std::find_if(sources.begin(), sources.end(), [&](const SampleSource& source) {
    return source.file->token_count() > 0 && source.tokens.size() <= run.batch.seq;
  });
  return found == sources.end() ? nullptr : &*found;
}

std::string one_sample(const RunConfig& run) {
  return fmt::format("at least {}, one sample of batch.seq = {} and its last target", human_count(run.batch.seq + 1),
                     run.batch.seq);
}

}  // namespace

void require_training_samples(const RunConfig& run, std::span<const SampleSource> sources) {
  const SampleSource* source = without_sample(run, sources);
  if (!source) return;
  const int64_t left = source->tokens.size(), all = source->file->token_count();
  throw UserError({.place = source->file->name(),
                   .got = left == all ? fmt::format("{} tokens to train on", human_count(all))
                                      : fmt::format("{} of {} tokens are left to train on, the others are held out for "
                                                    "validation",
                                                    human_count(left), human_count(all)),
                   .expected = one_sample(run),
                   .hint = "give more data, or a shorter batch.seq"});
}

void require_validation_samples(const RunConfig& run, std::span<const SampleSource> sources) {
  const SampleSource* source = without_sample(run, sources);
  if (!source) return;
  const int64_t held = source->tokens.size(), all = source->file->token_count();
  if (!run.data.validation.empty())
    throw UserError({.place = source->file->name(),
                     .got = fmt::format("the validation data has {} tokens", human_count(held)),
                     .expected = one_sample(run),
                     .hint = "give more validation data, a shorter batch.seq, or no data.validation: a part of the "
                             "training data is then held out"});
  throw UserError({.place = source->file->name(),
                   .got = fmt::format("data.validation_fraction = {:g} holds {} of {} tokens out for validation",
                                      run.data.validation_fraction, human_count(held), human_count(all)),
                   .expected = one_sample(run),
                   .hint =
                       "raise data.validation_fraction, shorten batch.seq, name other text with data.validation, or "
                       "go without: data.validation_fraction=0"});
}

}  // namespace sextant
