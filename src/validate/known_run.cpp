#include "validate/known_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"
#include "base/threads.h"
#include "base/toml_document.h"
#include "config/load.h"
#include "cost/machine_file.h"
#include "cost/network.h"
#include "cost/planned_target.h"
#include "cost/software_profile_file.h"
#include "plan/predict.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

struct KnownText {
  std::string_view key;
  std::string KnownRun::*field;
  bool needed;
};
constexpr std::array kTexts{
    KnownText{"about", &KnownRun::about, true},      KnownText{"source", &KnownRun::source, true},
    KnownText{"date", &KnownRun::date, true},        KnownText{"known", &KnownRun::known, true},
    KnownText{"machine", &KnownRun::machine, true},  KnownText{"software", &KnownRun::software, true},
    KnownText{"assumed", &KnownRun::assumed, false}, KnownText{"like", &KnownRun::like, false},
    KnownText{"after", &KnownRun::after, false}};
struct KnownNumber {
  std::string_view key;
  std::optional<double> KnownRun::*field;
};
constexpr std::array kNumbers{KnownNumber{"step_s", &KnownRun::step_s}, KnownNumber{"tflops", &KnownRun::tflops},
                              KnownNumber{"tokens_s", &KnownRun::tokens_s},
                              KnownNumber{"utilisation", &KnownRun::utilisation},
                              KnownNumber{"flops_per_token", &KnownRun::flops_per_token}};
constexpr std::array<std::string_view, 3> kCounted{"causal", "full", "executed"};  // in the order of CountedFlops

// Reads the list; all that is wrong with it is thrown together.
class KnownRunsReader {
 public:
  KnownRunsReader(const std::filesystem::path& place, const std::filesystem::path& configs)
      : place_(place), configs_(configs) {}

  std::vector<KnownRun> read(std::string_view text) {
    for (const TomlEntry& entry : parse_toml(text, place_.string())) {
      if (std::holds_alternative<TomlValue::Table>(entry.value.is))
        begin(entry);
      else
        set(entry);
    }
    finish();
    if (!complaints_.empty()) throw UserError(std::move(complaints_));
    return std::move(runs_);
  }

 private:
  void complain(const TomlEntry& entry, std::string got, std::string expected) {
    complaints_.push_back({.place = fmt::format("{}:{}:{} {}", place_.string(), entry.line, entry.column, entry.key),
                           .got = std::move(got),
                           .expected = std::move(expected)});
  }

  void begin(const TomlEntry& entry) {
    finish();
    begun_ = entry;
    runs_.push_back({.name = entry.key});
  }

  // Whether the run that ends here is complete.
  void finish() {
    if (runs_.empty() || complete_ == runs_.size()) return;
    complete_ = runs_.size();
    KnownRun& run = runs_.back();
    run.config = configs_ / ((run.like.empty() ? run.name : run.like) + ".toml");
    if (!std::filesystem::exists(run.config))
      complain(begun_, "there is no " + run.config.string(), "the name of a config of that folder, or like = \"one\"");
    if (run.like.empty() && !run.overrides.empty())
      complain(begun_, "overrides of its own config", "like = \"NAME\" beside overrides");
    if (!run.after.empty() &&
        std::ranges::find(runs_.begin(), runs_.end() - 1, run.after, &KnownRun::name) == runs_.end() - 1)
      complain(begun_, fmt::format("after = \"{}\"", run.after), "the name of a run further up");
    for (const KnownText& text : kTexts)
      if (text.needed && (run.*text.field).empty()) complain(begun_, fmt::format("no {}", text.key), "a text");
    if (!run.step_s && !run.tflops && !run.tokens_s && !run.utilisation)
      complain(begun_, "nothing measured", "step_s, tflops, tokens_s or utilisation");
  }

  void set(const TomlEntry& entry) {
    size_t dot = entry.key.rfind('.');
    if (runs_.empty() || dot == std::string::npos) return complain(entry, "a key outside of a run", "[NAME] before it");
    std::string_view key = std::string_view(entry.key).substr(dot + 1);
    if (key == "counted") return set_counted(entry);
    if (key == "overrides") return set_overrides(entry);
    for (const KnownText& text : kTexts)
      if (key == text.key) {
        const auto* value = std::get_if<std::string>(&entry.value.is);
        return value ? void(runs_.back().*text.field = *value) : complain(entry, shown(entry.value), "a text");
      }
    for (const KnownNumber& number : kNumbers)
      if (key == number.key) return set_number(entry, number);
    complain(entry, "an unknown key", "about, source, date, known, machine, software, assumed, step_s, tflops, …");
  }

  void set_number(const TomlEntry& entry, const KnownNumber& number) {
    const auto* whole = std::get_if<int64_t>(&entry.value.is);
    const auto* real = std::get_if<double>(&entry.value.is);
    double value = whole ? static_cast<double>(*whole) : real ? *real : 0;
    if (!(value > 0) || !std::isfinite(value)) return complain(entry, shown(entry.value), "a number above 0");
    runs_.back().*number.field = value;
  }

  void set_overrides(const TomlEntry& entry) {
    const auto* list = std::get_if<TomlValue::List>(&entry.value.is);
    if (!list) return complain(entry, shown(entry.value), "a list of texts, \"key=value\"");
    for (const TomlValue& each : *list) {
      const auto* text = std::get_if<std::string>(&each.is);
      if (!text) return complain(entry, shown(each), "a text, \"key=value\"");
      runs_.back().overrides.push_back(*text);
    }
  }

