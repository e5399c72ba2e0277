// The options of `sextant bench` and its subverbs, one struct and one function each; bench_options.cpp puts them on the
// command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/verbosity.h"

namespace sextant {

struct VerbContext;

// Options that all benchmarks accept.
struct BenchOptions {
  std::string device = "auto";
  int64_t threads = 0;   // of the CPU; 0: one per core
  double seconds = 0.3;  // of calls that each measurement takes
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::string save;  // a machine's file to write the figures into
};

struct BenchGemmArguments {
  BenchOptions options;
  std::vector<std::string> shapes;
  std::string m, n, k;  // ranges
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> types;
  int64_t experts = 0;  // 0: no grouped GEMMs but a config's
  int64_t per_token = 2;
  std::string tokens, hidden, width;  // ranges; empty: by the device
  double imbalance = 1;
  bool mamf = false;
  int64_t step = 1024, most = 0;  // of --mamf; 0: as far as is worth it on the device
};
void run_bench_gemm(const BenchGemmArguments& arguments);

struct BenchMemoryArguments {
  BenchOptions options;
  std::vector<double> megabytes;
};
void run_bench_memory(const BenchMemoryArguments& arguments);

struct BenchAttentionArguments {
  BenchOptions options;
  std::vector<int64_t> lengths, heads, head_dims;
  int64_t tokens = 0;  // in the batch; 0: by the device
};
void run_bench_attention(const BenchAttentionArguments& arguments);

struct BenchOpsArguments {
  BenchOptions options;
  std::string only;
  std::string config;
  std::vector<std::string> overrides;
};
void run_bench_ops(const BenchOpsArguments& arguments);

struct BenchSizingArguments {
  BenchOptions options;
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> vary;  // "vocab", or "vocab=50257,50304"
};
void run_bench_sizing(const BenchSizingArguments& arguments);

struct BenchMachineArguments {
  BenchOptions options;
  int64_t ranks = 0;  // that share the processor; 0: as many as fit
  std::string name;
};
void run_bench_machine(const BenchMachineArguments& arguments, VerbContext& context);

struct BenchCompareArguments {
  std::string before, after;
  bool json = false;
};
void run_bench_compare(const BenchCompareArguments& arguments);

struct BenchReportArguments {
  std::string file, html;
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void run_bench_report(const BenchReportArguments& arguments);

}  // namespace sextant
