// bench gemm: GEMMs timed on the device's probe, verified, against its peak; the GEMMs that a model's Programs
// do; and the search for the shape that reaches most, without trying all.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/result.h"
#include "bench/shape_search.h"
#include "exec/probe.h"
#include "plan/predict.h"

namespace sextant {

struct GemmRequest {
  DeviceProbe& probe;
  std::vector<GemmDims> shapes;
  std::vector<std::string> types;
  std::map<std::string, double> peaks = {};  // flop/s by type, where known
  Repeat repeat = {};
  // A device at its power limit is slower: longer looks of a search begin alike, after a rest.
  std::chrono::milliseconds rest{60};
};

// Appends to the report as it goes; what was timed before a stop is there.
void bench_gemm(const GemmRequest& request, BenchReport& report, const Watch& watch);

// "4096x4096x1024". UserError names `option`.
GemmDims parse_shape(std::string_view text, std::string_view option);
// "1024:16384:1024", both ends included, or one number.
std::vector<int64_t> parse_range(std::string_view text, std::string_view option);
std::string shape_text(const GemmDims& shape);

// Every GEMM of the run's train Programs, forward, input gradient and weight gradient, of all ranks: each shape
// once. Those of experts are grouped_gemms_of's.
std::vector<GemmDims> gemms_of(const LoweredRun& run);

// How a shape is timed for about so many seconds while the best one is searched: in a hurry, warm from the one before,
// and no more calls than that, where it is known what one takes (else 0).
Repeat search_repeat(double seconds, double call_s);
// Searches the best shape of each type; stopped early, it reports the best so far.
void bench_mamf(const GemmRequest& request, const ShapeSpace& space, BenchReport& report, const Watch& watch);

}  // namespace sextant
