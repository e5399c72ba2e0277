// Steps worked out by hand, on the machine of hand_program.h: where every second of every rank went, and every field of
// every event.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cost/hand_program.h"
#include "cost/planned_target.h"
#include "exec/sim/region_work.h"
#include "exec/sim/simulate.h"
#include "models/model.h"
#include "passes/join_lanes.h"
#include "passes/lower.h"

namespace sextant {
namespace {

using enum RegionKind;

const OpDef kWork = streaming_op("work");
constexpr double kTiny = 1e-9;
const double kSlowestOfFour = 1 + 0.25 / std::sqrt(3);  // ln 64 is three times ln 4

struct Expected {
  double compute, update;
  std::map<std::string, double> exposed;
  double bubble, host;
};

void expect_time(const RankTime& time, const Expected& expected, double total) {
  EXPECT_NEAR(time.compute, expected.compute, kTiny);
  EXPECT_NEAR(time.update, expected.update, kTiny);
  EXPECT_NEAR(time.bubble, expected.bubble, kTiny);
  EXPECT_NEAR(time.host, expected.host, kTiny);
  ASSERT_EQ(time.exposed.size(), expected.exposed.size());
  for (const auto& [axes, seconds] : expected.exposed) {
    ASSERT_TRUE(time.exposed.contains(axes)) << axes;
    EXPECT_NEAR(time.exposed.at(axes), seconds, kTiny) << axes;
  }
  EXPECT_NEAR(time.total(), total, kTiny);
}

SimResult run(std::vector<Program> programs, const SoftwareProfile& profile, SimOptions options = {}) {
  for (Program& program : programs) join_lanes(program);
  Machine machine = machine_on_paper();
  Pricer pricer(machine, machine.tables, profile);
  return simulate(programs, pricer, options);
}

// Two stages and two microbatches in 1F1B. Stage 0: 3 s forward, 4 s and 3 s backward with the all-reduce of the
// gradients posted between them in the last microbatch; stage 1: 4 s forward, 5 s backward. Updates of 2.5 s. Ranks of
// a stage share a node.
constexpr double kForward0 = 3, kFirst0 = 4, kSecond0 = 3, kForward1 = 4, kBackward1 = 5, kUpdate = 2.5;
constexpr double kMessageMB = 1, kGradientsMB = 6;

Attrs sent_to(int64_t peer, int64_t tag) {
  return {{"peer", peer}, {"tag", tag}};
}

Attrs received_from(int64_t peer, int64_t tag) {
  return {{"peer", peer}, {"tag", tag}, {"dims", std::vector<int64_t>{250000}}, {"dtype", std::string("f32")}};
}

std::vector<Program> two_stages() {
  Mesh mesh{{{"pp", 2}, {"dp", 2}}};
  HandProgram first(mesh, 0), second(mesh, 1);
  ValueId out = first.value("out", 1'000'000), back = first.value("back", 1'000'000);
  first.work(forward, kWork, "f0", kForward0);
  first.add(forward, ops::send, "f0.send", sent_to(1, 1), {out});
  first.add(backward, ops::recv, "b0.recv", received_from(1, 2), {}, {back});
  first.work(backward, kWork, "b0.first", kFirst0);
  ValueId gradients = first.value("grad", static_cast<int64_t>(kGradientsMB * kMega), ValueKind::gradient);
  ValueId sums = first.value("grad.sum", static_cast<int64_t>(kGradientsMB * kMega), ValueKind::gradient);
  Op& reduce = first.add(backward, ops::all_reduce_bucket, "b0.reduce", {{"axes", std::vector<std::string>{"dp"}}},
                         {gradients}, {sums});
  reduce.lane = Lane::comm;
  reduce.runs_for = RunsFor::last_microbatch;
  first.work(backward, kWork, "b0.second", kSecond0);
  first.work(update, kWork, "u0", kUpdate);
  first.program.schedule = {{forward, 0, 0}, {forward, 0, 1}, {backward, 0, 0}, {backward, 0, 1}, {update, 0, 0}};

  ValueId in = second.value("in", 1'000'000), gradient = second.value("gradient", 1'000'000);
  second.add(forward, ops::recv, "f1.recv", received_from(0, 1), {}, {in});
  second.work(forward, kWork, "f1", kForward1);
  second.work(backward, kWork, "b1", kBackward1);
  second.add(backward, ops::send, "b1.send", sent_to(0, 2), {gradient});
  second.work(update, kWork, "u1", kUpdate);
  second.program.schedule = {{forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}, {update, 0, 0}};
  return {first.program, second.program};
}

const double kTransfer = far_message(kMessageMB), kReduce = near_all_reduce(kGradientsMB);
// Beside the reduction, which outlasts it, the GEMM runs at 0.8 of its speed.
constexpr double kSecondBeside = kSecond0 / 0.8;

TEST(WorkedStep, TwoStages) {
  SimResult result = run(two_stages(), own_profile(), {.trace = KeepTrace::yes});
  // Stage 1 gets its input at 3 + t, is at the end of its first backward at 12 + t and of its second at 21 + t: it
  // never waits again. Stage 0 has its forwards done at 6 and waits for what leaves at 12 + t; that backward ends at 19
  // + 2 t, the next message leaves at 21 + t.
  double t = kTransfer, last_backward = 21 + 2 * t;
  double end = last_backward + kFirst0 + kReduce + kUpdate;
  Expected first{.compute = 2 * kForward0 + 2 * kFirst0 + kSecond0 + kSecondBeside,
                 .update = kUpdate,
                 .exposed = {{"pp", 2 * t}, {"dp", kReduce - kSecondBeside}},
                 .bubble = (12 + t - 6) + (21 + t - (19 + 2 * t)),
                 .host = 0};
  Expected second{.compute = 2 * kForward1 + 2 * kBackward1,
                  .update = kUpdate,
                  .exposed = {{"pp", t}},
                  .bubble = 3 + end - (21 + t + kUpdate),
                  .host = 0};
  ASSERT_EQ(result.ranks.size(), 2u);
  expect_time(result.ranks[0], first, end);
  expect_time(result.ranks[1], second, end);
  EXPECT_EQ(result.slowest, 0);
  EXPECT_NEAR(result.seconds, kSlowestOfFour * end, kTiny);

  struct Row {
    const char *path, *name;
    double start, end;
    const char* lane;
    double flops;
    double bytes;
    int rank;
    int64_t microbatch;
    const char *phase, *axes;
  };
  auto bytes = [](double seconds) { return (seconds - kKernelSeconds - kUnfilledSeconds) * kMega; };
  double b0 = 12 + 2 * t, b1 = last_backward, r = kReduce;
  const Row rows[] = {
      {"f0", "work", 0, 3, "compute", 7, bytes(3), 0, 0, "forward", ""},
      {"f0.send", "send", 3, 3 + t, "comm", 0, 1e6, 0, 0, "forward", "pp"},
      {"f0", "work", 3, 6, "compute", 7, bytes(3), 0, 1, "forward", ""},
      {"f0.send", "send", 6, 6 + t, "comm", 0, 1e6, 0, 1, "forward", "pp"},
      {"b0.first", "work", b0, b0 + 4, "compute", 7, bytes(4), 0, 0, "backward", ""},
      {"b0.second", "work", b0 + 4, b0 + 7, "compute", 7, bytes(3), 0, 0, "backward", ""},
      {"b0.first", "work", b1, b1 + 4, "compute", 7, bytes(4), 0, 1, "backward", ""},
      {"b0.reduce", "all_reduce_bucket", b1 + 4, b1 + 4 + r, "comm", 0, 6e6, 0, 1, "backward", "dp"},
      {"b0.second", "work", b1 + 4, b1 + 4 + kSecondBeside, "compute", 7, bytes(3), 0, 1, "backward", ""},
      {"u0", "work", b1 + 4 + r, end, "compute", 7, bytes(2.5), 0, 0, "update", ""},
      {"f1", "work", 3 + t, 7 + t, "compute", 7, bytes(4), 1, 0, "forward", ""},
      {"b1", "work", 7 + t, 12 + t, "compute", 7, bytes(5), 1, 0, "backward", ""},
      {"b1.send", "send", 12 + t, 12 + 2 * t, "comm", 0, 1e6, 1, 0, "backward", "pp"},
      {"f1", "work", 12 + t, 16 + t, "compute", 7, bytes(4), 1, 1, "forward", ""},
      {"b1", "work", 16 + t, 21 + t, "compute", 7, bytes(5), 1, 1, "backward", ""},
      {"b1.send", "send", 21 + t, 21 + 2 * t, "comm", 0, 1e6, 1, 1, "backward", "pp"},
      {"u1", "work", 21 + t, 23.5 + t, "compute", 7, bytes(2.5), 1, 0, "update", ""},
  };
  ASSERT_EQ(result.trace.size(), std::size(rows));
  for (size_t i = 0; i < std::size(rows); ++i) {
    const Row& row = rows[i];
    const Event& event = result.trace[i];
    SCOPED_TRACE(fmt::format("event {}, {}", i, row.path));
    EXPECT_EQ(event.path, row.path);
    EXPECT_EQ(event.name, row.name);
    EXPECT_NEAR(event.start_s, row.start, kTiny);
    EXPECT_NEAR(event.end_s, row.end, kTiny);
    EXPECT_EQ(event.lane, row.lane);
    EXPECT_EQ(event.flops, row.flops);
    EXPECT_NEAR(static_cast<double>(event.bytes), row.bytes, 1);
    EXPECT_EQ(event.rank, row.rank);
    EXPECT_EQ(event.step, row.microbatch);
    EXPECT_EQ(event.phase, row.phase);
    EXPECT_EQ(event.axes, row.axes);
  }
}

// Software that waits for its messages between stages: they are exposed on both sides.
TEST(WorkedStep, TwoStagesThatWaitForTheirSends) {
  SoftwareProfile profile = own_profile();
  profile.overlap_pipeline = false;
  SimResult result = run(two_stages(), profile);
  double t = kTransfer, end = 21 + 3 * t + kFirst0 + kReduce + kUpdate;
  expect_time(result.ranks[0],
              {.compute = 2 * kForward0 + 2 * kFirst0 + kSecond0 + kSecondBeside,
               .update = kUpdate,
               .exposed = {{"pp", 4 * t}, {"dp", kReduce - kSecondBeside}},
               .bubble = (12 + t - (6 + 2 * t)) + 2,
               .host = 0},
              end);
  expect_time(result.ranks[1],
              {.compute = 18,
               .update = kUpdate,
               .exposed = {{"pp", 3 * t}},
               .bubble = 3 + end - (21 + 3 * t + kUpdate),
               .host = 0},
              end);
}

// A straggler's kernels are slower; messages are not.
TEST(WorkedStep, AStragglersKernels) {
  HandProgram hand(Mesh{{{"tp", 2}}}, 0);
  hand.work(forward, kWork, "f", 3);
  hand.all_reduce(forward, "f.reduce", "tp", 2);
  hand.program.schedule = {{forward, 0, 0}};
  SimResult result = run({hand.program}, own_profile(), {.straggler = 1.5});
  expect_time(result.ranks[0],
              {.compute = 4.5, .update = 0, .exposed = {{"tp", near_all_reduce(2)}}, .bubble = 0, .host = 0},
              4.5 + near_all_reduce(2));
}

// tp shares a node, dp crosses nodes. While gradients travel between nodes, a message inside the node goes at full
// speed, and one between nodes takes twice its time for as long as both last.
TEST(WorkedStep, AMessageOnTheComputeLaneBesideBusyLinks) {
  HandProgram hand(Mesh{{{"pp", 1}, {"dp", 2}, {"tp", 2}}}, 0);
  hand.work(forward, kWork, "f", 3);
  hand.all_reduce(forward, "posted", "dp", 4).lane = Lane::comm;
  hand.all_reduce(forward, "inside", "tp", 1);
  hand.all_reduce(forward, "between", "dp", 1);
  hand.work(forward, kWork, "g", 3);
  hand.program.schedule = {{forward, 0, 0}};
  double posted = far_all_reduce(4), inside = near_all_reduce(1), between = 2 * far_all_reduce(1);
  double beside = posted - inside - between;  // what is left of it when g begins
  double slowed = 3 + 0.2 * beside;
  SimResult result = run({hand.program}, own_profile());
  expect_time(
      result.ranks[0],
      {.compute = 3 + slowed, .update = 0, .exposed = {{"tp", inside}, {"dp", between}}, .bubble = 0, .host = 0},
      3 + inside + between + slowed);
  EXPECT_NEAR(result.seconds, kSlowestOfFour * (3 + inside + between + slowed), kTiny);

  // With less left of it than the message takes, only that much more.
  HandProgram shorter(hand.program.mesh, 0);
  shorter.all_reduce(forward, "posted", "dp", 1).lane = Lane::comm;
  shorter.all_reduce(forward, "between", "dp", 4);
  shorter.program.schedule = {{forward, 0, 0}};
  expect_time(
      run({shorter.program}, own_profile()).ranks[0],
      {.compute = 0, .update = 0, .exposed = {{"dp", far_all_reduce(4) + far_all_reduce(1)}}, .bubble = 0, .host = 0},
      far_all_reduce(4) + far_all_reduce(1));
}

// Messages to the next stage share their links with gradients that travel between nodes too, and not with those inside
// a node.
TEST(WorkedStep, AMessageToAnotherStageBesideBusyLinks) {
  auto received_at = [](const std::string& axis) {
    Mesh mesh{{{"pp", 2}, {"dp", 2}, {"tp", 2}}};
    HandProgram first(mesh, 0), second(mesh, 1);
    first.work(forward, kWork, "f", 3);
    first.all_reduce(forward, "posted", axis, 4).lane = Lane::comm;
    first.add(forward, ops::send, "send", sent_to(1, 1), {first.value("out", 1'000'000)});
    second.add(forward, ops::recv, "recv", received_from(0, 1), {}, {second.value("in", 1'000'000)});
    for (HandProgram* hand : {&first, &second}) hand->program.schedule = {{forward, 0, 0}};
    return run({first.program, second.program}, own_profile()).ranks[1].exposed.at("pp");
  };
  EXPECT_NEAR(received_at("tp"), far_message(1), kTiny);
  EXPECT_NEAR(received_at("dp"), 2 * far_message(1), kTiny);
}

// Messages of the comm lane go one after the other, and who reads what one of them makes waits for that one.
TEST(WorkedStep, AJoinWaitsForItsOwnMessage) {
  HandProgram hand(Mesh{{{"dp", 2}, {"tp", 2}}}, 0);
  hand.all_reduce(forward, "one", "dp", 2).lane = Lane::comm;
  Op& two = hand.all_reduce(forward, "two", "tp", 5);
  two.lane = Lane::comm;
  ValueId first = hand.region(forward).ops[0].outputs[0], second = two.outputs[0];
  hand.work(forward, kWork, "reads one", 3).inputs = {first};
  hand.work(forward, kWork, "reads two", 3).inputs = {second};
  hand.program.schedule = {{forward, 0, 0}};
  double one = far_all_reduce(2), both = one + near_all_reduce(5);
  double reads_one = 3 / 0.8;
  expect_time(run({hand.program}, own_profile()).ranks[0],
              {.compute = reads_one + 3,
               .update = 0,
               .exposed = {{"dp", one}, {"tp", both - one - reads_one}},
               .bubble = 0,
               .host = 0},
              both + 3);
}

// The host issues a kernel every 5 s, ahead of the device or waiting for it.
TEST(WorkedStep, TheHostIsWaitedFor) {
  HandProgram hand(Mesh{{{"dp", 1}}}, 0);
  for (const char* path : {"a", "b", "c"}) hand.work(forward, kWork, path, 3);
  hand.program.schedule = {{forward, 0, 0}};
  SoftwareProfile profile = own_profile();
  profile.host_s_per_kernel = 5;
  SimResult ahead = run({hand.program}, profile);
  expect_time(ahead.ranks[0], {.compute = 9, .update = 0, .exposed = {}, .bubble = 0, .host = 9},
              18);                        // issued at 5, 10 and 15
  EXPECT_NEAR(ahead.seconds, 18, kTiny);  // one device has no slowest
  profile.launches_wait = true;
  expect_time(run({hand.program}, profile).ranks[0],
              {.compute = 9, .update = 0, .exposed = {}, .bubble = 0, .host = 15}, 24);
}

// A weight that two stages hold: whoever comes first waits, and both for the sum, which travels in 2 bytes an element.
TEST(WorkedStep, ASumBetweenStages) {
  Mesh mesh{{{"pp", 2}, {"dp", 2}}};
  std::vector<Program> programs;
  for (int stage : {0, 1}) {
    HandProgram hand(mesh, stage);
    hand.work(forward, kWork, "f", stage == 0 ? 3 : 5);
    ValueId x = hand.value("grad.embedding", 2'000'000, ValueKind::gradient),
            y = hand.value("sum", 2'000'000, ValueKind::gradient);
    hand.add(update, ops::sum_stages, "tied", {{"stages", std::vector<int64_t>{0, 1}}}, {x}, {y});
    hand.program.schedule = {{forward, 0, 0}, {update, 0, 0}};
    programs.push_back(hand.program);
  }
  SoftwareProfile profile = own_profile();
  profile.gradient_wire_bytes = 2;
  SimResult result = run(programs, profile);
  double sum = far_all_reduce(1);
  expect_time(result.ranks[0], {.compute = 3, .update = 0, .exposed = {{"pp", sum}}, .bubble = 2, .host = 0}, 5 + sum);
  expect_time(result.ranks[1], {.compute = 5, .update = 0, .exposed = {{"pp", sum}}, .bubble = 0, .host = 0}, 5 + sum);
  EXPECT_EQ(result.slowest, 1);
}

TEST(WorkedStep, WorkOfRegions) {
  Machine machine = machine_on_paper();
  Pricer pricer(machine, machine.tables, own_profile());
  std::vector<Program> programs = two_stages();
  auto expect_work = [&](const RegionWork& work, const RegionWork& expected) {
    EXPECT_NEAR(work.compute, expected.compute, kTiny);
    EXPECT_NEAR(work.messages, expected.messages, kTiny);
    EXPECT_NEAR(work.beside, expected.beside, kTiny);
    EXPECT_NEAR(work.at_last, expected.at_last, kTiny);
    EXPECT_NEAR(work.beside_at_last, expected.beside_at_last, kTiny);
    EXPECT_NEAR(work.arrives_after, expected.arrives_after, kTiny);
  };
  expect_work(region_work(programs[0], programs[0].regions[0], pricer),
              {.compute = kForward0, .arrives_after = kTransfer});
  expect_work(region_work(programs[0], programs[0].regions[1], pricer),
              {.compute = kFirst0 + kSecond0, .beside_at_last = kReduce});
  expect_work(region_work(programs[1], programs[1].regions[1], pricer),
              {.compute = kBackward1, .arrives_after = kTransfer});

  // Sent early and waited for nowhere; a collective on each lane, and one of the last microbatch.
  HandProgram hand(Mesh{{{"pp", 2}, {"dp", 2}, {"tp", 2}}}, 0);
  ValueId x = hand.value("x", 1'000'000);
  hand.work(forward, kWork, "a", 3);
  hand.add(forward, ops::send, "early", sent_to(1, 1), {x});
  hand.all_reduce(forward, "tp", "tp", 1);
  hand.work(forward, kWork, "b", 4);
  hand.all_reduce(forward, "beside", "dp", 2).lane = Lane::comm;
  hand.all_reduce(forward, "last", "dp", 1).runs_for = RunsFor::last_microbatch;
  Pricer another(machine, machine.tables, own_profile());  // a pricer is for one mesh
  expect_work(region_work(hand.program, hand.program.regions[0], another),
              {.compute = 7 + near_all_reduce(1),
               .messages = near_all_reduce(1),
               .beside = far_all_reduce(2),
               .at_last = far_all_reduce(1),
               .beside_at_last = 0,
               .arrives_after = far_message(1) - 4 - near_all_reduce(1)});
}

// Copies between the spaces are told from messages; those of the last microbatch may end during the update, and of the
// update's the last that is read counts.
TEST(WorkedStep, WorkOfCopies) {
  constexpr double kCopyStart = 1e-5;
  Machine machine = machine_on_paper();
  machine.host = {.link_bytes_per_s = kMega, .memory_bytes_per_s = kMega, .memory_bytes = 1e9};
  Pricer pricer(machine, machine.tables, own_profile());
  HandProgram hand(Mesh{{{"pp", 1}, {"dp", 2}}}, 0);
  auto copy = [&](RegionKind kind, const std::string& path, double megabytes) {
    ValueId from = hand.value(path + ".device", static_cast<int64_t>(megabytes * kMega)),
            to = hand.value(path + ".host", static_cast<int64_t>(megabytes * kMega));
    hand.program.values[static_cast<size_t>(to)].space = MemorySpace::host;
    hand.add(kind, ops::space_copy, path, {}, {from}, {to}).lane = Lane::comm;
    return to;
  };
  hand.work(backward, kWork, "a", 3);
  hand.all_reduce(backward, "sum", "dp", 2).lane = Lane::comm;
  copy(backward, "saved", 1);
  copy(backward, "gradient", 4);
  hand.program.regions[0].ops.back().runs_for = RunsFor::last_microbatch;
  const RegionWork work = region_work(hand.program, hand.program.regions[0], pricer);
  EXPECT_NEAR(work.compute, 3, kTiny);
  EXPECT_NEAR(work.beside, near_all_reduce(2) + kCopyStart + 1, kTiny);
  EXPECT_NEAR(work.copies, kCopyStart + 1, kTiny);
  EXPECT_NEAR(work.beside_at_last, 0, kTiny);
  EXPECT_NEAR(work.copies_at_last, kCopyStart + 4, kTiny);

  copy(update, "first", 2);
  ValueId read = copy(update, "second", 3);
  copy(update, "behind", 5);
  hand.work(update, kWork, "step", 3).inputs = {read};
  EXPECT_NEAR(region_work(hand.program, hand.program.regions[1], pricer).beside, 2 * kCopyStart + 5, kTiny);
}

double attention_flops(int cp, Pricer& pricer) {
  Mesh mesh{{{"pp", 1}, {"dp", 1}, {"cp", cp}, {"tp", 1}}};
  ModelSpec spec{.architecture = "llama",
                 .layers = 2,
                 .hidden = 64,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 16,
                 .ffn = 128,
                 .vocab = 256,
                 .max_seq = 96,
                 .init_std = 0.02};
  Graph graph = build_model(spec, {.batch = 3, .seq = 96, .dtype = DType::bf16}, mesh);
  LowerOptions options{.train = Optimizer{}, .pipeline = make_schedule("1f1b", {1, 1, 1})};
  double sum = 0;
  for (const Program& program : lower_all(std::move(graph), planned_target(own_profile()), options))
    for (const Region& region : program.regions)
      for (const Op& op : region.ops)
        if (op.def->name.starts_with("attention")) sum += pricer.price(program, op).flops;
  return sum * cp;  // every rank runs the same program
}

// The ranks of a ring share one causal square, forward and backward: none of it is computed twice, none is left out.
TEST(WorkedStep, RingStepsSumToTheAttentionOfOneRank) {
  Machine machine = machine_on_paper();
  Pricer pricer(machine, machine.tables, own_profile());
  double one = attention_flops(1, pricer);
  // 2 layers · (2 + 5 GEMMs) · 2 flops · 3 sequences · 4 heads · 96·97/2 pairs · 16
  EXPECT_DOUBLE_EQ(one, 2.0 * 7 * 2 * 3 * 4 * (96 * 97 / 2.0) * 16);
  for (int cp : {2, 3, 4, 8}) EXPECT_NEAR(attention_flops(cp, pricer) / one, 1, 1e-12) << "cp " << cp;
}

}  // namespace
}  // namespace sextant
