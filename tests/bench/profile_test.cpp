// From traced steps to a machine's table of ops, and what the simulator then makes of it; ops alone; machines laid
// over.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bench/op_bench.h"
#include "bench/op_samples.h"
#include "bench/save.h"
#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/measured_ops.h"
#include "cost/validator.h"
#include "exec/cpu/cpu_executor.h"
#include "ops/ops.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

Machine cpu_machine() {
  Machine m;
  m.name = "here", m.date = "2026-11-15";
  m.device = {.name = "cpu",
              .kind = DeviceKind::cpu,
              .units = 1,
              .clock_hz = 1e9,
              .flops_per_clock_and_unit = 32,
              .memory_bytes = 1e9,
              .memory_bytes_per_s = 1e10};
  m.device.peaks["fp32"] = 32e9;
  m.devices_per_node = 2;
  m.tables.kernel_s = 1e-6, m.tables.imbalance = 1;
  m.levels.push_back({.name = "processor", .devices = 0, .link = {1e10, 1e-6}});
  m.sources = {{"device", "2026"}, {"level", "2026"}, {"efficiency", "2026"}, {"ops", "2026"}};
  return m;
}

struct Sampled {
  RunConfig run;
  LoweredRun lowered;
  StepTimes times;
};

Sampled sample(const std::string& mesh, int steps) {
  std::vector<std::string> overrides{
      "model.architecture=llama", "model.layers=2",     "model.hidden=32", "model.heads=2",      "model.vocab=64",
      "batch.sequences=4",        "batch.microbatch=1", "batch.seq=16",    "train.eval_every=0", "mesh.overlap=false"};
  if (!mesh.empty()) overrides.push_back(mesh);
  RunConfig run = parse_config("", "test", overrides);
  ModelSpec spec = resolve_model(run);
  LoweredRun lowered = lower_run(run, spec, cpu_target(1));
  ExecutorMaker maker = [](const RankContext& context, int threads) { return make_cpu_executor(threads, context); };
  StepTimes times = time_steps({.run = run,
                                .spec = spec,
                                .make_executor = maker,
                                .at_least_s = 0,
                                .least_steps = steps,
                                .most_steps = steps,
                                .tracing = Tracing::on},
                               lowered, {});
  return {run, std::move(lowered), std::move(times)};
}

TEST(Profile, EveryOpOfTheStepsIsInTheTable) {
  Sampled s = sample("mesh.dp=2", 4);
  EXPECT_EQ(s.times.seconds.size(), 4u);
  OpSamples samples;
  samples.add(s.lowered, s.times);
  auto table = samples.table();
  for (const Region& region : s.lowered.programs.train[0].regions)
    for (const Op& op : region.ops) {
      bool quiet = !local_message(s.lowered.programs.train[0], op) && op.def->name != "redistribute";
      EXPECT_TRUE(!quiet || table.contains(std::string(op.def->name))) << op.def->name;
    }
  ASSERT_TRUE(table.contains("all_reduce"));
  EXPECT_EQ(table["all_reduce"][0].size[0], 2);
}

TEST(Profile, SimulatedIsTheSumOfWhatWasMeasured) {
  Sampled s = sample("", 4);
  OpSamples samples;
  samples.add(s.lowered, s.times);
  Machine machine = cpu_machine();
  machine.ops = samples.table();
  double simulated = simulate_run(s.lowered, {machine, machine.efficiency(), own_profile()}).seconds;
  // The same steps, op by op: quartiles on both sides, whatever the machine's mood.
  double sum = 0;
  std::vector<double> steps;
  for (const Trace& trace : s.times.traces[0]) {
    double step = 0;
    for (const Event& event : trace) step += event.end_s - event.start_s;
    steps.push_back(step);
  }
  sum = quantile_of(steps, 0);
  EXPECT_GT(simulated, 0.4 * sum);
  EXPECT_LT(simulated, 1.6 * quantile_of(steps, 1));
}

