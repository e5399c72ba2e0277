#include "bench/shape_search.h"

#include <algorithm>
#include <map>
#include <vector>

#include "bench/statistics.h"

namespace sextant {

namespace {

struct Rated {
  GemmDims shape;
  double rate = 0;
};

void sort_by_rate(std::vector<Rated>& shapes) {
  std::stable_sort(shapes.begin(), shapes.end(), [](const Rated& a, const Rated& b) { return a.rate > b.rate; });
}

// Glances at each shape once, and remembers.
class Glances {
 public:
  Glances(const ShapeSpace& space, const ShapeTimer& timer, const StopAsked& stop)
      : space_(space), timer_(timer), stop_(stop) {}

  void on_coarse_grid() {
    std::vector<int64_t> coarse;
    for (int64_t size = space_.step; size <= space_.most; size *= 2) coarse.push_back(size);
    for (int64_t m : coarse)
      for (int64_t n : coarse)
        for (int64_t k : coarse) ask({m, n, k});
  }

  // From each of them to the best depth, and then on from the best of those.
  void from(std::vector<Rated> starts) {
    for (Rated& at : starts) at = best_along({at.shape, ask(at.shape)}, &GemmDims::k);
    sort_by_rate(starts);
    for (const Rated& start : starts) climb(start);
  }

  // At most so many of each pair of rows and columns, the best first: neighbours in depth are much alike.
  std::vector<Rated> best_of_pairs(int most_of_each) const {
    std::vector<Rated> all, chosen;
    for (const auto& [shape, rate] : known_)
      if (rate > 0) all.push_back({shape, rate});
    sort_by_rate(all);
    std::map<std::pair<int64_t, int64_t>, int> of_pair;
    for (const Rated& each : all)
      if (++of_pair[{each.shape.m, each.shape.n}] <= most_of_each) chosen.push_back(each);
    return chosen;
  }

  size_t count() const { return known_.size(); }

 private:
  bool done() const {
    constexpr int64_t kPartOfSpace = 12;
    return stop_() || static_cast<int64_t>(known_.size()) >= space_.shapes() / kPartOfSpace;
  }

  double ask(const GemmDims& shape) {
    if (auto known = known_.find(shape); known != known_.end()) return known->second;
    if (stop_()) return 0;
    double rate = timer_(shape, kGlanceSeconds);
    if (rate > 0 || !stop_()) known_[shape] = rate;  // 0: beyond the device, and not asked again
    return rate;
  }

  Rated best_along(const Rated& start, int64_t GemmDims::*size) {
    Rated best = start;
    GemmDims next = start.shape;
    for (int64_t value = space_.step; value <= space_.most && !done(); value += space_.step) {
      next.*size = value;
      if (double rate = ask(next); rate > best.rate) best = {next, rate};
    }
    return best;
  }

  // To the best along one size after the other, as long as that leads on: waves of tiles make ridges that single steps
  // fall off.
  void climb(Rated at) {
    for (bool moved = true; moved && !done();) {
      moved = false;
      for (int64_t GemmDims::*size : {&GemmDims::m, &GemmDims::n, &GemmDims::k}) {
        Rated best = best_along(at, size);
        moved = moved || best.shape != at.shape;
        at = best;
      }
    }
  }

  const ShapeSpace& space_;
  const ShapeTimer& timer_;
  const StopAsked& stop_;
  std::map<GemmDims, double> known_;
};

// Each of the best is timed so often, in turn with the others: clocks drift.
struct Round {
  size_t share;  // one in so many of all shapes that were glanced at
  int passes;
  double seconds;  // of a pass
};
constexpr Round kRounds[] = {{7, 1, 0.02}, {21, 2, 0.05}, {56, 3, 0.1}};
constexpr Round kSecondLook{1, 1, 0.02};
constexpr size_t kLeastFinalists = 2;

// Leaves those who were timed, the best first; all as they were when nobody was.
void play(const Round& round, const ShapeTimer& timer, const StopAsked& stop, std::vector<Rated>& shapes) {
  std::vector<std::vector<double>> rates(shapes.size());
  for (int pass = 0; pass < round.passes; ++pass)
    for (size_t i = 0; i < shapes.size() && !stop(); ++i)
      if (double rate = timer(shapes[i].shape, round.seconds); rate > 0) rates[i].push_back(rate);
  std::vector<Rated> timed;
  for (size_t i = 0; i < shapes.size(); ++i)
    if (!rates[i].empty()) timed.push_back({shapes[i].shape, quantile_of(rates[i], 0.5)});
  if (timed.empty()) return;
  sort_by_rate(timed);
  shapes = std::move(timed);
}

}  // namespace

BestShape best_shape(const ShapeSpace& space, const ShapeTimer& timer, const StopAsked& stop) {
  constexpr int kOfEachPair = 6;
  constexpr size_t kStarts = 8;
  Glances glances(space, timer, stop);
  glances.on_coarse_grid();
  // Points that have nothing in common but their rate: of each pair of rows and columns the best depth.
  std::vector<Rated> starts = glances.best_of_pairs(1);
  play(kSecondLook, timer, stop, starts);
  starts.resize(std::min(starts.size(), kStarts));
  glances.from(std::move(starts));
  std::vector<Rated> best = glances.best_of_pairs(kOfEachPair);
  if (best.empty()) return {};
  for (const Round& round : kRounds) {
    if (stop()) break;
    best.resize(std::min(best.size(), std::max(kLeastFinalists, glances.count() / round.share)));
    play(round, timer, stop, best);
  }
  return {best.front().shape, best.front().rate, static_cast<int>(glances.count())};
}

}  // namespace sextant
