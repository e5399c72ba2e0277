#include "train/train.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/common_options.h"
#include "app/device.h"
#include "app/find_lr.h"
#include "app/output.h"
#include "app/processes.h"
#include "app/run_inputs.h"
#include "app/run_prediction.h"
#include "app/time_budget.h"
#include "app/train_arguments.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/verbosity.h"
#include "comm/transport.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "train/health/heartbeat.h"
#include "train/health/time_limits.h"
#include "train/world.h"
#include "view/chrome_trace.h"
#include "view/op_table.h"
#include "watch/op_comparison.h"
#include "watch/run_companion.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// The table on the screen, the trace beside the run's other files.
void report_profile(const Trace& trace, Executor& executor, const fs::path& file) {
  DeviceRates rates = executor.measure_rates().value_or(DeviceRates{});
  fmt::print("\nops of this step, launched one by one{}\n{}\n",
             rates.flops_per_s > 0
                 ? fmt::format("; the device reaches {:.0f} TFLOP/s in a large GEMM and {:.2f} TB/s in a copy",
                               rates.flops_per_s / 1e12, rates.bytes_per_s / 1e12)
                 : "",
             op_table(trace, {rates.flops_per_s, rates.bytes_per_s}));
  write_file_atomically(file, chrome_trace(trace));
  if (std::string compared = op_comparison_text(compare_ops(file.parent_path())); !compared.empty())
    fmt::print("{}\n", compared);
  fmt::print("trace    {} (open it in ui.perfetto.dev or chrome://tracing)\n", file.string());
}

std::string validation_line(const TrainResult& result) {
  double loss = *result.validation_loss;
  std::string line = fmt::format("validation loss {:.4f} nats per token, perplexity {:.4g}", loss, std::exp(loss));
  if (result.bits_per_byte) line += fmt::format(", {:.4f} bits per byte", *result.bits_per_byte);
  if (result.unigram_entropy)
    line += fmt::format(", {:.1f} % of the unigram entropy ({:.4f})", 100 * loss / *result.unigram_entropy,
                        *result.unigram_entropy);
  return line;
}

std::string_view name_of_outcome(ExitCode outcome) {
  for (const ExitMeaning& meaning : exit_meanings())
    if (meaning.code == outcome) return meaning.name;
  BUG("no meaning for exit code {}", number_of(outcome));
}

