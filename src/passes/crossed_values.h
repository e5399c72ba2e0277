// Where a pipeline has two copies (a crossed V of schedule/folded.h), the second chunk of a rank works on the other
// copy's part of a microbatch than the first. What one chunk makes for the other is therefore not the same tensor on
// both sides: it is sent to the other copy, and what the other copy sends takes its place. Feeds that differ between
// the copies are two values. The graph of other schedules stays as it is.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "schedule/pipeline.h"

namespace sextant {

struct CrossedGraph {
  Graph graph;
  std::vector<ValueId> sources;  // of the values behind those of the model: what the other copy has made, and sends

  // The value that is sent so that this one arrives: itself, but between copies.
  ValueId sent_as(ValueId id) const {
    size_t own = graph.values.size() - sources.size(), at = static_cast<size_t>(id);
    return at < own ? id : sources[at - own];
  }
};

CrossedGraph crossed_values(Graph graph, const PipelineSchedule& schedule);

// Whether an op adds onto this input where it stands, as onto the gradient of a weight.
bool is_running_sum(const Op& op, ValueId input);

}  // namespace sextant
