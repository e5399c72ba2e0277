// The schedules there are, each declared once: its name, the shapes it is defined for, and what its actions are. Config
// keys and their checks, lists, search and the generators themselves read this table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

struct ScheduleDef {
  std::string_view name;
  Order (*order)(const PipelineShape& shape, int rank);
  StagePlacement placement = StagePlacement::loop;
  ChunkRule chunks = {};
  CountRule counts = {};
  bool defers_weights = false;  // it has W actions
  bool pairs = false;           // it runs forwards beside backwards
  bool one_rank = false;        // it is another order than 1f1b's on one rank too
  std::string_view hint = {};   // what else there is where it is not defined

  // How many times each weight is there.
  int copies() const { return placement == StagePlacement::both_ways ? 2 : 1; }
};

inline constexpr std::array<ScheduleDef, 9> kSchedules{{
    {.name = "gpipe", .order = gpipe, .hint = "breadth-first is GPipe with several chunks."},
    {.name = "1f1b", .order = one_f_one_b, .hint = "interleaved is 1F1B with several chunks."},
    {.name = "interleaved",
     .order = interleaved,
     .chunks = {2, 0},
     .counts = {.whole_groups = true},
     .hint = "Microbatches pass through the chunks in groups of one per rank. 1f1b takes one chunk and any number of "
             "them, breadth-first any shape."},
    {.name = "breadth-first", .order = breadth_first, .chunks = {1, 0}},
    {.name = "zb-h1",
     .order = zb_h1,
     .defers_weights = true,
     .hint = "zbv is the zero-bubble schedule with two chunks."},
    {.name = "zbv",
     .order = zbv,
     .placement = StagePlacement::v,
     .chunks = {2, 2},
     .defers_weights = true,
     .hint = "zb-h1 is the zero-bubble schedule with one chunk."},
    {.name = "combined-1f1b",
     .order = combined_1f1b,
     .pairs = true,
     .one_rank = true,
     .hint = "dualpipev pairs forwards and backwards with two chunks."},
    {.name = "dualpipev",
     .order = dualpipev,
     .placement = StagePlacement::v,
     .chunks = {2, 2},
     .counts = {.microbatches_per_rank = 2},
     .defers_weights = true,
     .pairs = true,
     .hint = "zbv takes fewer microbatches, combined-1f1b pairs forwards and backwards with one chunk."},
    {.name = "dualpipe",
     .order = dualpipe,
     .placement = StagePlacement::both_ways,
     .chunks = {2, 2},
     .counts = {.microbatches_per_rank = 2, .even = true},
     .defers_weights = true,
     .pairs = true,
     .one_rank = true,
     .hint = "dualpipev takes any number of ranks and keeps one copy of the model."},
}};

// A schedule that is read from a file has this name in configs.
inline constexpr std::string_view kScheduleFromFile = "csv";

namespace schedule_words {
constexpr size_t length() {
  size_t letters = kScheduleFromFile.size();
  for (const ScheduleDef& def : kSchedules) letters += def.name.size() + 1;
  return letters;
}
constexpr std::array<char, length()> joined() {
  std::array<char, length()> text{};
  size_t at = 0;
  for (const ScheduleDef& def : kSchedules) {
    for (char letter : def.name) text[at++] = letter;
    text[at++] = '|';
  }
  for (char letter : kScheduleFromFile) text[at++] = letter;
  return text;
}
inline constexpr std::array<char, length()> kJoined = joined();
}  // namespace schedule_words

// "gpipe|1f1b|…|csv": the words of the config key.
inline constexpr std::string_view kScheduleWords{schedule_words::kJoined.data(), schedule_words::kJoined.size()};

constexpr const ScheduleDef* find_schedule(std::string_view name) {  // null when there is none
  for (const ScheduleDef& def : kSchedules)
    if (def.name == name) return &def;
  return nullptr;
}

// Those it is defined for, in words.
std::string shapes_text(const ScheduleDef& def);
bool is_defined(const ScheduleDef& def, const PipelineShape& shape);

std::vector<std::string_view> schedule_names();

}  // namespace sextant
