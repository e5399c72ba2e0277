#include "replay/document_losses.h"

#include <algorithm>
#include <utility>

namespace sextant {

namespace {

constexpr size_t kWorstSamples = 3;

// Of one sample: the loss of each document's tokens. A token is the target of the position before it.
void add_documents(const TracedSample& sample, const MeasureLoss& measure, std::vector<DocumentLoss>& documents) {
  int64_t token = 0;  // of the sample
  for (const TracedPiece& piece : sample.pieces) {
    Feeder::Samples targets{.first = sample.sample,
                            .end = sample.sample + 1,
                            .first_target = std::max<int64_t>(token - 1, 0),
                            .end_target = token + piece.tokens - 1};
    token += piece.tokens;
    if (targets.first_target >= targets.end_target) continue;  // the first token alone is no target
    if (std::optional<double> loss = measure(targets))
      documents.push_back({.sample = sample.sample, .file = sample.file, .piece = piece, .loss = *loss});
  }
}

}  // namespace

LossesOfStep document_losses(const Dataset& dataset, int64_t first, int64_t count, const MeasureLoss& measure) {
  std::vector<std::pair<double, int64_t>> samples;  // by loss, from high to low
  for (int64_t k = first; k < first + count; ++k)
    if (std::optional<double> loss = measure({.first = k, .end = k + 1})) samples.emplace_back(-*loss, k);
  std::ranges::sort(samples);
  LossesOfStep losses;
  if (samples.empty()) return losses;
  losses.median = -samples[samples.size() / 2].first;
  for (size_t i = 0; i < std::min(samples.size(), kWorstSamples); ++i)
    for (const TracedSample& sample : trace_samples(dataset, samples[i].second, 1))
      add_documents(sample, measure, losses.documents);
  std::ranges::stable_sort(losses.documents, std::greater(), &DocumentLoss::loss);
  return losses;
}

}  // namespace sextant
