#include "watch/live_tensorboard.h"

#include <fmt/format.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <iterator>
#include <vector>

#include "base/run_file.h"
#include "config/stored_config.h"
#include "events/run_event.h"
#include "watch/tensorboard.h"
#include "watch/tensorboard_summary.h"
#include "watch/watched_run.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBudget = size_t{4} << 20;  // bytes at a time

fs::path tensorboard_folder(const fs::path& run) {
  return run / "tensorboard";
}

std::vector<std::pair<std::string, std::string>> values_of_config(const fs::path& run) {
  std::vector<std::pair<std::string, std::string>> values;
  fs::path file = run / "config.toml";
  std::error_code none;
  if (!fs::exists(file, none)) return values;
  for (const auto& [key, value] : stored_config(file)) values.emplace_back(key, value);
  return values;
}

}  // namespace

LiveTensorboard::LiveTensorboard(const fs::path& run)
    : run_(run), metrics_(run / kMetricsFile), events_(run / kEventsFile) {
  if (!make_run_folder(tensorboard_folder(run_)))
    throw_disk_error(tensorboard_folder(run_), "cannot make this folder", errno);
  begin();
}

void LiveTensorboard::begin() {
  fs::path folder = tensorboard_folder(run_);
  for (const fs::directory_entry& old : fs::directory_iterator(folder))
    if (old.path().extension() == ".sextant") fs::remove(old.path());
  std::vector<RunEvent> events = read_events(run_);
  start_ = static_cast<double>(std::time(nullptr));
  if (!events.empty()) start_ = seconds_of_event_time(events.front().time).value_or(start_);
  spent_ = 0;
  last_step_ = 0;
  events_ = LineTail(run_ / kEventsFile);  // all of them again
  // Another name each time: TensorBoard remembers how far it has read a file.
  fs::path path =
      folder / fmt::format("events.out.tfevents.{}.{}.sextant", static_cast<int64_t>(std::time(nullptr)), ++files_);
  file_ = Descriptor(open_run_file(path, O_WRONLY | O_TRUNC));
  if (!file_.is_open()) throw_disk_error(path, "cannot create", errno);
  pending_.clear();
  write(tensorboard_version(start_));
  std::vector<std::pair<std::string, std::string>> values = values_of_config(run_);
  if (values.empty()) return;
  std::string table = "| key | value |\n|---|---|\n";
  for (const auto& [key, value] : values) table += fmt::format("| `{}` | `{}` |\n", key, value);
  write(tensorboard_event_of(start_, 0, text_summary("config", table) + hparams_summary(values, start_)));
}

void LiveTensorboard::write(const std::string& event) {
  pending_ += tensorboard_record(event);
}

void LiveTensorboard::flush() {
  if (!write_all(file_.get(), pending_)) throw_disk_error(tensorboard_folder(run_), "cannot write", errno);
  pending_.clear();
}

void LiveTensorboard::add_step(std::string_view text) {
  if (!line_.parse(text)) return;
  const double *step = line_.number("step"), *seconds = line_.number("step_s");
  if (!step || !(*step >= 0 && *step < 9e15)) return;
  if (seconds && *seconds > 0 && std::isfinite(spent_ + *seconds)) spent_ += *seconds;
  last_step_ = static_cast<int64_t>(*step);
  std::vector<TensorboardScalar> scalars;
  for (const MetricsLine::Number& number : line_.numbers())
    if (number.name != "step" && std::isfinite(number.value))
      scalars.push_back({number.name, static_cast<float>(number.value)});
  write(tensorboard_event(start_ + spent_, last_step_, scalars));
  std::string histograms;
  for (const MetricsLine::List& list : line_.lists()) {
    std::vector<double> values;
    std::ranges::copy_if(std::span(line_.list_values()).subspan(list.first, list.count), std::back_inserter(values),
                         [](double value) { return std::isfinite(value); });
    histograms += histogram_summary(list.name, values);
  }
  if (!histograms.empty()) write(tensorboard_event_of(start_ + spent_, last_step_, histograms));
}

void LiveTensorboard::add_event(std::string_view line) {
  std::optional<RunEvent> event = parse_event(line);
  if (!event) return;
  double at = seconds_of_event_time(event->time).value_or(start_);
  write(tensorboard_event_of(at, event->step.value_or(last_step_),
                             text_summary(fmt::format("events/{}", name_of(event->kind)), event->text)));
}

bool LiveTensorboard::follow() {
  bool any = false;
  do {
    flush();
    auto metrics = metrics_.read(
        kBudget, [this] { begin(); }, [this](std::string_view line) { add_step(line); });
    auto events = events_.read(
        kBudget, [] {}, [this](std::string_view line) { add_event(line); });
    any = any || metrics != LineTail::Change::none || events != LineTail::Change::none;
  } while (metrics_.has_more() || events_.has_more());
  flush();
  return any;
}

}  // namespace sextant
