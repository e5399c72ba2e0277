// Rates of a GPU's host are measured and saved: the slower direction of the link, and the stream bandwidth of all
// cores.
#include "bench/host.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/save.h"
#include "bench/stated_call.h"
#include "cost/machine_file.h"

namespace sextant {
namespace {

// A device and its host whose speeds are known.
class StatedHost final : public DeviceProbe {
 public:
  static constexpr double kUp = 50e9, kDown = 40e9, kStream = 200e9;  // bytes a second
  DeviceFacts facts() const override { return {.name = "none"}; }
  Readings readings() const override { return {}; }
  std::vector<std::string> gemm_types() const override { return {}; }
  std::unique_ptr<TimedWork> gemm(const GemmDims&, const std::string&) override { BUG("no GEMMs here"); }
  std::unique_ptr<TimedWork> stream(Stream stream, int64_t bytes) override {
    return std::make_unique<StatedCall>(bytes_of(stream, static_cast<double>(bytes)) / kStream);
  }
  std::unique_ptr<TimedWork> host_copy(HostCopy direction, int64_t bytes) override {
    return std::make_unique<StatedCall>(static_cast<double>(bytes) / (direction == HostCopy::to_host ? kDown : kUp));
  }
};

TEST(BenchHost, TakesItsPlaceInTheMachine) {
  StatedHost probe;
  BenchReport report;
  bench_host({.device = probe, .host = probe, .bytes = 1 << 30}, report, {});
  ASSERT_EQ(report.results.size(), 3u);
  Machine machine = load_machine("h200");
  double room = machine.host.memory_bytes;
  merge_into_machine(machine, report);
  EXPECT_NEAR(machine.host.link_bytes_per_s, StatedHost::kDown, 1);
  EXPECT_NEAR(machine.host.memory_bytes_per_s, StatedHost::kStream, 1);
  EXPECT_EQ(machine.host.memory_bytes, room);
  EXPECT_NE(machine.sources["host"].find("measured by sextant bench"), std::string::npos);
  machine.place = "x.toml";
  EXPECT_EQ(parse_machine(machine_text(machine), "x.toml"), machine);
}

}  // namespace
}  // namespace sextant
