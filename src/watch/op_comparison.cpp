#include "watch/op_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/printable.h"
#include "ops/ops.h"
#include "train/op_times.h"
#include "watch/line_tail.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using OpsJson = nlohmann::ordered_json;

constexpr size_t kLastSteps = 5;         // timed ones, of which the median counts as now
constexpr double kClearlySlower = 1.3;   // than other ranks, than before
constexpr double kBeyondPlan = 1.5;      // a plan errs too
constexpr double kWorthATenth = 0.0005;  // of a step: less is not worth a word
constexpr size_t kMostRankFiles = 4096, kMostRunLines = 100'000;
constexpr size_t kMostBytes = size_t{64} << 20;  // of one file
constexpr size_t kMostTimedLines = 4096;         // of all ranks

using OpName = std::tuple<int64_t, std::string, std::string>;  // stage, op, path
using Series = std::map<int64_t, double>;                      // seconds by step

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double time_now(const Series& series) {
  std::vector<double> last;
  for (auto at = series.rbegin(); at != series.rend() && last.size() < kLastSteps; ++at) last.push_back(at->second);
  return middle_of(std::move(last));
}

template <class Take>
void each_line(const fs::path& file, const Take& take) {
  LineTail tail(file);
  size_t lines = 0;
  tail.read(
      kMostBytes, [] {},
      [&](std::string_view line) {
        if (++lines <= kMostRunLines) take(line);
      });
}

// At most `count` lines of a file or a few more, evenly spread over it, and the last ones all.
template <class Take>
void each_spread_line(const fs::path& file, size_t count, const Take& take) {
  size_t lines = 0, at = 0;
  each_line(file, [&](std::string_view) { ++lines; });
  each_line(file, [&](std::string_view line) {
    bool is_chosen = lines <= count || at == 0 || at * count / lines != (at - 1) * count / lines;
    if (is_chosen || at + kLastSteps >= lines) take(line);
    ++at;
  });
}

bool is_text(const OpsJson& json) {
  return json.is_string();
}

// [op, path, count, seconds], with the stage in front of it in a plan.
struct OpRecord {
  OpName name;
  int64_t count = 0;
  double seconds = 0;
};
std::optional<OpRecord> record_in(const OpsJson& row, std::optional<int64_t> stage) {
  size_t at = stage ? 0 : 1;
  if (!row.is_array() || row.size() != at + 4 || !is_text(row[at]) || !is_text(row[at + 1]) ||
      !row[at + 2].is_number_integer() || !row[at + 3].is_number() || (!stage && !row[0].is_number_integer()))
    return std::nullopt;
  return OpRecord{{stage ? *stage : row[0].get<int64_t>(), row[at].get<std::string>(), row[at + 1].get<std::string>()},
                  row[at + 2].get<int64_t>(),
                  row[at + 3].get<double>()};
}

const OpsJson* member(const OpsJson& json, const char* name) {
  auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

struct MeasuredOp {
  int64_t count = 0;
  std::map<int64_t, Series> by_rank;
};

// Collects the lines of plan.json and of the ranks' files of op times.
struct OpLines {
  void take_plan(std::string_view line) {
    if (std::optional<PlannedStep> step = planned_step_in(line)) plan = step;
    OpsJson json = OpsJson::parse(line, nullptr, false);
    if (!json.is_object()) return;
    if (const OpsJson* ops = member(json, "ops"); ops && ops->is_array())
      for (const OpsJson& row : *ops)
        if (std::optional<OpRecord> record = record_in(row, std::nullopt)) planned[record->name] = *record;
  }

  void take_times(std::string_view line) {
    OpsJson json = OpsJson::parse(line, nullptr, false);
    if (!json.is_object()) return;
    const OpsJson *step = member(json, "step"), *rank = member(json, "rank"), *stage = member(json, "stage"),
                  *ops = member(json, "ops");
    for (const OpsJson* number : {step, rank, stage})
      if (!number || !number->is_number_integer()) return;
    if (!ops || !ops->is_array()) return;
    steps.insert(step->get<int64_t>());
    ranks.insert(rank->get<int64_t>());
    for (const OpsJson& row : *ops) {
      std::optional<OpRecord> record = record_in(row, stage->get<int64_t>());
      if (!record) continue;
      MeasuredOp& one = measured[record->name];
      one.count = record->count;
      one.by_rank[rank->get<int64_t>()][step->get<int64_t>()] = record->seconds;
    }
  }

  std::optional<PlannedStep> plan;
  std::map<OpName, OpRecord> planned;
  std::map<OpName, MeasuredOp> measured;
  std::set<int64_t> steps, ranks;
};

// Where a series became slower and stayed so: the split that leaves the least deviation from the medians of both sides.
struct Slowing {
  int64_t step = 0;
  double ratio = 1;
};
std::optional<Slowing> slowing_of(const Series& series) {
  constexpr size_t kSide = 3;  // steps at least
  std::vector<double> values;
  for (const auto& [step, seconds] : series) values.push_back(seconds);
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  auto side = [&](size_t from, size_t to) {
    return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(from),
                               values.begin() + static_cast<std::ptrdiff_t>(to));
  };
  auto deviation = [&](size_t from, size_t to) {
    double middle = middle_of(side(from, to)), sum = 0;
    for (size_t i = from; i < to; ++i) sum += std::fabs(values[i] - middle);
    return sum;
  };
  for (size_t split = kSide; split + kSide <= values.size(); ++split)
    if (double sum = deviation(0, split) + deviation(split, values.size()); sum < least) least = sum, best = split;
  if (best == 0) return std::nullopt;
  std::vector<double> before = side(0, best), after = side(best, values.size());
  double ratio = middle_of(after) / std::max(middle_of(before), 1e-12);
  // More than scatter: none behind the split is much faster than the slowest before it.
  bool apart = std::ranges::min(after) * kClearlySlower >= std::ranges::max(before);
  if (ratio < kClearlySlower || !apart) return std::nullopt;
  return Slowing{std::next(series.begin(), static_cast<std::ptrdiff_t>(best))->first, ratio};
}

