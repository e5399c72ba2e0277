#include "schedule/schedules.h"

#include <fmt/format.h>

namespace sextant {

namespace {

std::string chunks_text(const ScheduleDef& def) {
  if (def.chunks.most == 0) return fmt::format("{} chunks or more", def.chunks.least == 2 ? "two" : "one");
  if (def.chunks.most == 1) return "one chunk a rank";
  std::string_view where = def.placement == StagePlacement::v ? ", placed as a V"
                           : def.copies() == 2                ? " (one of each copy of the model)"
                                                              : "";
  return fmt::format("exactly two chunks a rank{}", where);
}

}  // namespace

std::string shapes_text(const ScheduleDef& def) {
  const CountRule& counts = def.counts;
  if (def.chunks.least == 1 && def.chunks.most == 0) return "every shape";
  std::string text = chunks_text(def);
  if (counts.even) text = "an even number of ranks, " + text;
  if (counts.whole_groups) text += ", and microbatches that are a multiple of the ranks";
  if (counts.even) return text + ", and an even number of microbatches, at least twice as many as ranks";
  if (counts.microbatches_per_rank == 2) text += ", and at least twice as many microbatches as ranks";
  return text;
}

bool is_defined(const ScheduleDef& def, const PipelineShape& shape) {
  const CountRule& counts = def.counts;
  bool even = shape.ranks % 2 == 0 && shape.microbatches % 2 == 0;
  return def.chunks.allows(shape.chunks) && shape.microbatches / shape.ranks >= counts.microbatches_per_rank &&
         (!counts.whole_groups || shape.microbatches % shape.ranks == 0) && (!counts.even || even);
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const ScheduleDef& def : kSchedules) names.push_back(def.name);
  return names;
}

}  // namespace sextant
