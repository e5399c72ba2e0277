#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "app/common_options.h"
#include "app/device.h"
#include "app/output_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/verbosity.h"
#include "config/load.h"
#include "ir/parse.h"
#include "ops/ops.h"
#include "passes/pass_list.h"
#include "plan/stage_flops.h"
#include "run/resolve_spec.h"
#include "schedule/folded.h"
#include "schedule/from_csv.h"
#include "train/data/dataset.h"
#include "view/listing.h"
#include "view/timeline_svg.h"

namespace sextant {

namespace {

struct ExplainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string after;         // empty: the list of passes and what each did; with a filter, the last pass
  int64_t layer = -1;        // only ops of this layer; -1: all
  std::string op;            // only ops of this name; empty: all
  std::string timeline;      // an SVG file to draw the pipeline schedule into
  std::string schedule_csv;  // a file to write it to as text
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

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
  const PipelineSchedule pipeline = unfolded(shape.pipeline);
  auto timed_by = [&](Flops flops) {
    return simulate_schedule(pipeline, unfolded(shape.pipeline, stage_flops(programs, shape.pipeline, flops)));
  };
  double whole = timed_by(Flops{1}).makespan();
  auto [unit, name] = whole < 1e10   ? std::pair(1e6, "MFLOP")
                      : whole < 1e13 ? std::pair(1e9, "GFLOP")
                                     : std::pair(1e12, "TFLOP");
  TimedSchedule timed = timed_by(Flops{unit});
  write_file_atomically(
      file, timeline_svg(
                timed, {.title = "", .time_unit = fmt::format("{} of a rank's operations; messages take none", name)}));
  return {pipeline.shape.microbatches, pipeline.shape.ranks, timed.bubble_fraction()};
}

std::vector<std::string_view> known_passes() {
  std::vector<std::string_view> names;
  for (const PassInfo& pass : pass_list()) names.push_back(pass.name);
  return names;
}

void require_known_pass(const std::string& name) {
  std::vector<std::string_view> passes = known_passes();
  if (name.empty() || std::ranges::count(passes, name) > 0) return;
  throw UserError({.place = "--after",
                   .got = fmt::format("no pass is called '{}'", name),
                   .expected = fmt::format("one of {}", fmt::join(passes, ", ")),
                   .hint = did_you_mean(name, std::span<const std::string_view>(passes))});
}

void require_known_op(const std::string& name) {
  if (name.empty() || find_op(name)) return;
  std::vector<std::string_view> ops;
  for (const OpDef* def : all_ops()) ops.push_back(def->name);
  std::string hint = did_you_mean(name, std::span<const std::string_view>(ops));
  throw UserError({.place = "--op",
                   .got = fmt::format("no op is called '{}'", name),
                   .expected = "the name of an op, such as linear",
                   .hint = hint.empty() ? "without --op, every op is printed" : hint});
}

void require_layer(int64_t layer, int64_t layers) {
  if (layer < layers) return;
  throw UserError({.place = "--layer",
                   .got = fmt::format("the model has no layer {}", layer),
                   .expected = fmt::format("0 to {}", layers - 1),
                   .hint = fmt::format("the nearest is --layer {}", layers - 1)});
}

// Prints the output that the command line selects, pass by pass.
class ExplainView {
 public:
  explicit ExplainView(const ExplainArguments& a)
      : json_(a.json), quiet_(a.verbosity == Verbosity::quiet), after_(a.after) {
    if (a.layer >= 0) filter_.layer = static_cast<int>(a.layer);
    if (!a.op.empty()) filter_.kind = find_op(a.op);
    if (after_.empty() && filter_.is_set()) after_ = pass_list().back().name;
    has_table_ = after_.empty() && a.timeline.empty() && a.schedule_csv.empty();
    if (has_table_ && !json_) fmt::print("{:<12}{:>8}{:>8}  {}\n", "after", "ops", "values", "what is new");
    if (!after_.empty() && !json_ && !filter_.is_set()) fmt::print("{}", listing_legend());
  }

  void after(const PassInfo& pass, const std::function<std::string()>& text) {
    if (pass.name == after_) show_program(text());
    if (has_table_) count(pass, text());
  }

  // Ops of a name that the program has not, or not in the layer asked for. Every layer has some op.
  void require_shown() const {
    if (!filter_.kind || shown_ > 0) return;
    std::vector<std::string_view> names(seen_.begin(), seen_.end());
    throw UserError({.place = "--op",
                     .got = fmt::format("after {} no op is called '{}'{}", after_, filter_.kind->name, in_layer()),
                     .expected = fmt::format("one of {}", fmt::join(seen_, ", ")),
                     .hint = did_you_mean(filter_.kind->name, std::span<const std::string_view>(names))});
  }

  nlohmann::ordered_json& answer() { return answer_; }

  void finish() const {
    if (json_)
      fmt::print("{}\n", answer_.dump(2));
    else if (has_table_ && !quiet_)
      fmt::print(
          "\n`--after PASS` prints the program as it stands there; --layer N and --op NAME print a part of it.\n");
  }

 private:
  std::string in_layer() const { return filter_.layer ? fmt::format(" in layer {}", *filter_.layer) : ""; }

  void show_program(const std::string& text) {
    if (text.starts_with("graph"))
      show(parse_graph(text, find_op), text);
    else
      show(parse_program(text, find_op), text);
  }

  template <class Ir>
  void show(const Ir& ir, const std::string& text) {
    for (const ListedOp& op : listed_ops(ir, {.layer = filter_.layer})) seen_.insert(std::string(op.name));
    std::vector<ListedOp> ops = listed_ops(ir, filter_);
    if (json_ && !filter_.is_set()) {
      program_ += text;
      answer_["program"] = program_;
    } else if (json_) {
      for (const ListedOp& op : ops) answer_["ops"].push_back(json_of(op));
    } else if (!filter_.is_set() || !ops.empty()) {
      if (filter_.is_set() && shown_ == 0) fmt::print("{}", listing_legend());
      fmt::print("{}", listing(ir, filter_));
    }
    shown_ += ops.size();
  }