bool is_message_op(const std::string& name) {
  return std::ranges::any_of(all_ops(), [&](const OpDef* def) { return def->name == name && def->message; });
}

ComparedOp compared(const OpName& name, const MeasuredOp& measured, const OpRecord* planned) {
  ComparedOp out{.stage = std::get<0>(name),
                 .op = std::get<1>(name),
                 .path = std::get<2>(name),
                 .count = measured.count,
                 .is_message = is_message_op(std::get<1>(name))};
  if (planned) out.predicted_s = planned->seconds;
  std::vector<double> now;
  int64_t slowest = 0;
  double slowest_s = -1;
  for (const auto& [rank, series] : measured.by_rank) {
    now.push_back(time_now(series));
    if (now.back() > slowest_s) slowest_s = now.back(), slowest = rank;
  }
  out.measured_s = middle_of(now);
  std::vector<double> others = now;
  others.erase(std::ranges::find(others, slowest_s));
  bool alone = !others.empty() && slowest_s > kClearlySlower * middle_of(others);
  // In a message the others are slow because they wait for the one that is.
  if (alone && !out.is_message) out.rank = slowest, out.rank_s = slowest_s;
  std::optional<Slowing> slowing = slowing_of(measured.by_rank.at(slowest));
  if (slowing) out.since_step = slowing->step;
  if (planned && planned->seconds > 0)
    out.slowdown = slowest_s / planned->seconds;
  else if (slowing)
    out.slowdown = slowing->ratio;
  return out;
}

double beyond_plan(const ComparedOp& op) {
  return op.rank_s.value_or(op.measured_s.value_or(0)) - op.predicted_s.value_or(0);
}

// In portions, of which none takes long: a file, then an op.
class OpComparing {
 public:
  explicit OpComparing(const fs::path& run) {
    each_line(run / kPlanFile, [&](std::string_view line) { lines_.take_plan(line); });
    fs::path folder = run / kOpTimesFolder;
    std::error_code error;
    // A link may lead out of the run.
    if (fs::symlink_status(folder, error).type() != fs::file_type::directory) return;
    for (fs::directory_iterator at(folder, error), end; !error && at != end && files_.size() < kMostRankFiles;
         at.increment(error))
      if (at->path().extension() == ".jsonl") files_.push_back(at->path());
  }
  explicit OpComparing(OpLines lines) : lines_(std::move(lines)) {}

  // False where nothing was left to do.
  bool advance() {
    if (next_file_ < files_.size()) {
      size_t of_each = std::clamp<size_t>(kMostTimedLines / files_.size(), kLastSteps, kMostLinesOfRank);
      each_spread_line(files_[next_file_++], of_each, [&](std::string_view line) { lines_.take_times(line); });
      return true;
    }
    if (lines_.measured.empty()) return false;
    auto first = lines_.measured.extract(lines_.measured.begin());
    auto planned = lines_.planned.find(first.key());
    ops_.push_back(compared(first.key(), first.mapped(), planned == lines_.planned.end() ? nullptr : &planned->second));
    return true;
  }

  // Once nothing is left to do.
  OpComparison result() {
    std::ranges::stable_sort(ops_, std::ranges::greater{}, beyond_plan);
    return {.plan = lines_.plan,
            .steps = {lines_.steps.begin(), lines_.steps.end()},
            .ranks = std::ssize(lines_.ranks),
            .ops = std::move(ops_)};
  }

