// Which documents samples of a run are made of. Enter the run's data and numbers of samples; leave, for each, the
// pieces of documents in it, in order. The same draws as the feeder's decide them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/data/dataset.h"

namespace sextant {

struct TracedPiece {
  int64_t token = 0;                              // of the token file, the piece's first
  int64_t tokens = 0;                             // how many
  std::optional<int64_t> document;                // of the token file, where documents can be told apart
  int64_t offset = 0;                             // of the piece in the document
  std::optional<DocumentOrigins::Origin> origin;  // where the document stood in the original text

  bool operator==(const TracedPiece&) const = default;
};

struct TracedSample {
  int64_t sample = 0;               // of the run, from 0
  std::string file;                 // of tokens
  int64_t epoch = 0;                // of that file
  std::vector<TracedPiece> pieces;  // batch.seq inputs and the target of the last
};

// Samples first … first + count - 1 of the run.
std::vector<TracedSample> trace_samples(const Dataset& dataset, int64_t first, int64_t count);

}  // namespace sextant