  static nlohmann::ordered_json json_of(const ListedValue& value) {
    nlohmann::ordered_json json{{"id", value.id},     {"type", value.type}, {"layout", value.layout},
                                {"kind", value.kind}, {"path", value.path}, {"local", nullptr},
                                {"buffer", nullptr},  {"offset", nullptr},  {"bytes", nullptr}};
    if (!value.local.empty()) json["local"] = value.local;
    if (value.place) {
      json["buffer"] = value.place->buffer;
      json["offset"] = value.place->offset;
      json["bytes"] = value.place->bytes;
    }
    return json;
  }

  static nlohmann::ordered_json json_of(const ListedOp& op) {
    nlohmann::ordered_json json{{"number", op.number},   {"op", op.name},     {"path", op.path},
                                {"constants", op.attrs}, {"phase", op.phase}, {"stage", op.stage},
                                {"layer", nullptr},      {"lane", op.lane},   {"waits", op.waits}};
    if (op.layer >= 0) json["layer"] = op.layer;
    json["inputs"] = json["outputs"] = nlohmann::ordered_json::array();
    for (const ListedValue& value : op.values) json[value.is_output ? "outputs" : "inputs"].push_back(json_of(value));
    return json;
  }

  void count(const PassInfo& pass, const std::string& text) {
    size_t ops = count_lines(text, "op "), values = count_lines(text, "value ");
    if (json_)
      answer_["passes"].push_back({{"pass", pass.name}, {"ops", ops}, {"values", values}, {"about", pass.about}});
    else
      fmt::print("{:<12}{:>8}{:>8}  {}\n", pass.name, ops, values, pass.about);
  }

  bool json_ = false, has_table_ = false;
  bool quiet_;
  std::string after_;
  ListingFilter filter_;
  size_t shown_ = 0;
  std::string program_;         // of all pipeline ranks, as text
  std::set<std::string> seen_;  // names of ops, in the layer that is asked for
  nlohmann::ordered_json answer_;
};

const PassInfo& pass_named(std::string_view name) {
  auto found = std::ranges::find(pass_list(), name, &PassInfo::name);
  BUG_IF(found == pass_list().end(), "the pass {} is not in the list", name);
  return *found;
}

void add_explain_options(CLI::App& verb, ExplainArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_option("--after", a.after, "print the program as it stands after this pass, each op with its values");
  verb.add_option("--layer", a.layer, "only ops of this layer of the model, from 0 [of the program that runs]")
      ->check(CLI::Range(int64_t{0}, kMaxPositions));
  verb.add_option("--op", a.op, "only ops of this name, such as linear [of the program that runs]");
  verb.add_option("--timeline", a.timeline, "draw the pipeline schedule into this SVG file: who computes what when")
      ->check(output_file("--timeline"));
  verb.add_option("--schedule-csv", a.schedule_csv, "write the schedule to this file, for pipeline.file")
      ->check(output_file("--schedule-csv"));
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "without the line about --after");
}

void run_explain(const ExplainArguments& arguments) {
  require_known_pass(arguments.after);
  require_known_op(arguments.op);
  RunConfig run = load_config(arguments.config, arguments.overrides);
  RunShape shape = run_shape(run, resolve_spec(run));
  require_layer(arguments.layer, shape.spec.layers + shape.spec.mtp_depths);
  ExplainView view(arguments);
  RunPrograms programs = build_programs(
      run, shape, target_for(run, shape.mesh.world_size()),
      [&](std::string_view pass, const std::function<std::string()>& text) { view.after(pass_named(pass), text); });
  view.require_shown();
  if (!arguments.timeline.empty()) {
    DrawnTimeline drawn = draw_timeline(arguments.timeline, shape, programs);
    view.answer()["timeline"] = {{"file", arguments.timeline},
                                 {"microbatches", drawn.microbatches},
                                 {"stage_ranks", drawn.ranks},
                                 {"bubble", drawn.bubble}};
    if (!arguments.json)
      fmt::print("{}: {} microbatches on {} stage ranks, bubble {:.1f} %\n", arguments.timeline, drawn.microbatches,
                 drawn.ranks, 100 * drawn.bubble);
  }
  if (!arguments.schedule_csv.empty()) {
    write_file_atomically(arguments.schedule_csv, csv_text(unfolded(shape.pipeline)));
    view.answer()["schedule"] = {{"file", arguments.schedule_csv}, {"name", shape.pipeline.name}};
    if (!arguments.json)
      fmt::print("{}: the schedule {}, for pipeline.schedule = \"csv\"\n", arguments.schedule_csv, shape.pipeline.name);
  }
  view.finish();
}

constexpr ValueFormat kExplainValues[] = {
    {"LAYER", "", "--layer"},
    {"PASS", "the name of a pass", "--after"},
    {"OP", "the name of an op, such as linear", "--op"},
    {"FILE", "the name of a file to write", "--schedule-csv"},
};

}  // namespace

const VerbDef explain_verb{
    .words = "explain",
    .summary = "Show how a config becomes the program that runs",
    .details = "",
    .examples =
        "sextant explain configs/tiny-llama.toml\n"
        "sextant explain configs/tiny-llama.toml mesh.tp=2 --after infer --layer 0\n"
        "sextant explain configs/tiny-llama.toml --op attention",
    .values = kExplainValues,
    .declare = declare_verb<add_explain_options, run_explain>,
};

}  // namespace sextant
