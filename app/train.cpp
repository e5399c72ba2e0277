#include "train/train.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/find_lr.h"
#include "app/output.h"
#include "app/processes.h"
#include "app/run_inputs.h"
#include "app/run_prediction.h"
#include "app/time_budget.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/files.h"
#include "base/printable.h"
#include "config/load.h"
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

}  // namespace

fs::path run_directory(const RunConfig& run, const std::string& config, const std::string& given) {
  if (!given.empty()) return given;
  return fs::path("runs") / (run.name.empty() ? fs::path(config).stem().string() : run.name);
}

std::vector<Fault> faults_of(const std::vector<std::string>& texts, const RunConfig& run) {
  std::vector<Fault> faults;
  for (const std::string& text : texts) {
    faults.push_back(parse_fault(text, "--inject"));
    if (faults.back().step > run.train.steps)
      throw UserError({.place = "--inject " + text,
                       .got = fmt::format("step {} of a run with {}", faults.back().step, run.train.steps),
                       .expected = fmt::format("a step from 1 to {}", run.train.steps)});
  }
  return faults;
}

ExitCode train_verb(const TrainArguments& arguments, Processes& processes) {
  outlive_standard_output();
  processes.join();
  RunConfig run = load_config(arguments.config, arguments.overrides);
  Verbosity verbosity = arguments.json ? Verbosity::quiet : arguments.verbosity;
  if (arguments.minutes > 0)
    fit_to_minutes(run, arguments.minutes, run_directory(run, arguments.config, arguments.out), verbosity);
  if (arguments.profile < 0 || arguments.profile > run.train.steps)
    throw UserError({.place = "--profile",
                     .got = fmt::format("step {}", arguments.profile),
                     .expected = fmt::format("one of the run's steps, 1 to {}", run.train.steps)});
  if (arguments.until > run.train.steps)
    throw UserError({.place = "--until",
                     .got = fmt::format("step {}", arguments.until),
                     .expected = fmt::format("one of the run's steps, 1 to {}", run.train.steps)});
  if (arguments.ranks != 0) require_world(run, arguments.ranks, "--ranks");
  if (arguments.finds_lr) return find_lr(arguments, run, processes);
  std::vector<Fault> faults = faults_of(arguments.inject, run);
  fs::path out = run_directory(run, arguments.config, arguments.out);
  MakeExecutor executors = executors_for(run);
  std::chrono::milliseconds limit = TimeLimits(run).in_other_work();
  processes.bound_end(TimeLimits::end_of(limit), limit);
  Launch launch = processes.launch(TimeLimits::wait_of(limit), heartbeat_status_lookup(out));
  bool profiled = false;
  Profile profile{arguments.profile, [&](const Trace& trace, Executor& executor) {
                    profiled = true;
                    report_profile(trace, executor, out / fmt::format("profile-step-{}.json", arguments.profile));
                  }};
  std::unique_ptr<RunCompanion> companion;
  auto start_companion = [&] {
    if (!run.log.tensorboard && run.log.prometheus.empty()) return;
    auto warn = [](const std::string& line) { fmt::print(stderr, "{}\n", printable(line)); };
    try {
      companion = std::make_unique<RunCompanion>(
          out, RunCompanion::Wishes{.tensorboard = run.log.tensorboard, .prometheus = run.log.prometheus}, warn);
    } catch (const RunError& error) {  // a port that is taken is no reason not to train
      return warn(fmt::format("the run goes on without log.tensorboard and log.prometheus: {}", error.what()));
    }
    if (companion->port() > 0 && verbosity != Verbosity::quiet)
      fmt::print("values   port {}, /metrics\n", companion->port());
  };
  auto begin = [&](Beginning beginning) {
    std::optional<double> peak_flops_per_s = predict_run(run, out, beginning, verbosity);
    start_companion();
    return peak_flops_per_s;
  };
  if (!run.log.prometheus.empty()) parse_served_address(run.log.prometheus, run.place_of("log.prometheus"));
  TrainResult result = train(run, out, executors, launch,
                             {.profile = profile,
                              .until = arguments.until,
                              .supervisor = arguments.supervised_by,
                              .verbosity = verbosity,
                              .on_begin = begin},
                             faults);
  companion.reset();
  if (!launch.leads()) return result.outcome;
  if (arguments.profile > 0 && !profiled)
    fmt::print(stderr,
               "--profile: step {} was not run this time; choose one after the checkpoint that the run resumes from\n",
               arguments.profile);
  if (arguments.json) {
    fmt::print("{}\n", result_json(result, out));
    return result.outcome;
  }
  if (result.validation_loss) fmt::print("{}\n", validation_line(result));
  if (!result.checkpoint.empty()) fmt::print("model    {}\n", printable(result.checkpoint.string()));
  fmt::print("metrics  {}\n", printable((out / "metrics.jsonl").string()));
  return result.outcome;
}

}  // namespace sextant