TEST(Profile, AStoppedRunHasItsSteps) {
  std::vector<std::string> overrides{
      "model.architecture=gpt2", "model.layers=1",     "model.hidden=16", "model.heads=2",      "model.vocab=32",
      "batch.sequences=2",       "batch.microbatch=1", "batch.seq=8",     "train.eval_every=0", "mesh.dp=2"};
  RunConfig run = parse_config("", "test", overrides);
  ModelSpec spec = resolve_model(run);
  LoweredRun lowered = lower_run(run, spec, cpu_target(1));
  ExecutorMaker maker = [](const RankContext& context, int threads) { return make_cpu_executor(threads, context); };
  int asked = 0;
  Watch watch{.stop = [&] { return ++asked >= 3; }, .say = [](const std::string&) {}};
  EXPECT_EQ(time_steps({.run = run, .spec = spec, .make_executor = maker, .at_least_s = 1000, .least_steps = 100000},
                       lowered, watch)
                .seconds.size(),
            3u);
}

TEST(MeasuredOps, TheNearestDecideAndWorkScales) {
  Machine machine = cpu_machine();
  machine.ops["linear"] = {{{100, 100, 100}, 1e-3}, {{1000, 1000, 1000}, 0.5}};
  auto gemm = [](double rows, double columns, double depth) {
    Cost cost{};
    cost.gemms = {{rows, columns, depth}};
    return cost;
  };
  EXPECT_NEAR(*measured_seconds(machine, "linear", gemm(100, 100, 100)), 1e-3, 1e-5);
  EXPECT_NEAR(*measured_seconds(machine, "linear", gemm(1000, 1000, 1000)), 0.5, 5e-3);
  // Twice the work takes about twice the time.
  EXPECT_NEAR(*measured_seconds(machine, "linear", gemm(200, 100, 100)), 2e-3, 1e-4);
  EXPECT_FALSE(measured_seconds(machine, "gelu", gemm(1, 1, 1)).has_value());
  machine.ops["gelu"] = {{{4000}, 1e-5}};
  Cost stream{};
  stream.read = {2000}, stream.written = {2000};
  EXPECT_NEAR(*measured_seconds(machine, "gelu", stream), 1e-5, 1e-7);
}

TEST(MeasuredOps, MessagesFallBackToTheLinks) {
  Machine machine = cpu_machine();
  EXPECT_NEAR(message_seconds(machine, Collective::all_reduce, 2, 1e6), 2e-6 + 1e-4, 1e-9);
  machine.ops["all_reduce"] = {{{2, 1e6}, 5e-4}};
  EXPECT_NEAR(message_seconds(machine, Collective::all_reduce, 2, 1e6), 5e-4, 1e-6);
}

TEST(MeasuredOps, AFileKeepsThem) {
  Machine machine = cpu_machine();
  machine.ops["linear"] = {{{256, 64, 192}, 12.5e-6}};
  machine.ops["attention"] = {{{8, 64, 64, 16}, 3e-6}};
  machine.place = "here.toml";
  EXPECT_EQ(parse_machine(machine_text(machine), "here.toml"), machine);
  EXPECT_TRUE(problems_of(machine).empty()) << problems_of(machine)[0];
  std::string text = machine_text(machine);
  for (const char* bad : {"[ops]\nlinear = 3\n", "[ops]\nlinear = [[1]]\n", "[ops]\nlinear = [[1, 2, 3, 4, 5, 6]]\n",
                          "[ops]\nlinear = [[1, -2]]\n", "[ops]\nlinear = []\n"})
    EXPECT_ANY_THROW(parse_machine(text.substr(0, text.find("[ops]")) + bad, "here.toml")) << bad;
}

TEST(Ops, EveryOpOfTheRegistryRunsAlone) {
  std::unique_ptr<Executor> executor = make_cpu_executor(1);
  BenchReport report;
  bench_ops({.executor = *executor,
             .only = "",
             .least_bytes = 1 << 14,
             .repeat = {.least = 1, .most = 1, .seconds = 0, .warm_seconds = 0}},
            report, {});
  std::set<std::string> timed;
  for (const BenchResult& r : report.results) timed.insert(r.name);
  size_t silent = 0;
  for (const OpDef* def : all_ops()) silent += def->message ? 1 : 0;
  EXPECT_EQ(timed.size() + silent, all_ops().size());
  for (const std::string& finding : report.findings) EXPECT_EQ(finding.find('('), std::string::npos) << finding;
}

