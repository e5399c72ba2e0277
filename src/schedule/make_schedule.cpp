#include <fmt/ranges.h>

#include <cstdint>

#include "base/error.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

constexpr int64_t kMostActions = 100'000'000;  // a typing mistake, not a pipeline; and indices stay within int

const ScheduleDef& schedule_named(std::string_view name, std::string_view place) {
  if (const ScheduleDef* def = find_schedule(name)) return *def;
  throw UserError(Complaint{.place = std::string(place),
                            .got = fmt::format("there is no pipeline schedule \"{}\"", name),
                            .expected = fmt::format("one of {}", fmt::join(schedule_names(), ", ")),
                            .hint = "A schedule of your own can be read from a CSV file."});
}

void refuse_impossible(const PipelineShape& shape, std::string_view place) {
  std::string got = fmt::format("{} ranks, {} chunks, {} microbatches", shape.ranks, shape.chunks, shape.microbatches);
  if (shape.ranks < 1 || shape.chunks < 1 || shape.microbatches < 1)
    throw UserError(Complaint{.place = std::string(place), .got = got, .expected = "at least one of each"});
  double actions = 3.0 * shape.ranks * shape.chunks * shape.microbatches;
  if (actions > static_cast<double>(kMostActions))
    throw UserError(Complaint{.place = std::string(place),
                              .got = got + fmt::format(" make {:.3g} actions", actions),
                              .expected = fmt::format("at most {}", kMostActions)});
}

}  // namespace

PipelineSchedule make_schedule(std::string_view name, const PipelineShape& shape, std::string_view place) {
  return make_schedule(schedule_named(name, place), shape, place);
}

PipelineSchedule make_schedule(const ScheduleDef& def, const PipelineShape& shape, std::string_view place) {
  refuse_impossible(shape, place);
  if (!is_defined(def, shape))
    throw UserError(Complaint{.place = std::string(place),
                              .got = fmt::format("schedule {} is not defined for {} ranks, {} chunks, {} microbatches",
                                                 def.name, shape.ranks, shape.chunks, shape.microbatches),
                              .expected = shapes_text(def),
                              .hint = std::string(def.hint)});
  PipelineSchedule schedule{.name = std::string(def.name), .shape = shape, .placement = def.placement};
  for (int rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(def.order(shape, rank));
  return schedule;
}

}  // namespace sextant