 private:
  static constexpr size_t kMostLinesOfRank = 128;
  OpLines lines_;
  std::vector<fs::path> files_;
  size_t next_file_ = 0;
  std::vector<ComparedOp> ops_;
};

OpsJson or_null(const auto& value) {
  return value ? OpsJson(*value) : OpsJson(nullptr);
}

}  // namespace

std::optional<PlannedStep> planned_step_in(std::string_view line) {
  OpsJson json = OpsJson::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const OpsJson *machine = member(json, "machine"), *step = member(json, "step");
  const OpsJson* seconds = step && step->is_object() ? member(*step, "seconds") : nullptr;
  if (!seconds || !seconds->is_number() || !(seconds->get<double>() > 0)) return std::nullopt;
  return PlannedStep{machine && machine->is_string() ? machine->get<std::string>() : "", seconds->get<double>()};
}

OpComparison compare_ops(const fs::path& run) {
  OpComparing comparing(run);
  while (comparing.advance()) continue;
  return comparing.result();
}

BodyPieces op_comparison_pieces(const fs::path& run) {
  return [comparing = OpComparing(run)](std::string& out) mutable {
    if (comparing.advance()) return true;
    out += op_comparison_json(comparing.result());
    return false;
  };
}

OpComparison compare_op_lines(std::string_view plan, const std::vector<std::string>& times) {
  OpLines lines;
  lines.take_plan(plan);
  for (const std::string& line : times) lines.take_times(line);
  OpComparing comparing(std::move(lines));
  while (comparing.advance()) continue;
  return comparing.result();
}

std::string op_comparison_json(const OpComparison& comparison) {
  OpsJson ops = OpsJson::array();
  for (const ComparedOp& op : comparison.ops)
    ops.push_back({{"stage", op.stage},
                   {"op", op.op},
                   {"path", op.path},
                   {"count", op.count},
                   {"predicted_s", or_null(op.predicted_s)},
                   {"measured_s", or_null(op.measured_s)},
                   {"slowdown", or_null(op.slowdown)},
                   {"rank", or_null(op.rank)},
                   {"rank_s", or_null(op.rank_s)},
                   {"since_step", or_null(op.since_step)},
                   {"is_message", op.is_message}});
  OpsJson plan = comparison.plan ? OpsJson{{"machine", comparison.plan->machine}, {"step_s", comparison.plan->seconds}}
                                 : OpsJson(nullptr);
  return OpsJson{{"plan", plan}, {"steps", comparison.steps}, {"ranks", comparison.ranks}, {"ops", ops}}.dump(
      -1, ' ', false, OpsJson::error_handler_t::replace);
}

std::string op_comparison_text(const OpComparison& comparison, size_t most) {
  if (comparison.ops.empty()) return "";
  std::string out;
  size_t width = 4;
  double all = 0;
  for (size_t i = 0; i < comparison.ops.size(); ++i) {
    if (i < most) width = std::max(width, comparison.ops[i].op.size() + comparison.ops[i].path.size() + 1);
    all += comparison.ops[i].measured_s.value_or(0);
  }
  auto milliseconds = [](const std::optional<double>& s) { return s ? fmt::format("{:.3f}", 1e3 * *s) : "-"; };
  fmt::format_to(std::back_inserter(out), "{:<{}}  {:>12}  {:>12}  {:>8}\n", "op", width, "predicted ms", "measured ms",
                 "ratio");
  for (size_t i = 0; i < std::min(most, comparison.ops.size()); ++i) {
    const ComparedOp& op = comparison.ops[i];
    fmt::format_to(std::back_inserter(out), "{:<{}}  {:>12}  {:>12}  {:>8}\n", printable(op.op + " " + op.path), width,
                   milliseconds(op.predicted_s), milliseconds(op.measured_s),
                   op.slowdown ? fmt::format("{:.2f}", *op.slowdown) : "-");
  }
  for (const ComparedOp& op : comparison.ops) {
    double seconds = op.rank_s.value_or(op.measured_s.value_or(0));
    bool slow = op.since_step || op.rank || (op.slowdown && *op.slowdown > kBeyondPlan);
    if (!slow || !op.slowdown || *op.slowdown < kClearlySlower || seconds < kWorthATenth * all) continue;
    fmt::format_to(std::back_inserter(out), "{} {} takes {:.1f} times {}{}{}\n", printable(op.op), printable(op.path),
                   *op.slowdown, op.predicted_s ? "what is predicted" : "what it took before",
                   op.rank         ? fmt::format(" on rank {}", *op.rank)
                   : op.is_message ? ", waiting for other ranks included"
                                   : "",
                   op.since_step ? fmt::format(", since step {}", *op.since_step) : "");
  }
  return out;
}

}  // namespace sextant
