#include "bench/statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace sextant {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median_of(std::vector<double> samples) {
  return quantile_of(std::move(samples), 0.5);
}

// How many ways there are to reach each U with sizes m and n: the classic recurrence over the largest element.
std::vector<double> ways_to(size_t m, size_t n) {
  std::vector<std::vector<double>> row(n + 1, std::vector<double>{1});  // m = 0
  for (size_t i = 1; i <= m; ++i) {
    std::vector<std::vector<double>> next(n + 1);
    next[0] = {1};
    for (size_t j = 1; j <= n; ++j) {
      next[j].assign(i * j + 1, 0);
      for (size_t u = 0; u < row[j].size(); ++u) next[j][u + j] += row[j][u];        // the largest is of the first set
      for (size_t u = 0; u < next[j - 1].size(); ++u) next[j][u] += next[j - 1][u];  // or of the second
    }
    row = std::move(next);
  }
  return row[n];
}

double exact_p(double u, size_t m, size_t n) {
  std::vector<double> ways = ways_to(m, n);
  double all = std::accumulate(ways.begin(), ways.end(), 0.0), tail = 0;
  double least = std::min(u, static_cast<double>(m * n) - u);
  for (size_t i = 0; static_cast<double>(i) <= least && i < ways.size(); ++i) tail += ways[i];
  return std::min(1.0, 2 * tail / all);
}

}  // namespace

double quantile_of(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  double at = share * static_cast<double>(samples.size() - 1);
  size_t below = static_cast<size_t>(at), above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Summary summary_of(std::span<const double> given) {
  if (given.empty()) return {};
  std::vector<double> samples(given.begin(), given.end());
  std::sort(samples.begin(), samples.end());
  auto n = static_cast<double>(samples.size());
  Summary s{.count = static_cast<int64_t>(samples.size()),
            .mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n,
            .median = median_of(samples),
            .best = samples.front(),
            .worst = samples.back()};
  std::vector<double> away;
  for (double x : samples) away.push_back(std::abs(x - s.median));
  s.spread = 1.4826 * median_of(away);
  // The number of samples below the median is binomial with 1/2.
  double half = 1.96 * std::sqrt(n) / 2;
  auto low = static_cast<size_t>(std::clamp(std::floor(n / 2 - half), 0.0, n - 1));
  auto high = static_cast<size_t>(std::clamp(std::ceil(n / 2 + half), 0.0, n - 1));
  s.low = samples[low], s.high = samples[high];
  return s;
}

double mann_whitney_p(std::span<const double> a, std::span<const double> b) {
  constexpr size_t kExact = 20;
  if (a.empty() || b.empty()) return 1;
  std::vector<std::pair<double, int>> all;
  for (double x : a) all.emplace_back(x, 0);
  for (double x : b) all.emplace_back(x, 1);
  std::sort(all.begin(), all.end());
  double rank_sum = 0, ties = 0;  // of a; Σ t³ − t
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    double rank = static_cast<double>(i + end + 1) / 2, t = static_cast<double>(end - i);
    for (size_t j = i; j < end; ++j)
      if (all[j].second == 0) rank_sum += rank;
    ties += t * t * t - t;
    i = end;
  }
  auto m = static_cast<double>(a.size()), n = static_cast<double>(b.size()), both = m + n;
  double u = rank_sum - m * (m + 1) / 2;
  if (ties == 0 && a.size() <= kExact && b.size() <= kExact) return exact_p(u, a.size(), b.size());
  double deviation = std::sqrt(m * n / 12 * (both + 1 - ties / (both * (both - 1))));
  if (!(deviation > 0)) return 1;
  double away = std::max(0.0, std::abs(u - m * n / 2) - 0.5);
  return std::erfc(away / deviation / std::sqrt(2.0));
}

void warm_up(const std::function<double()>& call, const Repeat& repeat, const Watch& watch) {
  constexpr size_t kWindow = 5;
  constexpr double kSettled = 0.03;
  std::vector<double> seen;
  double begin = now_s();
  while (!watch.stop()) {
    seen.push_back(call());
    if (now_s() - begin >= repeat.warm_seconds) return;
    if (seen.size() < 2 * kWindow) continue;
    std::vector<double> before(seen.end() - 2 * kWindow, seen.end() - kWindow), after(seen.end() - kWindow, seen.end());
    if (std::abs(median_of(after) - median_of(before)) <= kSettled * median_of(before)) return;
  }
}

std::vector<double> repeated(const std::function<double()>& call, const Repeat& repeat, const Watch& watch) {
  auto calls = [&](int n) {
    std::vector<double> seconds;
    for (int i = 0; i < n && !watch.stop(); ++i) seconds.push_back(call());
    return seconds;
  };
  return repeated_together(calls, repeat, watch);
}

std::vector<double> repeated_together(const std::function<std::vector<double>(int)>& calls, const Repeat& repeat,
                                      const Watch& watch) {
  constexpr double kTogether = 0.05;  // seconds between two questions whether to stop
  constexpr double kMostAround =
      5;  // times as long as the calls themselves are to take, with all that stands around them
  constexpr int kMostTogether = 100;
  double around = 0;  // seconds that a call takes with all that stands around it, such as clearing caches
  auto one = [&] {
    double begin = now_s();
    std::vector<double> seconds = calls(1);
    around = now_s() - begin;
    return seconds.empty() ? 0 : seconds[0];
  };
  warm_up(one, repeat, watch);
  std::vector<double> seconds;
  double taken = 0, begin = now_s();
  while (static_cast<int>(seconds.size()) < repeat.most && !watch.stop()) {
    int left = repeat.most - static_cast<int>(seconds.size()),
        missing = repeat.least - static_cast<int>(seconds.size());
    if (missing <= 0 && (taken >= repeat.seconds || now_s() - begin >= kMostAround * repeat.seconds)) break;
    int wanted = around > 0 ? static_cast<int>(std::min<double>(kTogether / around, kMostTogether)) : kMostTogether;
    for (double each : calls(std::clamp(wanted, 1, left))) {
      seconds.push_back(each);
      taken += each;
    }
  }
  return seconds;
}

}  // namespace sextant