TEST(Attention, ForwardAndBackwardCountCausalFlops) {
  std::unique_ptr<Executor> executor = make_cpu_executor(1);
  BenchReport report;
  bench_attention({.executor = *executor,
                   .shapes = {{2, 32, 4, 2, 16}},
                   .peak_flops_per_s = 0,
                   .repeat = {.least = 1, .most = 1, .seconds = 0, .warm_seconds = 0}},
                  report, {});
  ASSERT_EQ(report.results.size(), 2u);
  double square = 2.0 * 4 * 32 * 32 * 16;
  EXPECT_NEAR(report.results[0].flops, 2 * 2 * square / 2, 0.1 * square);
  EXPECT_NEAR(report.results[1].flops / report.results[0].flops, 2.5, 0.01);
  EXPECT_EQ(report.results[0].shape, "b2 s32 h4/2 d16");
}

TEST(Save, MeasurementsTakeTheirPlaceInTheMachine) {
  Machine machine = load_machine("h200");
  BenchReport report;
  report.results.push_back({.kind = "gemm",
                            .name = "product",
                            .shape = "",
                            .dtype = "bf16",
                            .size = {8192, 8192, 8192},
                            .samples = {1.5e-3},
                            .flops = 2.0 * std::pow(8192, 3)});
  report.results.push_back({.kind = "memory",
                            .name = "copy",
                            .shape = "",
                            .dtype = "fp32",
                            .size = {1e9},
                            .samples = {2e9 / (0.9 * machine.device.memory_bytes_per_s)},
                            .flops = 0,
                            .bytes = 2e9});
  merge_into_machine(machine, report);
  bool found = false;
  for (const MeasuredGemm& p : machine.gemms)
    found =
        found || (p.rows == 8192 && p.columns == 8192 && p.depth == 8192 && p.dtype == "bf16" && p.seconds == 1.5e-3);
  EXPECT_TRUE(found);
  EXPECT_NEAR(machine.efficiency().memory, 0.9, 1e-9);
  merge_into_machine(machine, report);  // again: once is enough
  int rows = 0;
  for (const MeasuredGemm& p : machine.gemms)
    rows += p.rows == 8192 && p.columns == 8192 && p.depth == 8192 && p.dtype == "bf16" ? 1 : 0;
  EXPECT_EQ(rows, 1);
  machine.place = "x.toml";
  EXPECT_EQ(parse_machine(machine_text(machine), "x.toml"), machine);
}

BenchResult grouped_result(const std::string& op, double seconds) {
  return {.kind = "grouped gemm",
          .name = op,
          .shape = "4x64x32x16",
          .dtype = "bf16",
          .size = {4, 64, 32, 16},
          .samples = {seconds}};
}

TEST(Save, GroupedGemmsAreKeptByPass) {
  Machine machine = load_machine("h200");
  size_t before = machine.grouped_gemms.size();
  ASSERT_GT(before, 0u);
  BenchReport report;
  for (const char* op : {"expert_up", "expert_rows_input_gradient", "expert_down_weight_gradient"})
    report.results.push_back(grouped_result(op, 1e-3));
  merge_into_machine(machine, report);
  merge_into_machine(machine, report);  // again: once is enough
  ASSERT_EQ(machine.grouped_gemms.size(), before + 3);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(machine.grouped_gemms[before + i],
              (MeasuredGroupedGemm{static_cast<GroupedPass>(i), 4, 64, 32, 16, 1e-3, "bf16"}));
  std::string source = machine.sources.at("grouped_products");
  EXPECT_NE(source.find("measured by sextant bench"), std::string::npos);
  EXPECT_NE(source.find("experts_gpu.txt"), std::string::npos) << "the others are still there";
  EXPECT_TRUE(problems_of(machine).empty());
}

// A CPU knows ops by all rows, which is how the simulator asks for them.
TEST(Save, GroupedGemmsOfACpuAreOps) {
  Machine machine = cpu_machine();
  BenchReport report;
  report.results.push_back(grouped_result("expert_up", 2e-3));
  merge_into_machine(machine, report);
  EXPECT_TRUE(machine.grouped_gemms.empty());
  Cost cost{};
  cost.gemms = {{.rows = 64, .columns = 32, .depth = 16, .count = 4}};
  EXPECT_NEAR(*measured_seconds(machine, "expert_up", cost), 2e-3, 1e-6);
}

