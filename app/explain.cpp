#include <algorithm>

#include "app/device.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "plan/stage_flops.h"
#include "run/resolve_spec.h"
#include "schedule/from_csv.h"
#include "train/data/dataset.h"
#include "view/timeline_svg.h"

namespace sextant {

namespace {

size_t count_lines(std::string_view text, std::string_view start) {
  size_t count = text.starts_with(start) ? 1 : 0;
  std::string needle = "\n" + std::string(start);
  for (size_t at = text.find(needle); at != std::string_view::npos; at = text.find(needle, at + 1)) ++count;
  return count;
}

// The schedule as it would run if time went by the operations of each stage alone.
void draw_timeline(const std::string& file, const RunShape& shape, const RunPrograms& programs) {
  const PipelineSchedule& pipeline = shape.pipeline;
  double whole = simulate_schedule(pipeline, stage_flops(programs, pipeline, Flops{1})).makespan();
  auto [unit, name] = whole < 1e10   ? std::pair(1e6, "MFLOP")
                      : whole < 1e13 ? std::pair(1e9, "GFLOP")
                                     : std::pair(1e12, "TFLOP");
  TimedSchedule timed = simulate_schedule(pipeline, stage_flops(programs, pipeline, Flops{unit}));
  write_file_atomically(
      file, timeline_svg(
                timed, {.title = "", .time_unit = fmt::format("{} of a rank's operations; messages take none", name)}));
  fmt::print("{}: {} microbatches on {} stage ranks, bubble {:.1f} %\n", file, pipeline.shape.microbatches,
             pipeline.shape.ranks, 100 * timed.bubble_fraction());
}

}  // namespace

void explain_verb(const ExplainArguments& arguments) {
  std::vector<std::string_view> passes = pass_names();
  if (!arguments.after.empty() && std::find(passes.begin(), passes.end(), arguments.after) == passes.end())
    throw UserError({.place = "--after",
                     .got = fmt::format("no pass is called '{}'", arguments.after),
                     .expected = fmt::format("one of {}", fmt::join(passes, ", "))});
  RunConfig run = load_config(arguments.config, arguments.overrides);
  bool table = arguments.after.empty() && arguments.timeline.empty() && arguments.schedule_csv.empty();
  auto observe = [&](std::string_view pass, const std::function<std::string()>& text) {
    if (pass == arguments.after) fmt::print("{}", text());
    if (table) {
      std::string printed = text();
      fmt::print("{:<12}{:>8}{:>8}\n", pass, count_lines(printed, "op "), count_lines(printed, "value "));
    }
  };
  RunShape shape = run_shape(run, resolve_spec(run));
  if (table) fmt::print("{:<12}{:>8}{:>8}\n", "after", "ops", "values");
  RunPrograms programs = build_programs(run, shape, target_for(run, shape.mesh.world_size()), observe);
  if (!arguments.timeline.empty()) draw_timeline(arguments.timeline, shape, programs);
  if (!arguments.schedule_csv.empty()) {
    write_file_atomically(arguments.schedule_csv, csv_text(shape.pipeline));
    fmt::print("{}: the schedule {}, for pipeline.schedule = \"csv\"\n", arguments.schedule_csv, shape.pipeline.name);
  }
  if (table) fmt::print("\n`--after PASS` prints the program as it stands there.\n");
}

}  // namespace sextant
