#include <fmt/ranges.h>

#include <cstdint>

#include "base/error.h"
#include "schedule/orders.h"
#include "schedule/pipeline.h"

namespace sextant {

namespace {

constexpr int64_t kMostActions = 100'000'000;  // a typing mistake, not a pipeline; and indices stay within int

struct Entry {
  std::string_view name;
  StagePlacement placement;
  Order (*order)(const PipelineShape& shape, int rank);
  bool (*defined)(const PipelineShape& shape);
  std::string_view shapes;  // those it is defined for
  std::string_view hint;
};

bool one_chunk(const PipelineShape& shape) {
  return shape.chunks == 1;
}
bool two_chunks(const PipelineShape& shape) {
  return shape.chunks == 2;
}
bool any_shape(const PipelineShape&) {
  return true;
}
bool fills_the_v(const PipelineShape& shape) {
  return shape.chunks == 2 && shape.microbatches >= 2 * shape.ranks;
}
bool fills_both_ways(const PipelineShape& shape) {
  return fills_the_v(shape) && shape.ranks % 2 == 0 && shape.microbatches % 2 == 0;
}
bool whole_groups(const PipelineShape& shape) {
  return shape.chunks >= 2 && shape.microbatches % shape.ranks == 0;
}

constexpr Entry kSchedules[] = {
    {"gpipe", StagePlacement::loop, gpipe, one_chunk, "one chunk a rank",
     "breadth-first is GPipe with several chunks."},
    {"1f1b", StagePlacement::loop, one_f_one_b, one_chunk, "one chunk a rank",
     "interleaved is 1F1B with several chunks."},
    {"interleaved", StagePlacement::loop, interleaved, whole_groups,
     "two chunks or more, and microbatches that are a multiple of the ranks",
     "Microbatches pass through the chunks in groups of one per rank. 1f1b takes one chunk and any number of them, "
     "breadth-first any shape."},
    {"breadth-first", StagePlacement::loop, breadth_first, any_shape, "every shape", ""},
    {"zb-h1", StagePlacement::loop, zb_h1, one_chunk, "one chunk a rank",
     "zbv is the zero-bubble schedule with two chunks."},
    {"zbv", StagePlacement::v, zbv, two_chunks, "exactly two chunks a rank, placed as a V",
     "zb-h1 is the zero-bubble schedule with one chunk."},
    {"combined-1f1b", StagePlacement::loop, combined_1f1b, one_chunk, "one chunk a rank",
     "dualpipev pairs forwards and backwards with two chunks."},
    {"dualpipev", StagePlacement::v, dualpipev, fills_the_v,
     "exactly two chunks a rank, placed as a V, and at least twice as many microbatches as ranks",
     "zbv takes fewer microbatches, combined-1f1b pairs forwards and backwards with one chunk."},
    {"dualpipe", StagePlacement::both_ways, dualpipe, fills_both_ways,
     "an even number of ranks, exactly two chunks a rank (one of each copy of the model), and an even number of "
     "microbatches, at least twice as many as ranks",
     "dualpipev takes any number of ranks and keeps one copy of the model."},
};

const Entry& find_entry(std::string_view name, std::string_view place) {
  for (const Entry& entry : kSchedules)
    if (entry.name == name) return entry;
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
  const Entry& entry = find_entry(name, place);
  refuse_impossible(shape, place);
  if (!entry.defined(shape))
    throw UserError(Complaint{.place = std::string(place),
                              .got = fmt::format("schedule {} is not defined for {} ranks, {} chunks, {} microbatches",
                                                 name, shape.ranks, shape.chunks, shape.microbatches),
                              .expected = std::string(entry.shapes),
                              .hint = std::string(entry.hint)});
  PipelineSchedule schedule{.name = std::string(name), .shape = shape, .placement = entry.placement};
  for (int rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(entry.order(shape, rank));
  return schedule;
}

std::string_view shapes_of_schedule(std::string_view name) {
  return find_entry(name, "pipeline.schedule").shapes;
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kSchedules) names.push_back(entry.name);
  return names;
}

}  // namespace sextant
