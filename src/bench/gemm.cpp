#include "bench/gemm.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "bench/grouped_gemm.h"
#include "bench/tries.h"

namespace sextant {

namespace {

double operand_bytes(const std::string& type) {
  return type == "fp8" ? 1 : type == "bf16" || type == "fp16" ? 2 : 4;
}

double bytes_of_gemm(const GemmDims& s, const std::string& type) {
  auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  double in = operand_bytes(type), out = std::max(in, 2.0);
  return in * (m * k + n * k) + out * m * n;
}

double share_of_peak(const GemmRequest& request, const BenchResult& result) {
  auto peak = request.peaks.find(result.dtype);
  return peak != request.peaks.end() && peak->second > 0 ? result.flops_per_s() / peak->second : 0;
}

BenchResult time_gemm(const GemmRequest& request, const GemmDims& shape, const std::string& type, const Watch& watch) {
  BenchResult result{.kind = "gemm",
                     .name = "product",
                     .shape = shape_text(shape),
                     .dtype = type,
                     .size = {static_cast<double>(shape.m), static_cast<double>(shape.n), static_cast<double>(shape.k)},
                     .samples = {},
                     .flops = shape.flops(),
                     .bytes = bytes_of_gemm(shape, type)};
  std::unique_ptr<TimedWork> work = request.probe.gemm(shape, type);
  result.samples = repeated_together([&](int n) { return work->run_many(n); }, request.repeat, watch);
  if (!result.samples.empty()) result.error = work->error();
  result.peak_share = share_of_peak(request, result);
  return result;
}

int64_t parse_size(std::string_view text, std::string_view whole, std::string_view option) {
  constexpr int64_t kMost = int64_t{1} << 24;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMost)
    throw UserError({.place = std::string(option),
                     .got = fmt::format("'{}' in '{}'", text, whole),
                     .expected = "a whole number from 1 to 16777216"});
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string shape_text(const GemmDims& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

GemmDims parse_shape(std::string_view text, std::string_view option) {
  std::vector<std::string_view> sizes = split(text, 'x');
  if (sizes.size() != 3)
    throw UserError({.place = std::string(option),
                     .got = fmt::format("'{}'", text),
                     .expected = "rows, columns and depth, such as 4096x4096x1024"});
  return {parse_size(sizes[0], text, option), parse_size(sizes[1], text, option), parse_size(sizes[2], text, option)};
}

std::vector<int64_t> parse_range(std::string_view text, std::string_view option) {
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() == 1) return {parse_size(parts[0], text, option)};
  if (parts.size() != 3)
    throw UserError(
        {.place = std::string(option), .got = fmt::format("'{}'", text), .expected = "a number, or START:STOP:STEP"});
  int64_t start = parse_size(parts[0], text, option), stop = parse_size(parts[1], text, option),
          step = parse_size(parts[2], text, option);
  if ((stop - start) / step >= 100'000)
    throw UserError({.place = std::string(option), .got = fmt::format("'{}' has more than 100,000 values", text)});
  std::vector<int64_t> values;
  for (int64_t value = start; value <= stop; value += step) values.push_back(value);
  if (values.empty())
    throw UserError(
        {.place = std::string(option), .got = fmt::format("'{}' is empty", text), .expected = "START at most STOP"});
  return values;
}

std::vector<GemmDims> gemms_of(const LoweredRun& run) {
  std::set<GemmDims> shapes;
  for (const Program& program : run.programs.train)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) {
        if (is_grouped_gemm(op)) continue;
        for (const Gemm& p : local_cost(program, op).gemms)
          shapes.insert({static_cast<int64_t>(p.rows), static_cast<int64_t>(p.columns), static_cast<int64_t>(p.depth)});
      }
  return {shapes.begin(), shapes.end()};
}

void bench_gemm(const GemmRequest& request, BenchReport& report, const Watch& watch) {
  size_t done = 0, all = request.shapes.size() * request.types.size();
  Tries tries(report);
  for (const std::string& type : request.types)
    for (const GemmDims& shape : request.shapes) {
      if (watch.stop()) return;
      std::string what = fmt::format("gemm {} {}", shape_text(shape), type);
      watch.say(fmt::format("{} ({} of {})", what, ++done, all));
      tries.run(what, [&] {
        BenchResult result = time_gemm(request, shape, type, watch);
        if (!result.samples.empty()) report.results.push_back(std::move(result));
      });
    }
  tries.finish();
}

Repeat search_repeat(double seconds, double call_s) {
  constexpr int kLeast = 3, kFew = 10, kMost = 2000;
  int calls = call_s > 0 ? static_cast<int>(std::min<double>(kMost, std::ceil(seconds / call_s))) : kFew;
  return {.least = kLeast, .most = std::max(kLeast, calls), .seconds = seconds, .warm_seconds = seconds / 4};
}

namespace {

// Results of the search over shapes of one type: of each shape, the result of its longest measurement.
class SeenGemms {
 public:
  SeenGemms(const GemmRequest& request, const std::string& type, BenchReport& report, const Watch& watch)
      : request_(request), type_(type), watch_(watch), tries_(report) {}

