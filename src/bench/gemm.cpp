#include "bench/gemm.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/error.h"

namespace sextant {

namespace {

double operand_bytes(const std::string& type) {
  return type == "fp8" ? 1 : type == "bf16" || type == "fp16" ? 2 : 4;
}

double bytes_of_product(const ProductShape& s, const std::string& type) {
  auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  double in = operand_bytes(type), out = std::max(in, 2.0);
  return in * (m * k + n * k) + out * m * n;
}

BenchResult time_product(const GemmRequest& request, const ProductShape& shape, const std::string& type,
                         const Watch& watch) {
  BenchResult result{.kind = "gemm",
                     .name = "product",
                     .shape = shape_text(shape),
                     .dtype = type,
                     .size = {static_cast<double>(shape.m), static_cast<double>(shape.n), static_cast<double>(shape.k)},
                     .samples = {},
                     .flops = shape.flops(),
                     .bytes = bytes_of_product(shape, type)};
  std::unique_ptr<TimedWork> work = request.probe.product(shape, type);
  result.samples = repeated_together([&](int n) { return work->run_many(n); }, request.repeat, watch);
  if (!result.samples.empty()) result.error = work->error();
  auto peak = request.peaks.find(type);
  if (peak != request.peaks.end() && peak->second > 0) result.peak_share = result.flops_per_s() / peak->second;
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

// Asks about each shape once, and remembers.
class Climber {
 public:
  Climber(const ShapeSpace& space, const std::function<double(const ProductShape&)>& rate, const StopAsked& stop)
      : space_(space), rate_(rate), stop_(stop) {}

  // A sweep would ask about all; this asks about a sixteenth, or the coarse grid where that is more.
  bool done() const {
    int64_t along = space_.most / space_.step;
    return stop_() || static_cast<int64_t>(known_.size()) >= along * along * along / 16;
  }
  double ask(const ProductShape& shape) {
    auto known = known_.find(shape);
    if (known != known_.end() || stop_()) return known != known_.end() ? known->second : 0;
    return known_[shape] = rate_(shape);
  }
  // To the best along one size after the other, as long as that leads on: waves of tiles make ridges that single steps
  // fall off.
  void climb(ProductShape at) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t ProductShape::*size : {&ProductShape::m, &ProductShape::n, &ProductShape::k}) {
        ProductShape best = at, next = at;
        for (int64_t value = space_.step; value <= space_.most && !done(); value += space_.step) {
          next.*size = value;
          if (ask(next) > ask(best)) best = next;
        }
        moved = moved || best != at;
        at = best;
      }
      if (done()) return;
    }
  }
  std::vector<std::pair<double, ProductShape>> ranked() const {
    std::vector<std::pair<double, ProductShape>> all;
    for (const auto& [shape, rate] : known_) all.emplace_back(rate, shape);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return all;
  }

 private:
  const ShapeSpace& space_;
  const std::function<double(const ProductShape&)>& rate_;
  const StopAsked& stop_;
  std::map<ProductShape, double> known_;
};

}  // namespace

std::string shape_text(const ProductShape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

ProductShape parse_shape(std::string_view text, std::string_view option) {
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

std::vector<ProductShape> products_of(const LoweredRun& run) {
  std::set<ProductShape> shapes;
  for (const Program& program : run.programs.train)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops)
        for (const Product& p : local_cost(program, op).products)
          shapes.insert({static_cast<int64_t>(p.rows), static_cast<int64_t>(p.columns), static_cast<int64_t>(p.depth)});
  return {shapes.begin(), shapes.end()};
}

void bench_gemm(const GemmRequest& request, BenchReport& report, const Watch& watch) {
  size_t done = 0, all = request.shapes.size() * request.types.size();
  for (const std::string& type : request.types)
    for (const ProductShape& shape : request.shapes) {
      if (watch.stop()) return;
      watch.say(fmt::format("gemm {} {} ({} of {})", shape_text(shape), type, ++done, all));
      BenchResult result = time_product(request, shape, type, watch);
      if (!result.samples.empty()) report.results.push_back(std::move(result));
    }
}

BestShape best_shape(const ShapeSpace& space, const std::function<double(const ProductShape&)>& rate,
                     const StopAsked& stop) {
  constexpr size_t kStarts = 8;
  Climber climber(space, rate, stop);
  std::vector<int64_t> coarse;
  for (int64_t size = space.step; size <= space.most; size *= 2) coarse.push_back(size);
  for (int64_t m : coarse)
    for (int64_t n : coarse)
      for (int64_t k : coarse) climber.ask({m, n, k});
  auto starts = climber.ranked();
  for (size_t i = 0; i < std::min(kStarts, starts.size()); ++i) climber.climb(starts[i].second);
  auto ranked = climber.ranked();
  if (ranked.empty()) return {};
  return {ranked[0].second, ranked[0].first, static_cast<int>(ranked.size())};
}

void bench_mamf(const GemmRequest& request, const ShapeSpace& space, BenchReport& report, const Watch& watch) {
  constexpr Repeat kGlance{.least = 10, .most = 20, .seconds = 0.004, .warm_seconds = 0.02};
  GemmRequest brief = request;
  brief.repeat = kGlance;
  for (const std::string& type : request.types) {
    // Clocks settle once, under load, and not before every shape.
    std::unique_ptr<TimedWork> heat = request.probe.product({space.most / 2, space.most / 2, space.most / 2}, type);
    warm_up([&] { return heat->run(); }, {.warm_seconds = 2}, watch);
    heat.reset();
    double most = 0;
    BestShape best = best_shape(
        space,
        [&](const ProductShape& shape) {
          watch.say(fmt::format("mamf {}: {} (best so far {:.1f} TFLOP/s)", type, shape_text(shape), most / 1e12));
          double rate = time_product(brief, shape, type, watch).flops_per_s();
          most = std::max(most, rate);
          return rate;
        },
        watch.stop);
    if (best.asked == 0) return;
    BenchResult result = time_product(request, best.shape, type, {.stop = [] { return false; }, .say = watch.say});
    report.findings.push_back(fmt::format("{}: {:.2f} TFLOP/s at {}, the best of {} shapes tried", type,
                                          result.flops_per_s() / 1e12, shape_text(best.shape), best.asked));
    result.name = "most achievable";
    report.results.push_back(std::move(result));
  }
}

}  // namespace sextant
