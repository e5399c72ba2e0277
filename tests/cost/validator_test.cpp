#include "cost/validator.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cost/machine_file.h"

namespace sextant {
namespace {

TEST(Validator, EveryMachineThatComesWithTheProgramHangsTogether) {
  for (const std::string& name : known_machines()) {
    std::vector<std::string> problems = problems_of(load_machine(name));
    EXPECT_TRUE(problems.empty()) << name << ": " << fmt::format("{}", fmt::join(problems, "; "));
  }
}

struct Broken {
  const char* says;
  std::function<void(Machine&)> by;
};

TEST(Validator, WhatIsBrokenIsNamed) {
  const std::vector<Broken> all{
      {"1978.8 TFLOPS, but 1830 MHz x 132 units x 4096 gives 989.4", [](Machine& m) { m.device.peaks["bf16"] *= 2; }},
      {"neither bf16 nor fp16",
       [](Machine& m) {
         m.device.peaks = {{"fp32", 67e12}};
       }},
      {"fp8 is slower than bf16", [](Machine& m) { m.device.peaks["fp8"] = 500e12; }},
      {"with sparsity", [](Machine& m) { m.device.peaks["fp8"] = 4.1 * m.device.peaks["bf16"]; }},
      {"reading the whole memory would take", [](Machine& m) { m.device.memory_bytes_per_s = 4.8e9; }},
      {"flops for each byte", [](Machine& m) { m.device.memory_bytes_per_s *= 0.1, m.device.memory_bytes *= 0.1; }},
      {"there are no levels", [](Machine& m) { m.levels.clear(); }},
      {"the last holds everything", [](Machine& m) { m.levels.back().devices = 64; }},
      {"only the last is without a limit", [](Machine& m) { m.levels.front().devices = 0; }},
      {"not a multiple of the 8",
       [](Machine& m) {
         m.levels.insert(m.levels.begin() + 1, {"rack", 12, {100e9, 1e-6}});
       }},
      {"level.cluster is faster", [](Machine& m) { m.levels.back().link.bytes_per_s = 1e12; }},
      {"level.cluster answers sooner", [](Machine& m) { m.levels.back().link.latency_s = 0; }},
      {"level.node has 400.0 GB/s; NVLink has", [](Machine& m) { m.levels.front().link.bytes_per_s = 400e9; }},
      {"level.node has no bandwidth", [](Machine& m) { m.levels.front().link.bytes_per_s = 0; }},
      {"attention.cudnn reaches 0.99", [](Machine& m) { m.attention["cudnn"].forward_128 = 0.99; }},
      {"attention.cudnn is faster backward", [](Machine& m) { m.attention["cudnn"].backward_128 = 0.9; }},
      {"slower with heads of 128", [](Machine& m) { m.attention["cudnn"].forward_64 = 0.9; }},
      {"efficiency.product is 0.2, outside 0.4 to 0.95", [](Machine& m) { m.tables.product = 0.2; }},
      {"efficiency.memory is nan", [](Machine& m) { m.tables.memory = std::nan(""); }},
      {"fitted.imbalance is 2", [](Machine& m) { m.fitted = m.tables, m.fitted->imbalance = 2; }},
      {"does not say what it was fitted on", [](Machine& m) { m.fitted = m.tables; }},
      {"fitted_experts.imbalance is 2",
       [](Machine& m) { m.fitted_experts = m.tables, m.fitted_experts->imbalance = 2; }},
      {"fitted_experts does not say what it was fitted on", [](Machine& m) { m.fitted_experts = m.tables; }},
      {"a fit reaches 0.90 where kernels were published to reach 0.74",
       [](Machine& m) { m.fitted = m.tables, m.fitted->product = 0.9; }},
      {"products.bf16: 4096 x 4096 x 4096 in 100.0 us is 1374.4 TFLOPS of 989.4",
       [](Machine& m) {
         m.gemms.push_back({4096, 4096, 4096, 1e-4, "bf16"});
       }},
      {"source.products is not given",
       [](Machine& m) {
         m.gemms.push_back({4096, 4096, 4096, 1e-3, "bf16"});
       }},
      {"grouped_products.bf16: 64 of 512 x 512 x 1024 in 10.0 us are 3436.0 TFLOPS of 989.4",
       [](Machine& m) {
         m.grouped_gemms.push_back({GroupedPass::forward, 64, 512, 512, 1024, 1e-5, "bf16"});
       }},
      {"source.grouped_products is not given", [](Machine& m) { m.sources.erase("grouped_products"); }},
      {"source.device is not given", [](Machine& m) { m.sources.erase("device"); }},
      {"source.level names no year", [](Machine& m) { m.sources["level"] = "a friend of 20161 friends"; }},
      {"date is not given", [](Machine& m) { m.date.clear(); }},
  };
  for (const Broken& broken : all) {
    Machine machine = load_machine("h200");
    broken.by(machine);
    std::string said = fmt::format("{}", fmt::join(problems_of(machine), "\n"));
    EXPECT_NE(said.find(broken.says), std::string::npos) << broken.says << "\nbut:\n" << said;
  }
}

TEST(Validator, AFitMayBeALittleBetterThanTheTables) {
  Machine machine = load_machine("h200");
  machine.fitted = machine.tables;
  machine.fitted->product *= 1.05;
  machine.fitted_on = "runs of 2026";
  EXPECT_TRUE(problems_of(machine).empty());
}

}  // namespace
}  // namespace sextant