  void set_counted(const TomlEntry& entry) {
    const auto* word = std::get_if<std::string>(&entry.value.is);
    for (size_t i = 0; word && i < kCounted.size(); ++i)
      if (*word == kCounted[i]) return void(runs_.back().counted = static_cast<CountedFlops>(i));
    complain(entry, shown(entry.value), "causal, full or executed");
  }

  const std::filesystem::path &place_, &configs_;
  std::vector<KnownRun> runs_;
  size_t complete_ = 0;  // of them, how many are looked at
  TomlEntry begun_;
  std::vector<Complaint> complaints_;
};

double counted_flops(const FlopsPerToken& flops, CountedFlops counted) {
  switch (counted) {
    case CountedFlops::causal:
      return flops.model_causal;
    case CountedFlops::full:
      return flops.model_full;
    case CountedFlops::executed:
      return flops.executed;
  }
  BUG("unknown count");
}

KnownRunResult plan_known_run(KnownRun known, const std::vector<SoftwareProfile>& profiles,
                              const IntervalModel& intervals) {
  const auto [config, spec, profile, machine] = load_known_run(known, profiles);
  LoweredRun lowered = lower_run(config, spec, planned_target(profile), Checks::none);
  SimResult fitted = simulate_run(lowered, {machine, machine.efficiency(), profile});
  KnownRunResult out{.run = std::move(known),
                     .devices = lowered.shape.mesh.world_size(),
                     .tables_s = simulate_run(lowered, {machine, machine.tables, profile}).seconds,
                     .fitted_s = fitted.seconds};
  double tokens = static_cast<double>(config.batch.sequences * config.batch.seq) / static_cast<double>(out.devices);
  double each =
      out.run.flops_per_token.value_or(counted_flops(flops_per_token(lowered, config.batch), out.run.counted));
  double flops = tokens * each / 1e12;
  out.peak_tflops = machine.peak("bf16") / 1e12;
  out.measured_s = out.run.step_s     ? *out.run.step_s
                   : out.run.tokens_s ? tokens / *out.run.tokens_s
                   : out.run.tflops   ? flops / *out.run.tflops
                                      : flops / (*out.run.utilisation * out.peak_tflops);
  out.tflops_per_device = flops / out.fitted_s, out.measured_tflops = flops / out.measured_s;
  Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
  out.interval = intervals.interval({.device = machine.device.name,
                                     .software = profile.name,
                                     .models = models_word(spec.experts.has_value()),
                                     .size = size_class(static_cast<double>(parameter_count(graph))),
                                     .dominated = dominated_by(fitted)});
  return out;
}

}  // namespace

bool KnownRunResult::inside() const {
  return measured_s >= interval.low(fitted_s) && measured_s <= interval.high(fitted_s);
}

std::vector<KnownRun> parse_known_runs(std::string_view text, const std::filesystem::path& place,
                                       const std::filesystem::path& configs) {
  return KnownRunsReader(place, configs).read(text);
}

std::vector<KnownRun> read_known_runs(std::string_view begin) {
  std::filesystem::path file = program_folder("data") / "known_runs.toml";
  std::vector<KnownRun> runs = parse_known_runs(read_file(file), file, program_folder("configs") / "published");
  std::erase_if(runs, [&](const KnownRun& run) { return begin != kAllKnownRuns && !run.name.starts_with(begin); });
  if (runs.empty())
    throw UserError({.place = fmt::format("published {}", begin),
                     .got = "no published run has a name that begins so",
                     .expected = fmt::format("one of the tables of {}", file.string())});
  return runs;
}

std::vector<KnownRung> known_rungs(const std::vector<KnownRunResult>& results) {
  std::vector<KnownRung> rungs;
  for (const KnownRunResult& r : results) {
    auto before = std::ranges::find_if(results, [&](const auto& other) { return other.run.name == r.run.after; });
    if (before == results.end()) continue;
    rungs.push_back({.before = &*before,
                     .run = &r,
                     .measured = r.utilisation(r.measured_s) - before->utilisation(before->measured_s),
                     .tables = r.utilisation(r.tables_s) - before->utilisation(before->tables_s),
                     .fitted = r.utilisation(r.fitted_s) - before->utilisation(before->fitted_s)});
  }
  return rungs;
}

LoadedKnownRun load_known_run(const KnownRun& known, const std::vector<SoftwareProfile>& profiles) {
  RunConfig config = load_config(known.config, known.overrides);
  ModelSpec spec = resolve_spec(config);
  SoftwareProfile profile = profile_named(profiles, known.software);
  Machine machine = load_machine(known.machine);
  if (spec.experts) machine = with_experts(std::move(machine));
  machine = with_network_of(profile, std::move(machine));
  return {std::move(config), std::move(spec), std::move(profile), std::move(machine)};
}

std::vector<KnownRunResult> plan_known_runs(std::vector<KnownRun> runs, const IntervalModel& intervals) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  std::vector<KnownRunResult> results(runs.size());
  ThreadTeam team(0);
  std::mutex mutex;
  std::exception_ptr first;  // a task of the team must not throw
  team.parallel_for(static_cast<int64_t>(runs.size()), [&](int64_t i, int) {
    auto at = static_cast<size_t>(i);
    try {
      results[at] = plan_known_run(std::move(runs[at]), profiles, intervals);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
  return results;
}

}  // namespace sextant
