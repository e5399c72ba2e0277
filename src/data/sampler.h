// The order of training samples, as a formula. Enter token files, each with the tokens to draw from and a weight;
// leaves for any number k of the run the sample it draws: source, epoch and place follow from k alone, in O(1). So
// resuming is exact and needs only the Cursor, and every rank can fill its own part of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/blend.h"
#include "data/packing.h"
#include "data/token_file.h"
#include "data/token_selection.h"

namespace sextant {

// All that a checkpoint keeps of the data's position.
struct Cursor {
  int64_t samples_consumed = 0;
};

enum class SampleOrder : uint8_t { shuffled, sequential };

struct SampleSource {
  std::shared_ptr<const TokenFile> file;
  TokenSelection tokens;  // of the file, to draw from
  double weight = 1;      // its share of the samples, beside the other sources
};

struct SamplerOptions {
  int64_t seq = 1;
  int64_t vocab = 0;  // every id is held to it as it is read, since it will index the embedding
  uint64_t seed = 0;
  SampleOrder order = SampleOrder::shuffled;  // afresh in every epoch of a source
  int64_t mix_period = Blend::kSlots;         // samples after which the mix of the sources repeats
};

class BatchSampler {
 public:
  // UserError when a selection holds no sample.
  BatchSampler(std::vector<SampleSource> sources, SamplerOptions options);

  struct Draw {
    int source;
    int64_t epoch;   // of that source
    int64_t sample;  // of its packing
  };
  Draw draw(int64_t k) const;

  // Samples k = first_sample … first_sample + count - 1 of the run: their inputs and targets, count × seq each.
  // Allocates nothing. UserError for an id outside the vocabulary.
  void fill(int64_t first_sample, int64_t count, std::span<int32_t> tokens, std::span<int32_t> targets) const;

  int64_t seq() const { return options_.seq; }
  int source_count() const { return static_cast<int>(sources_.size()); }
  int64_t samples(int source) const { return packing(source).samples(); }  // of one epoch
  const SampleSource& source(int source) const { return sources_[static_cast<size_t>(source)]; }
  // The position, in its source's selection, of the first token of a sample.
  int64_t first_position(const Draw& draw) const { return packing(draw.source).first_token(draw.sample); }

 private:
  Packing packing(int number) const { return {{0, source(number).tokens.size()}, options_.seq}; }
  // Tokens at positions [first, first + out.size()) of the source's selection.
  void read(const SampleSource& source, int64_t first, std::span<int32_t> out) const;
  void check_vocab(const TokenFile& file, int64_t first_token, std::span<const int32_t> ids) const;

  std::vector<SampleSource> sources_;
  SamplerOptions options_;
  Blend blend_;
};

}  // namespace sextant