  double time(const GemmDims& shape, double seconds) {
    watch_.say(fmt::format("mamf {}: {} for {:.0f} ms, {} so far (best {:.1f} TFLOP/s)", type_, shape_text(shape),
                           seconds * 1e3, ++looks_, most_ / 1e12));
    if (seconds > kGlanceSeconds) std::this_thread::sleep_for(request_.rest);
    Seen& seen = seen_[shape];
    request_.repeat = search_repeat(seconds, seen.result.seconds().median);
    BenchResult now;
    tries_.run(shape_text(shape), [&] { now = time_gemm(request_, shape, type_, watch_); });
    if (now.samples.empty()) return 0;  // stopped, or beyond the device
    double rate = now.flops_per_s();
    most_ = std::max(most_, rate);
    if (seconds > seen.seconds) {
      seen = {seconds, std::move(now)};
    } else {
      seen.result.samples.insert(seen.result.samples.end(), now.samples.begin(), now.samples.end());
      seen.result.error = std::max(seen.result.error, now.error);
    }
    return rate;
  }

  BenchResult result(const GemmDims& shape) const {
    BenchResult result = seen_.at(shape).result;
    result.name = "most achievable";
    result.peak_share = share_of_peak(request_, result);
    return result;
  }

 private:
  struct Seen {
    double seconds = 0;
    BenchResult result = {};
  };
  GemmRequest request_;
  const std::string& type_;
  const Watch& watch_;
  Tries tries_;
  std::map<GemmDims, Seen> seen_;
  double most_ = 0;
  int looks_ = 0;
};

}  // namespace

void bench_mamf(const GemmRequest& request, const ShapeSpace& space, BenchReport& report, const Watch& watch) {
  for (const std::string& type : request.types) {
    if (watch.stop()) return;
    watch.say(fmt::format("mamf {}: warming up", type));
    // Clocks settle once, under load, and not before every shape.
    int64_t side = std::max(space.step, space.most / 2 / space.step * space.step);
    std::unique_ptr<TimedWork> heat = request.probe.gemm({side, side, side}, type);
    warm_up([&] { return heat->run(); }, {.warm_seconds = 2}, watch);
    heat.reset();
    SeenGemms seen(request, type, report, watch);
    BestShape best = best_shape(
        space, [&](const GemmDims& shape, double seconds) { return seen.time(shape, seconds); }, watch.stop);
    if (best.asked == 0) return;
    BenchResult result = seen.result(best.shape);
    report.findings.push_back(fmt::format("{}: {:.2f} TFLOP/s at {}, the best of {} shapes tried", type,
                                          result.flops_per_s() / 1e12, shape_text(best.shape), best.asked));
    report.results.push_back(std::move(result));
  }
}

}  // namespace sextant