std::string result_json(const TrainResult& result, const fs::path& out) {
  using Json = nlohmann::ordered_json;
  Json json{{"outcome", name_of_outcome(result.outcome)}, {"step", result.step}};
  // JSON has no nan.
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  json["loss"] = number(result.loss);
  json["validation_loss"] = result.validation_loss ? number(*result.validation_loss) : Json(nullptr);
  json["perplexity"] = result.validation_loss ? number(std::exp(*result.validation_loss)) : Json(nullptr);
  json["bits_per_byte"] = result.bits_per_byte ? number(*result.bits_per_byte) : Json(nullptr);
  json["unigram_entropy"] = result.unigram_entropy ? number(*result.unigram_entropy) : Json(nullptr);
  json["checkpoint"] = result.checkpoint.empty() ? Json(nullptr) : Json(result.checkpoint.string());
  json["metrics"] = (out / "metrics.jsonl").string();
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

void add_train_options(CLI::App& verb, TrainArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_option("--out", a.out, "directory for checkpoints and metrics [runs/NAME]");
  verb.add_option("--ranks", a.ranks, "refuse to start unless the mesh has this many ranks")
      ->check(CLI::Range(int64_t{1}, kMaxRanks));
  verb.add_option("--profile", a.profile, "time this step op by op: a table, and a trace for Perfetto")
      ->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb.add_option("--until", a.until, "save and stop behind this step; the same command without it goes on")
      ->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb.add_option("--minutes", a.minutes,
                  "train for about so long: some steps are timed first, train.steps is set by them, and the learning "
                  "rate's schedule fitted to it; a resumed run keeps its steps")
      ->check(CLI::Range(0.01, 1e7));
  verb.add_option("--inject", a.inject, "a fault on purpose, KIND@STEP[:RANK], such as kill@30:1 (may be repeated)")
      ->allow_extra_args(false);
  CLI::Option* find_lr =
      verb.add_option(
              "--find-lr", a.rates,
              "instead of training, raise the learning rate from LOW to HIGH and see which trains: LOW:HIGH[:STEPS] "
              "[1e-6:1:100]; results in OUT/find-lr")
          ->expected(0, 1);
  verb.add_option("--supervised-by", a.supervised_by)->group("");  // what `run` starts; for nobody to write
  for (const char* other : {"--profile", "--until", "--minutes", "--inject"}) find_lr->excludes(verb.get_option(other));
  CLI::Option* quiet = add_quiet(verb, a.verbosity, "print the result alone: validation loss, model, metrics");
  CLI::Option* verbose = add_verbose(verb, a.verbosity, "a line for every step, whatever train.log_every says");
  CLI::Option* json = verb.add_flag("--json", a.json, "print the result alone, as JSON");
  verbose->excludes(quiet)->excludes(json);
}

void require_step(const char* option, int64_t step, const RunConfig& run) {
  if (step <= run.train.steps) return;
  throw UserError({.place = option,
                   .got = fmt::format("step {}", step),
                   .expected = fmt::format("one of the run's steps, 1 to {}", run.train.steps)});
}

RunConfig config_of(const TrainArguments& a, Verbosity verbosity) {
  RunConfig run = load_config(a.config, a.overrides);
  if (a.minutes > 0) fit_to_minutes(run, a.minutes, run_directory(run, a.config, a.out), verbosity);
  require_step("--profile", a.profile, run);
  require_step("--until", a.until, run);
  if (a.ranks != 0) require_world(run, a.ranks, "--ranks");
  if (!run.log.prometheus.empty()) parse_served_address(run.log.prometheus, run.place_of("log.prometheus"));
  return run;
}

// TensorBoard files and served values of the run, where its config asks for them.
std::unique_ptr<RunCompanion> start_companion(const RunConfig& run, const fs::path& out, Verbosity verbosity) {
  if (!run.log.tensorboard && run.log.prometheus.empty()) return nullptr;
  auto warn = [](const std::string& line) { fmt::print(stderr, "{}\n", printable(line)); };
  std::unique_ptr<RunCompanion> companion;
  try {
    companion = std::make_unique<RunCompanion>(
        out, RunCompanion::Wishes{.tensorboard = run.log.tensorboard, .prometheus = run.log.prometheus}, warn);
  } catch (const RunError& error) {  // a port that is taken is no reason not to train
    warn(fmt::format("the run goes on without log.tensorboard and log.prometheus: {}", error.what()));
    return nullptr;
  }
  if (companion->port() > 0 && verbosity != Verbosity::quiet)
    fmt::print("values   port {}, /metrics\n", companion->port());
  return companion;
}

void print_result(const TrainArguments& a, const TrainResult& result, const fs::path& out) {
  if (a.json) return fmt::print("{}\n", result_json(result, out));
  if (result.validation_loss) fmt::print("{}\n", validation_line(result));
  if (!result.checkpoint.empty()) fmt::print("model    {}\n", printable(result.checkpoint.string()));
  fmt::print("metrics  {}\n", printable((out / "metrics.jsonl").string()));
}

ExitCode run_train(const TrainArguments& a, VerbContext& context) {
  outlive_standard_output();
  context.processes.join();
  Verbosity verbosity = a.json ? Verbosity::quiet : a.verbosity;
  RunConfig run = config_of(a, verbosity);
  if (context.is_given("--find-lr")) return find_lr(a, run, context.processes);
  std::vector<Fault> faults = faults_of(a.inject, run);
  fs::path out = run_directory(run, a.config, a.out);
  MakeExecutor executors = executors_for(run);
  std::chrono::milliseconds limit = TimeLimits(run).in_other_work();
  context.processes.bound_end(TimeLimits::end_of(limit), limit);
  Launch launch = context.processes.launch(TimeLimits::wait_of(limit), heartbeat_status_lookup(out));
  bool profiled = false;
  Profile profile{a.profile, [&](const Trace& trace, Executor& executor) {
                    profiled = true;
                    report_profile(trace, executor, out / fmt::format("profile-step-{}.json", a.profile));
                  }};
  std::unique_ptr<RunCompanion> companion;
  auto begin = [&](Beginning beginning) {
    std::optional<double> peak_flops_per_s = predict_run(run, out, beginning, verbosity);
    companion = start_companion(run, out, verbosity);
    return peak_flops_per_s;
  };
  TrainResult result = train(
      run, out, executors, launch,
      {.profile = profile, .until = a.until, .supervisor = a.supervised_by, .verbosity = verbosity, .on_begin = begin},
      faults);
  companion.reset();
  if (!launch.leads()) return result.outcome;
  if (a.profile > 0 && !profiled)
    fmt::print(stderr,
               "--profile: step {} was not run this time; choose one after the checkpoint that the run resumes from\n",
               a.profile);
  print_result(a, result, out);
  return result.outcome;
}

constexpr ValueFormat kTrainValues[] = {
    {"STEP", "", "--profile --until"},
    {"LOW:HIGH[:STEPS]", "two learning rates, LOW:HIGH[:STEPS], such as 1e-6:1:100", "--find-lr"},
};

}  // namespace

const VerbDef train_verb{
    .words = "train",
    .summary = "Train a model; run again to resume",
    .details = "Ranks are threads of one process, or under mpirun and srun one process each",
    .examples =
        "sextant train configs/tiny-llama.toml train.steps=20 --out runs/longer\n"
        "sextant train configs/tiny-llama.toml mesh.dp=2 --out runs/two-ranks\n"
        "sextant train configs/tiny-llama.toml --out runs/rates --find-lr=1e-5:1:40\n"
        "mpirun -n 2 sextant train configs/tiny-llama.toml mesh.dp=2 --out runs/two-processes",
    .values = kTrainValues,
    .declare = declare_verb<add_train_options, run_train>,
};

}  // namespace sextant
