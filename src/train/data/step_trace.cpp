#include "train/data/step_trace.h"

#include <algorithm>

#include "data/document_index.h"

namespace sextant {

namespace {

// One training source with all that is known of its documents.
struct TracedSource {
  const SampleSource& source;
  std::optional<DocumentIndex> documents;
  const DocumentOrigins* origins;  // may be null
};

std::vector<TracedSource> traced_sources(const Dataset& dataset) {
  std::vector<TracedSource> sources;
  for (int i = 0; i < dataset.train.source_count(); ++i) {
    const SampleSource& source = dataset.train.source(i);
    const auto& origins = dataset.train_origins;
    sources.push_back({source, index_documents(source.file, dataset.document_end),
                       origins.empty() ? nullptr : origins[static_cast<size_t>(i)].get()});
  }
  return sources;
}

// A range of the file, cut where documents begin.
void add_pieces(const TracedSource& from, TokenRange range, std::vector<TracedPiece>& pieces) {
  if (!from.documents) {
    pieces.push_back({.token = range.begin, .tokens = range.size(), .document = {}, .offset = 0, .origin = {}});
    return;
  }
  for (int64_t at = range.begin; at < range.end;) {
    int64_t document = from.documents->document_at(at);
    TokenRange whole = from.documents->range(document);
    int64_t end = std::min(range.end, whole.end);
    pieces.push_back({.token = at,
                      .tokens = end - at,
                      .document = document,
                      .offset = at - whole.begin,
                      .origin = from.origins ? from.origins->of(document) : std::nullopt});
    at = end;
  }
}

}  // namespace

std::vector<TracedSample> trace_samples(const Dataset& dataset, int64_t first, int64_t count) {
  std::vector<TracedSource> sources = traced_sources(dataset);
  std::vector<TracedSample> samples;
  for (int64_t k = first; k < first + count; ++k) {
    BatchSampler::Draw draw = dataset.train.draw(k);
    const TracedSource& from = sources[static_cast<size_t>(draw.source)];
    TracedSample sample{.sample = k, .file = from.source.file->name(), .epoch = draw.epoch, .pieces = {}};
    from.source.tokens.for_each_range(dataset.train.first_position(draw), dataset.train.seq() + 1,
                                      [&](TokenRange range) { add_pieces(from, range, sample.pieces); });
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace sextant