CommReport measured_messages(int hosts) {
  CommReport report{.ranks = 4, .hosts = hosts};
  report.rows = {{.group = "all ranks",
                  .ranks = 4,
                  .op = Collective::all_reduce,
                  .place = CommPlace::in,
                  .bytes = 4096,
                  .seconds = {9e-6, 9e-6},
                  .least = {7e-6, 7e-6}},
                 {.group = "all ranks",
                  .ranks = 4,
                  .op = Collective::all_reduce,
                  .place = CommPlace::out,  // with a copy
                  .bytes = 4096,
                  .seconds = {20e-6},
                  .least = {20e-6}},
                 {.group = "dp and tp at once",
                  .ranks = 2,
                  .together = 2,
                  .op = Collective::all_gather,
                  .place = CommPlace::in,
                  .bytes = 4096,
                  .seconds = {30e-6},
                  .least = {30e-6}},
                 {.group = "all ranks",
                  .ranks = 4,
                  .op = Collective::reduce_scatter,
                  .place = CommPlace::out,
                  .bytes = 1e9,
                  .seconds = {2.5e-3},  // 0.75 · 400 GB/s
                  .least = {2.5e-3}}};
  for (int to = 1; to < 4; ++to)
    report.links.push_back({.from = 0,
                            .to = to,
                            .latency_s = 2e-6,
                            .bytes_per_s = 20e9,
                            .same_host = hosts == 1 || to == 1,
                            .large = 1 << 20,
                            .pings = {2e-6, 3e-6},
                            .transfers = {5e-5}});
  return report;
}

TEST(Save, ACpuLearnsItsLinksAndMessages) {
  Machine machine = cpu_machine();
  machine.ops["all_reduce"] = {{{4, 4096}, 1e-3}, {{2, 64}, 1e-6}};
  merge_message_times(machine, measured_messages(1));
  EXPECT_EQ(machine.levels.at(0).link, (Link{20e9, 2e-6}));
  EXPECT_EQ(machine.levels.size(), 1u);
  EXPECT_EQ(machine.ops["all_reduce"], (std::vector<MeasuredOp>{{{2, 64}, 1e-6}, {{4, 4096}, 7e-6}}));
  EXPECT_FALSE(machine.ops.contains("all_gather"));
  ASSERT_EQ(machine.ops["send"].size(), 2u);
  EXPECT_EQ(machine.ops["send"][0].size, (std::vector<double>{2, kPingBytes}));
  machine.place = "x.toml";
  EXPECT_EQ(parse_machine(machine_text(machine), "x.toml"), machine);
  EXPECT_TRUE(problems_of(machine).empty()) << problems_of(machine)[0];
  merge_message_times(machine, measured_messages(2));
  ASSERT_EQ(machine.levels.size(), 2u);
  EXPECT_EQ(machine.levels[1].link, (Link{20e9, 2e-6}));
  EXPECT_TRUE(problems_of(machine).empty()) << problems_of(machine)[0];
  // The source of the other ops is stated once, however often messages are measured.
  EXPECT_EQ(machine.sources["ops"].find("as before"), machine.sources["ops"].rfind("as before"));
}

TEST(Save, AGpuLearnsWhatItsLinksReach) {
  Machine machine = load_machine("h200");
  Level node = machine.levels.front();
  merge_message_times(machine, measured_messages(1));
  EXPECT_EQ(machine.levels.front(), node);
  EXPECT_NEAR(machine.efficiency().near_link, 300e9 / node.link.bytes_per_s, 1e-9);
  EXPECT_TRUE(machine.ops.empty());
}

TEST(Save, LaunchesAndCheckpointsHaveTheirPlace) {
  Machine machine = load_machine("h200");
  BenchReport report;
  report.results = {
      {.kind = "launch", .name = "tiny kernel", .shape = "", .dtype = "", .size = {16}, .samples = {3e-6}},
      {.kind = "storage",
       .name = "checkpoint write",
       .shape = "",
       .dtype = "",
       .size = {8e9, 4},
       .samples = {2.0},
       .bytes = 8e9}};
  merge_into_machine(machine, report);
  merge_storage(machine, report);
  EXPECT_DOUBLE_EQ(machine.tables.kernel_s, 3e-6);
  EXPECT_DOUBLE_EQ(machine.checkpoint_bytes_per_s, 1e9);
}

TEST(Save, ADeviceFindsItsMachine) {
  ASSERT_TRUE(known_machine_with("NVIDIA H200").has_value());
  EXPECT_EQ(known_machine_with("NVIDIA H200")->device.name.substr(0, 4), "H200");
  EXPECT_FALSE(known_machine_with("Neoverse-V1").has_value());
}

}  // namespace
}  // namespace sextant
