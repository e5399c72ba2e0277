#include "app/find_lr.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/output.h"
#include "app/run_inputs.h"
#include "base/files.h"
#include "base/printable.h"
#include "train/health/heartbeat.h"
#include "train/health/time_limits.h"
#include "train/train.h"
#include "view/chart.h"
#include "watch/text_plot.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// A run of its own, that leaves no checkpoint and reads none.
RunConfig config_of_range_test(RunConfig run, const RateRamp& ramp) {
  run.train.steps = ramp.steps;
  run.train.eval_every = 0;
  run.train.spike.action = SpikeAction::none;
  run.optimizer.schedule = LrSchedule::constant;
  run.optimizer.lr = ramp.high;
  run.optimizer.min_lr = 0;
  run.optimizer.warmup = run.optimizer.decay = 0;
  run.checkpoint.every = 0;
  run.checkpoint.at_end = false;
  run.checkpoint.resume = ResumeChoice::from_text("never");
  return run;
}

std::string points_csv(const std::vector<RatePoint>& points) {
  std::string text = "step,lr,loss,smoothed\n";
  for (const RatePoint& point : points)
    text += fmt::format("{},{:.9g},{:.9g},{:.9g}\n", point.step, point.lr, point.loss, point.smoothed);
  return text;
}

std::string points_svg(const std::vector<RatePoint>& points, const std::optional<SuggestedRates>& suggested) {
  ChartSeries losses{.name = "loss", .points = {}, .joined = false}, smoothed{.name = "smoothed", .points = {}};
  ChartSeries marks{.name = "suggested", .points = {}, .joined = false};
  auto mark = [&](double lr, std::string_view what) {
    auto at = std::ranges::find_if(points, [&](const RatePoint& point) { return point.lr >= lr * (1 - 1e-9); });
    if (at != points.end()) marks.points.push_back({at->lr, at->smoothed, fmt::format("{}: {:.2g}", what, lr)});
  };
  for (const RatePoint& point : points) {
    losses.points.push_back({point.lr, point.loss, fmt::format("step {}: {:.4f}", point.step, point.loss)});
    smoothed.points.push_back({point.lr, point.smoothed, fmt::format("{:.3g}: {:.4f}", point.lr, point.smoothed)});
  }
  if (suggested) {
    mark(suggested->steepest, "steepest descent");
    mark(suggested->tenth_of_lowest, "a tenth of the lowest");
  }
  std::vector<ChartSeries> series{std::move(losses), std::move(smoothed)};
  if (!marks.points.empty()) series.push_back(std::move(marks));
  return chart_svg(series, {.title = "learning-rate range test",
                            .x = "learning rate",
                            .y = "loss, nats per token",
                            .y_scale = ChartScale::linear});
}

std::string terminal_plot(const std::vector<RatePoint>& points) {
  TextCurve curve{.points = {}, .name = "loss"};
  for (const RatePoint& point : points) curve.points.add(std::log10(point.lr), static_cast<float>(point.smoothed));
  return text_plot({curve}, {.title = "loss, smoothed",
                             .x_name = "learning rate (log scale)",
                             .x_text = [](double exponent) { return fmt::format("{:.3g}", std::pow(10, exponent)); },
                             .braille = terminal_has_utf8()});
}

std::string range_test_json(const TrainResult& result, const std::optional<SuggestedRates>& suggested,
                            const fs::path& out) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["steepest"] = suggested ? Json(suggested->steepest) : Json(nullptr);
  json["tenth_of_lowest"] = suggested ? Json(suggested->tenth_of_lowest) : Json(nullptr);
  json["points"] = Json::array();
  for (const RatePoint& point : result.rates)
    json["points"].push_back(
        {{"step", point.step}, {"lr", point.lr}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  json["picture"] = (out / "find-lr.svg").string();
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

void print_range_test(const TrainResult& result, const RateRamp& ramp, const std::optional<SuggestedRates>& suggested,
                      const fs::path& out, Verbosity verbosity) {
  if (verbosity != Verbosity::quiet) {
    if (!result.rates.empty()) fmt::print("\n{}\n", terminal_plot(result.rates));
    bool ended = static_cast<int64_t>(result.rates.size()) < ramp.steps;
    fmt::print("{} of {} steps, learning rates {:.3g} to {:.3g}{}\n", result.rates.size(), ramp.steps, ramp.low,
               result.rates.empty() ? ramp.low : result.rates.back().lr, ended ? ", where the loss diverged" : "");
  }
  if (suggested)
    fmt::print(
        "optimizer.lr={:.2g} is where the loss falls fastest; {:.2g} is a tenth of the rate with the least loss\n",
        suggested->steepest, suggested->tenth_of_lowest);
  else
    fmt::print("no rate made the loss fall: try a wider range, or more steps\n");
  fmt::print("points   {}\npicture  {}\n", printable((out / "find-lr.csv").string()),
             printable((out / "find-lr.svg").string()));
}

}  // namespace

ExitCode find_lr(const TrainArguments& arguments, RunConfig run, Processes& processes) {
  RateRamp ramp = parse_rate_ramp(arguments.rates);
  fs::path out = run_directory(run, arguments.config, arguments.out) / "find-lr";
  run = config_of_range_test(std::move(run), ramp);
  MakeExecutor executors = executors_for(run);
  std::chrono::milliseconds limit = TimeLimits(run).in_other_work();
  processes.bound_end(TimeLimits::end_of(limit), limit);
  Launch launch = processes.launch(TimeLimits::wait_of(limit), heartbeat_status_lookup(out));
  TrainView view{.verbosity = arguments.json ? Verbosity::quiet : arguments.verbosity, .ramp = ramp};
  TrainResult result = train(run, out, executors, launch, view);
  if (!launch.leads()) return result.outcome;
  std::optional<SuggestedRates> suggested = suggested_rates(result.rates);
  write_file_atomically(out / "find-lr.csv", points_csv(result.rates));
  write_file_atomically(out / "find-lr.svg", points_svg(result.rates, suggested));
  if (arguments.json)
    fmt::print("{}\n", range_test_json(result, suggested, out));
  else
    print_range_test(result, ramp, suggested, out, arguments.verbosity);
  return result.outcome;
}

}  // namespace sextant
