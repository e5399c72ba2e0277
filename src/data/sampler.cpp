#include "data/sampler.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "data/permutation.h"

namespace sextant {

namespace {

// Named before the weights are looked at: an empty file has none, and that it is empty says more.
void check_source(const SampleSource& source, int64_t seq) {
  for (const TokenRange& range : source.tokens.ranges())
    BUG_IF(range.begin < 0 || range.begin > range.end || range.end > source.file->token_count(),
           "tokens {} to {} of {} in {}", range.begin, range.end, source.file->token_count(), source.file->name());
  if (source.file->token_count() == 0)
    throw UserError({.place = source.file->name(), .got = "the file is empty", .expected = "tokens"});
  if (Packing{{0, source.tokens.size()}, seq}.samples() < 1)
    throw UserError({.place = source.file->name(),
                     .got = fmt::format("{} tokens to draw from", human_count(source.tokens.size())),
                     .expected = fmt::format("{} at least, one sample of seq + 1", human_count(seq + 1)),
                     .hint = "Give more data, a shorter seq, or another validation fraction."});
}

std::vector<double> weights_of(const std::vector<SampleSource>& sources, int64_t seq) {
  std::vector<double> weights;
  for (const SampleSource& source : sources) {
    check_source(source, seq);
    weights.push_back(source.weight);
  }
  return weights;
}

}  // namespace

BatchSampler::BatchSampler(std::vector<SampleSource> sources, SamplerOptions options)
    : sources_(std::move(sources)), options_(options), blend_(weights_of(sources_, options.seq), options.mix_period) {
  BUG_IF(options.seq < 1 || options.vocab < 1, "seq {} and vocab {}", options.seq, options.vocab);
}

BatchSampler::Draw BatchSampler::draw(int64_t k) const {
  Blend::Pick pick = blend_.at(k);
  const int64_t samples = packing(pick.source).samples();
  BUG_IF(samples < 1, "source {} has no sample", pick.source);
  Draw draw{.source = pick.source, .epoch = pick.index / samples, .sample = pick.index % samples};
  if (options_.order == SampleOrder::sequential) return draw;
  Random keys(options_.seed, "data order", static_cast<uint64_t>(draw.source));
  draw.sample = Permutation(samples, keys.bits(static_cast<uint64_t>(draw.epoch)))(draw.sample);
  return draw;
}

void BatchSampler::fill(int64_t first_sample, int64_t count, std::span<int32_t> tokens,
                        std::span<int32_t> targets) const {
  const auto seq = static_cast<size_t>(options_.seq);
  BUG_IF(first_sample < 0 || count < 0 || tokens.size() != targets.size() ||
             tokens.size() != static_cast<size_t>(count) * seq,
         "samples from {}, {} of them, into {} tokens and {} targets", first_sample, count, tokens.size(),
         targets.size());
  for (int64_t row = 0; row < count; ++row) {
    Draw drawn = draw(first_sample + row);
    const SampleSource& from = source(drawn.source);
    const int64_t first = first_position(drawn);
    std::span<int32_t> inputs = tokens.subspan(static_cast<size_t>(row) * seq, seq);
    std::span<int32_t> shifted = targets.subspan(static_cast<size_t>(row) * seq, seq);
    read(from, first, inputs);
    std::copy(inputs.begin() + 1, inputs.end(), shifted.begin());
    read(from, first + options_.seq, shifted.last(1));
  }
}

void BatchSampler::read(const SampleSource& source, int64_t first, std::span<int32_t> out) const {
  size_t done = 0;
  source.tokens.for_each_range(first, std::ssize(out), [&](TokenRange range) {
    std::span<int32_t> piece = out.subspan(done, static_cast<size_t>(range.size()));
    source.file->read(range.begin, piece);
    check_vocab(*source.file, range.begin, piece);
    done += piece.size();
  });
}

void BatchSampler::check_vocab(const TokenFile& file, int64_t first_token, std::span<const int32_t> ids) const {
  auto largest = std::max_element(ids.begin(), ids.end());
  if (*largest < options_.vocab) return;
  throw UserError({.place = file.place_of(first_token + (largest - ids.begin())),
                   .got = fmt::format("token id {}", *largest),
                   .expected = fmt::format("an id below {}, the model's vocabulary", human_count(options_.vocab)),
                   .hint = "The tokens were made with another tokenizer, or have another type."});
}

}  // namespace sextant
