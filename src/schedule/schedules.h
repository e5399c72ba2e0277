// The schedules there are, each declared once: its name, the shapes it is defined for, and what its actions are. Config
// keys and their checks, lists, search and the generators themselves read this table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "describe/choice.h"
#include "schedule/orders.h"
#include "schedule/pipeline.h"

namespace sextant {

// How many chunks a rank of a schedule holds.
struct ChunkRule {
  int least = 1;
  int most = 1;  // 0: any number from the least on
  bool allows(int64_t chunks) const { return chunks >= least && (most == 0 || chunks <= most); }
};

// How many microbatches and ranks.
struct CountRule {
  int microbatches_per_rank = 0;  // at least so many
  bool whole_groups = false;      // microbatches are a multiple of the ranks
  bool even = false;              // both are even
};

enum class ScheduleKind : uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  breadth_first,
  zb_h1,
  zbv,
  combined_1f1b,
  dualpipev,
  dualpipe,
  from_file,  // read from a CSV file: it has no definition
};

struct ScheduleDef {
  ScheduleKind kind;
  std::string_view name;
  Order (*order)(const PipelineShape& shape, int rank);
  StagePlacement placement = StagePlacement::loop;
  ChunkRule chunks = {};
  CountRule counts = {};
  bool defers_weights = false;  // it has W actions
  bool pairs = false;           // it runs forwards beside backwards
  bool one_rank = false;        // it is another order than 1f1b's on one rank too
  bool is_searched = false;     // by searches of layouts
  std::string_view hint = {};   // what else there is where it is not defined

  // How many times each weight is there.
  int copies() const { return placement == StagePlacement::both_ways ? 2 : 1; }
};

inline constexpr std::array<ScheduleDef, 9> kSchedules{{
    {.kind = ScheduleKind::gpipe,
     .name = "gpipe",
     .order = gpipe,
     .hint = "breadth-first is GPipe with several chunks."},
    {.kind = ScheduleKind::one_f_one_b,
     .name = "1f1b",
     .order = one_f_one_b,
     .is_searched = true,
     .hint = "interleaved is 1F1B with several chunks."},
    {.kind = ScheduleKind::interleaved,
     .name = "interleaved",
     .order = interleaved,
     .chunks = {2, 0},
     .counts = {.whole_groups = true},
     .is_searched = true,
     .hint = "Microbatches pass through the chunks in groups of one per rank. 1f1b takes one chunk and any number of "
             "them, breadth-first any shape."},
    {.kind = ScheduleKind::breadth_first, .name = "breadth-first", .order = breadth_first, .chunks = {1, 0}},
    {.kind = ScheduleKind::zb_h1,
     .name = "zb-h1",
     .order = zb_h1,
     .defers_weights = true,
     .is_searched = true,
     .hint = "zbv is the zero-bubble schedule with two chunks."},
    {.kind = ScheduleKind::zbv,
     .name = "zbv",
     .order = zbv,
     .placement = StagePlacement::v,
     .chunks = {2, 2},
     .defers_weights = true,
     .is_searched = true,
     .hint = "zb-h1 is the zero-bubble schedule with one chunk."},
    {.kind = ScheduleKind::combined_1f1b,
     .name = "combined-1f1b",
     .order = combined_1f1b,
     .pairs = true,
     .one_rank = true,
     .is_searched = true,
     .hint = "dualpipev pairs forwards and backwards with two chunks."},
    {.kind = ScheduleKind::dualpipev,
     .name = "dualpipev",
     .order = dualpipev,
     .placement = StagePlacement::v,
     .chunks = {2, 2},
     .counts = {.microbatches_per_rank = 2},
     .defers_weights = true,
     .pairs = true,
     .is_searched = true,
     .hint = "zbv takes fewer microbatches, combined-1f1b pairs forwards and backwards with one chunk."},
    {.kind = ScheduleKind::dualpipe,
     .name = "dualpipe",
     .order = dualpipe,
     .placement = StagePlacement::both_ways,
     .chunks = {2, 2},
     .counts = {.microbatches_per_rank = 2, .even = true},
     .defers_weights = true,
     .pairs = true,
     .one_rank = true,
     .hint = "dualpipev takes any number of ranks and keeps one copy of the model."},
}};

// The words of pipeline.schedule.
inline constexpr auto kScheduleChoices = [] {
  std::array<Choice<ScheduleKind>, kSchedules.size() + 1> choices{};
  for (size_t i = 0; i < kSchedules.size(); ++i) choices[i] = {kSchedules[i].kind, kSchedules[i].name};
  choices.back() = {ScheduleKind::from_file, "csv", "read from `file`"};
  return choices;
}();
constexpr const auto& choices_of(ScheduleKind) {
  return kScheduleChoices;
}

constexpr const ScheduleDef* find_schedule(std::string_view name) {  // null when there is none
  for (const ScheduleDef& def : kSchedules)
    if (def.name == name) return &def;
  return nullptr;
}
constexpr const ScheduleDef* find_schedule(ScheduleKind kind) {  // null for one that is read from a file
  for (const ScheduleDef& def : kSchedules)
    if (def.kind == kind) return &def;
  return nullptr;
}

// Those it is defined for, in words.
std::string shapes_text(const ScheduleDef& def);
bool is_defined(const ScheduleDef& def, const PipelineShape& shape);

std::vector<std::string_view> schedule_names();

}  // namespace sextant
