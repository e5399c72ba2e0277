#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
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
struct DrawnTimeline {
  int microbatches = 0, ranks = 0;
  double bubble = 0;  // the share of time in which ranks wait
};
DrawnTimeline draw_timeline(const std::string& file, const RunShape& shape, const RunPrograms& programs) {
  const PipelineSchedule& pipeline = shape.pipeline;
  double whole = simulate_schedule(pipeline, stage_flops(programs, pipeline, Flops{1})).makespan();
  auto [unit, name] = whole < 1e10   ? std::pair(1e6, "MFLOP")
                      : whole < 1e13 ? std::pair(1e9, "GFLOP")
                                     : std::pair(1e12, "TFLOP");
  TimedSchedule timed = simulate_schedule(pipeline, stage_flops(programs, pipeline, Flops{unit}));
  write_file_atomically(
      file, timeline_svg(
                timed, {.title = "", .time_unit = fmt::format("{} of a rank's operations; messages take none", name)}));
  return {pipeline.shape.microbatches, pipeline.shape.ranks, timed.bubble_fraction()};
}

}  // namespace

void explain_verb(const ExplainArguments& arguments) {
  std::vector<std::string_view> passes = pass_names();
  if (!arguments.after.empty() && std::find(passes.begin(), passes.end(), arguments.after) == passes.end())
    throw UserError({.place = "--after",
                     .got = fmt::format("no pass is called '{}'", arguments.after),
                     .expected = fmt::format("one of {}", fmt::join(passes, ", ")),
                     .hint = did_you_mean(arguments.after, std::span<const std::string_view>(passes))});
  RunConfig run = load_config(arguments.config, arguments.overrides);
  bool table = arguments.after.empty() && arguments.timeline.empty() && arguments.schedule_csv.empty();
  bool json = arguments.json;
  nlohmann::ordered_json answer;
  auto observe = [&](std::string_view pass, const std::function<std::string()>& text) {
    if (pass == arguments.after) {
      if (json)
        answer["program"] = text();
      else
        fmt::print("{}", text());
    }
    if (!table) return;
    std::string printed = text();
    size_t ops = count_lines(printed, "op "), values = count_lines(printed, "value ");
    if (json)
      answer["passes"].push_back({{"pass", pass}, {"ops", ops}, {"values", values}});
    else
      fmt::print("{:<12}{:>8}{:>8}\n", pass, ops, values);
  };
  RunShape shape = run_shape(run, resolve_spec(run));
  if (table && !json) fmt::print("{:<12}{:>8}{:>8}\n", "after", "ops", "values");
  RunPrograms programs = build_programs(run, shape, target_for(run, shape.mesh.world_size()), observe);
  if (!arguments.timeline.empty()) {
    DrawnTimeline drawn = draw_timeline(arguments.timeline, shape, programs);
    answer["timeline"] = {{"file", arguments.timeline},
                          {"microbatches", drawn.microbatches},
                          {"stage_ranks", drawn.ranks},
                          {"bubble", drawn.bubble}};
    if (!json)
      fmt::print("{}: {} microbatches on {} stage ranks, bubble {:.1f} %\n", arguments.timeline, drawn.microbatches,
                 drawn.ranks, 100 * drawn.bubble);
  }
  if (!arguments.schedule_csv.empty()) {
    write_file_atomically(arguments.schedule_csv, csv_text(shape.pipeline));
    answer["schedule"] = {{"file", arguments.schedule_csv}, {"name", shape.pipeline.name}};
    if (!json)
      fmt::print("{}: the schedule {}, for pipeline.schedule = \"csv\"\n", arguments.schedule_csv, shape.pipeline.name);
  }
  if (json) fmt::print("{}\n", answer.dump(2));
  if (table && !json && arguments.verbosity != Verbosity::quiet)
    fmt::print("\n`--after PASS` prints the program as it stands there.\n");
}

}  // namespace sextant
