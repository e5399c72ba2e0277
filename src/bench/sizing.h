// bench sizing: how fast one layer and the whole step of a config are as one of its sizes varies, on one device, and
// where a nearby size would do better.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rank_threads.h"
#include "bench/result.h"
#include "config/run_config.h"
#include "models/spec.h"

namespace sextant {

struct VariedSize {
  std::string name;             // hidden, heads, ffn, vocab, seq or batch
  std::vector<int64_t> values;  // empty: the config's own and those nearby that machines like better
};

struct SizingRequest {
  RunConfig run;  // of one rank: its mesh is left aside
  ModelSpec spec;
  const ExecutorMaker& make_executor;
  Target target;
  int threads = 1;
  std::vector<VariedSize> sizes;
  double seconds_per_size = 1;
};

void bench_sizing(const SizingRequest& request, BenchReport& report, const Watch& watch);

// The config's own value and those nearby that are worth a try: multiples of 8 to 256 above and below, halves and
// doubles of sequence and batch, divisors for heads.
std::vector<int64_t> nearby_sizes(const std::string& name, const ModelSpec& spec, const RunConfig& run);

// One size as it was measured.
struct SizePoint {
  int64_t value = 0;
  double flops = 0, seconds = 0;  // of a step
};
// "vocab 50257: 18 % slower than 50304, the nearest better size": for every point that reaches at least 5 % less than
// another within a twentieth of its size, by flops per second.
std::vector<std::string> cliffs_of(const std::string& name, const std::vector<SizePoint>& points);

}  // namespace sextant
