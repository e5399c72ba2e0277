// The simulator against what can be known otherwise: the bubble of a schedule, ops one after the other, messages hidden
// behind compute, and an op that a test adds.
#include "exec/sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cost/planned_target.h"
#include "models/model.h"
#include "ops/ops.h"
#include "passes/lower.h"

namespace sextant {
namespace {

// Every op takes a time that its shapes decide; links as given.
Machine machine_with_links(double near, double far) {
  Machine machine;
  machine.device = {
      .units = 10, .peaks = {{"bf16", 1e13}, {"fp32", 1e13}}, .memory_bytes = 1e10, .memory_bytes_per_s = 1e12};
  machine.devices_per_node = 4;
  machine.levels = {{.name = "node", .devices = 4, .link = {near, 0}},
                    {.name = "cluster", .devices = 0, .link = {far, 0}}};
  machine.tables = {.product = 1,
                    .attention = 1,
                    .memory = 1,
                    .near_link = 1,
                    .far_link = 1,
                    .near_overlap = 1,
                    .far_overlap = 1,
                    .kernel_s = 1e-6,
                    .imbalance = 1};
  return machine;
}

ModelSpec spec() {
  return {.architecture = "llama",
          .layers = 8,
          .hidden = 256,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 64,
          .ffn = 512,
          .vocab = 1024,
          .max_seq = 128,
          .init_std = 0.02};
}

// Two of eight experts for each token.
ModelSpec spec_with_experts() {
  ModelSpec sparse = spec();
  sparse.architecture = "mixtral";
  sparse.experts = ExpertsSpec{.count = 8, .per_token = 2, .ffn = 512};
  return sparse;
}

struct Layout {
  int dp = 1, ep = 1, tp = 1, pp = 1, microbatches = 4, zero = 0;
  bool overlap = true, sequence_parallel = false;
  const char* schedule = "1f1b";
};

std::vector<Program> lowered(const Layout& layout, const std::function<void(Graph&)>& change = {}) {
  Mesh mesh{{{"pp", layout.pp}, {"dp", layout.dp}, {"dp_ep", layout.ep}, {"cp", 1}, {"tp", layout.tp}}};
  Use use{.batch = layout.dp * layout.ep,
          .seq = 128,
          .dtype = DType::bf16,
          .parallel = {.sequence = layout.sequence_parallel, .zero = layout.zero}};
  Graph graph = build_model(layout.ep > 1 ? spec_with_experts() : spec(), use, mesh);
  if (change) change(graph);
  LowerOptions options{.train = Optimizer{},
                       .pipeline = make_schedule(layout.schedule, {layout.pp, 1, layout.microbatches})};
  options.plan = {.zero = layout.zero, .microbatches = layout.microbatches, .overlap = layout.overlap};
  return lower_all(std::move(graph), planned_target(own_profile()), options);
}

SimResult run(const std::vector<Program>& programs, const Machine& machine, SoftwareProfile profile = own_profile(),
              SimOptions options = {}) {
  Pricer pricer(machine, machine.tables, profile);
  return simulate(programs, pricer, options);
}

TEST(Simulate, OneRankTakesTheSumOfItsOps) {
  Machine machine = machine_with_links(1e11, 1e10);
  std::vector<Program> programs = lowered({.microbatches = 3});
  Pricer pricer(machine, machine.tables, own_profile());
  SoftwareProfile profile = own_profile();
  Pricer own(machine, machine.tables, profile);
  double sum = 0;
  for (const Action& action : programs[0].schedule)
    for (const Region& region : programs[0].regions)
      if (region.kind == action.region && region.chunk == action.chunk)
        for (const Op& op : region.ops) sum += own.price(programs[0], op).seconds;
  SimResult result = run(programs, machine);
  EXPECT_NEAR(result.seconds, sum, 1e-12);
  EXPECT_NEAR(result.ranks[0].total(), result.seconds, 1e-12);
}

// With equal stages and instant messages, idle time is (p − 1)/(m + p − 1) of the step but for the update.
TEST(Simulate, TheBubbleIsTheSchedules) {
  Machine machine = machine_with_links(1e18, 1e18);
  Layout layout{.pp = 4, .microbatches = 8};
  SimResult result = run(lowered(layout), machine);
  // Inner stages have two blocks and nothing else, so their forward and backward are alike.
  const RankTime& inner = result.ranks[1];
  double idle = inner.bubble / (result.seconds - inner.update);
  EXPECT_NEAR(idle, 3.0 / 11, 0.12);
  for (const RankTime& rank : result.ranks) EXPECT_NEAR(rank.total(), result.seconds, 1e-9);
}

TEST(Simulate, MessagesHideBehindCompute) {
  Machine slow = machine_with_links(2e9, 1e9);
  SoftwareProfile profile = own_profile();
  double with = run(lowered({.dp = 2}), slow).seconds;
  profile.overlap_gradients = false;
  double without = run(lowered({.dp = 2}), slow, profile).seconds;
  EXPECT_LT(with, without);
  // Never faster than without any message.
  EXPECT_GE(with, run(lowered({.dp = 2}), machine_with_links(1e18, 1e18)).seconds);
}

// Software that does not reduce gradients beside backward does so after all of it: every stage at the same time, so
// that a step is longer by the reductions of one stage, not by those of all stages one after the other.
TEST(Simulate, ReductionsThatAreWaitedForHoldUpNoOtherStage) {
  SoftwareProfile profile = own_profile();
  profile.overlap_gradients = false;
  std::vector<Program> programs = lowered({.dp = 2, .pp = 4});
  SimResult slow = run(programs, machine_with_links(2e9, 1e18), profile);
  double most = 0;
  for (const RankTime& rank : slow.ranks) most = std::max(most, rank.exposed.at("dp"));
  double longer = slow.seconds - run(programs, machine_with_links(1e18, 1e18), profile).seconds;
  EXPECT_GT(longer, 0.5 * most);
  EXPECT_LT(longer, 1.05 * most);
}

// Messages inside a node slow compute by one efficiency, those between nodes by the other. All of backward's reductions
// fit under compute here, so that a step is longer by what compute loses beside them: (1 / speed − 1) of their time at
// most.
TEST(Simulate, ComputeIsSlowerBesideMessagesOfEachLevel) {
  std::vector<Program> near = lowered({.dp = 4}), far = lowered({.dp = 8});
  Machine machine = machine_with_links(1e11, 1e11);
  double near_alone = run(near, machine).seconds, far_alone = run(far, machine).seconds;
  machine.tables.near_overlap = 0.8;
  EXPECT_GT(run(near, machine).seconds, 1.001 * near_alone);
  EXPECT_EQ(run(far, machine).seconds, far_alone);
  EXPECT_LT(run(near, machine).seconds, near_alone / 0.8);
  machine.tables.near_overlap = 1, machine.tables.far_overlap = 0.8;
  EXPECT_EQ(run(near, machine).seconds, near_alone);
  EXPECT_GT(run(far, machine).seconds, 1.001 * far_alone);
  EXPECT_LT(run(far, machine).seconds, far_alone / 0.8);
}

// Where operands cost nothing to quantise, GEMMs of blocks take what their units' peak says; without such units they
// stay as they are.
TEST(Simulate, NarrowProductsRunAtTheRateOfTheirUnits) {
  Machine machine = machine_with_links(1e18, 1e18);
  machine.device.peaks = {{"bf16", 1e12}, {"fp8", 2e12}, {"fp4", 4e12}};
  machine.device.memory_bytes_per_s = 1e20, machine.tables.kernel_s = 0;
  std::vector<Program> programs = lowered({});
  auto linears = [&](Products products) {
    SoftwareProfile profile = own_profile();
    profile.products = products;
    Pricer pricer(machine, machine.tables, profile);
    double sum = 0;
    for (const Region& region : programs[0].regions)
      for (const Op& op : region.ops)
        if (op.path.starts_with("layers.") && !local_cost(programs[0], op).gemms.empty() &&
            !local_cost(programs[0], op).attention)
          sum += pricer.price(programs[0], op).seconds;
    return sum;
  };
  double held = linears(Products::as_held);
  ASSERT_GT(held, 0);
  EXPECT_NEAR(linears(Products::mxfp8), held / 2, 1e-6 * held);
  EXPECT_NEAR(linears(Products::nvfp4), held / 4, 1e-6 * held);
  machine.device.peaks.erase("fp4");
  EXPECT_EQ(linears(Products::nvfp4), held);
}

// One stage, two microbatches at a time: messages of tensor parallelism, which a microbatch alone waits for, travel
// under the other's compute. Less than no message at all it cannot take.
TEST(Simulate, PairsHideMessagesOfTensorParallelism) {
  Machine machine = machine_with_links(2e10, 1e10);
  double apart = run(lowered({.tp = 2, .microbatches = 8}), machine).seconds;
  SimResult paired = run(lowered({.tp = 2, .microbatches = 8, .schedule = "combined-1f1b"}), machine);
  Machine free = machine_with_links(1e18, 1e18);
  double without = run(lowered({.tp = 2, .microbatches = 8, .schedule = "combined-1f1b"}), free).seconds;
  EXPECT_LT(paired.seconds, apart);
  EXPECT_LT(paired.seconds - without, 0.5 * (apart - without));
  EXPECT_GE(paired.seconds, without);
  EXPECT_NEAR(paired.ranks[0].total(), paired.seconds, 1e-9);
  double off =
      run(lowered({.tp = 2, .microbatches = 8, .overlap = false, .schedule = "combined-1f1b"}), machine).seconds;
  EXPECT_NEAR(off, run(lowered({.tp = 2, .microbatches = 8, .overlap = false}), machine).seconds, 1e-9);
}

// Experts on other ranks: tokens travel there and back in every layer, forward and backward. On one stage a microbatch
// waits for its own; beside another one's compute most of that is hidden, and nothing else of the step changes.
TEST(Simulate, PairsHideMessagesOfExperts) {
  Machine machine = machine_with_links(2e10, 1e10), free = machine_with_links(1e18, 1e18);
  auto seconds_for_experts = [](const SimResult& result) {
    auto found = result.ranks[0].exposed.find("dp_ep");
    return found == result.ranks[0].exposed.end() ? 0 : found->second;
  };
  Layout apart{.ep = 4, .microbatches = 8}, paired{.ep = 4, .microbatches = 8, .schedule = "combined-1f1b"};
  SimResult one_by_one = run(lowered(apart), machine), beside = run(lowered(paired), machine);
  EXPECT_GT(seconds_for_experts(one_by_one), 0);
  EXPECT_LT(seconds_for_experts(beside), 0.5 * seconds_for_experts(one_by_one));
  EXPECT_LT(beside.seconds, one_by_one.seconds);
  EXPECT_GE(beside.seconds, run(lowered(paired), free).seconds);
  EXPECT_NEAR(beside.ranks[0].compute, one_by_one.ranks[0].compute, 1e-9);
}

// In the timeline itself: while a message of one microbatch's experts is on its way, an op of another computes.
TEST(Simulate, MessagesOfExpertsTravelBesideTheOtherMicrobatch) {
  std::vector<Program> programs = lowered({.ep = 4, .microbatches = 8, .schedule = "combined-1f1b"});
  SimResult result = run(programs, machine_with_links(2e10, 1e10), own_profile(), {.trace = KeepTrace::yes});
  int messages = 0, beside = 0;
  for (const Event& message : result.trace) {
    if (message.axes != "dp_ep" || message.phase == "update") continue;
    ++messages;
    beside += std::ranges::any_of(result.trace, [&](const Event& op) {
      return op.axes.empty() && op.step != message.step && op.start_s < message.end_s && message.start_s < op.end_s;
    });
  }
  EXPECT_GE(messages, 8 * 8 * 2);  // of every microbatch and layer, forward and backward
  EXPECT_GT(beside, messages / 2) << messages;
}

TEST(Simulate, TensorParallelMessagesAreExposed) {
  SimResult result = run(lowered({.tp = 2}), machine_with_links(1e10, 1e9));
  EXPECT_GT(result.ranks[0].exposed.at("tp"), 0);
  EXPECT_EQ(result.ranks[0].bubble, 0);
}

// Facts of a profile about ZeRO and its host: each costs time, and only where there is something to pay for.
TEST(Simulate, WhatASoftwareProfileWaitsForTakesTime) {
  Machine machine = machine_with_links(1e10, 1e9);
  std::vector<Program> sharded = lowered({.dp = 8, .zero = 1}), whole = lowered({.dp = 8});
  SoftwareProfile plain = own_profile();
  plain.host_s_per_kernel = 1e-6;
  double before = run(sharded, machine, plain).seconds, before_whole = run(whole, machine, plain).seconds;
  for (bool SoftwareProfile::*fact :
       {&SoftwareProfile::zero_all_reduces, &SoftwareProfile::zero_waits, &SoftwareProfile::zero_broadcasts}) {
    SoftwareProfile profile = plain;
    profile.*fact = true;
    EXPECT_GT(run(sharded, machine, profile).seconds, before);
    EXPECT_EQ(run(whole, machine, profile).seconds,
              before_whole);  // without ZeRO nothing is reduced in parts or gathered
  }
  SoftwareProfile waiting = plain;
  waiting.launches_wait = true;
  EXPECT_GT(run(whole, machine, waiting).seconds, before_whole);
}

TEST(Simulate, CutUpBesideGemmsAPartOfATensorMessageIsLeft) {
  Machine machine = machine_with_links(1e10, 1e9);
  SoftwareProfile cut = own_profile();
  cut.overlap_tensor = true;
  std::vector<Program> split = lowered({.tp = 2}), sharded = lowered({.dp = 8, .zero = 1});
  EXPECT_NEAR(run(split, machine, cut).ranks[0].exposed.at("tp"), 0.6 * run(split, machine).ranks[0].exposed.at("tp"),
              1e-12);
  EXPECT_EQ(run(sharded, machine, cut).seconds, run(sharded, machine).seconds);  // other axes are not theirs to hide
}

// Gradients of inputs of split linears are summed while the weights' are computed: over links so slow that a sum
// outlasts every GEMM, what is hidden is the time of those GEMMs.
TEST(Simulate, WhatBackwardNeedNotWaitForRunsBesideAGemm) {
  constexpr int kMicrobatches = 4;
  SoftwareProfile hiding = own_profile();
  hiding.overlap_tensor_backward = true;
  std::vector<Program> split = lowered({.tp = 2, .microbatches = kMicrobatches}),
                       sharded = lowered({.dp = 8, .zero = 1});
  auto hidden = [&](const Machine& machine) {
    return run(split, machine).ranks[0].exposed.at("tp") - run(split, machine, hiding).ranks[0].exposed.at("tp");
  };
  Machine slow = machine_with_links(1e6, 1e6), fast = machine_with_links(1e12, 1e12);
  Pricer pricer(slow, slow.tables, own_profile());
  double beside = 0;
  for (const Region& region : split[0].regions)
    for (const Op& op : region.ops)
      if (op.def == &ops::linear_weight_gradient &&
          (op.path.find(".qkv.") != op.path.npos || op.path.find(".gate_up.") != op.path.npos))
        beside += kMicrobatches * pricer.price(split[0], op).seconds;
  EXPECT_NEAR(hidden(slow), beside, 1e-9);
  double at_full_speed = hidden(fast);
  fast.tables.near_overlap = 0.75;  // beside a message a GEMM takes longer
  EXPECT_LT(hidden(fast), at_full_speed);
  EXPECT_GE(hidden(fast), 0.75 * at_full_speed);
  EXPECT_EQ(run(sharded, slow, hiding).seconds, run(sharded, slow).seconds);  // other axes are not theirs to hide
  // Where messages are cut up as well, each waits for the less of the two.
  SoftwareProfile both_ways = hiding;
  both_ways.overlap_tensor = true;
  auto left = [&](const Machine& machine, const SoftwareProfile& profile) {
    return run(split, machine, profile).ranks[0].exposed.at("tp");
  };
  EXPECT_NEAR(left(slow, both_ways), 0.6 * left(slow, own_profile()), 1e-9);
  Machine at_once = machine_with_links(1e12, 1e12);
  EXPECT_LT(left(at_once, both_ways), left(at_once, hiding));
  EXPECT_GE(left(at_once, both_ways), 0.6 * left(at_once, hiding));
  // A reduction that stands between them for the last microbatch only does not come between them in the others.
  SoftwareProfile waiting = own_profile(), waiting_hiding = hiding;
  waiting.zero_waits = waiting_hiding.zero_waits = true;
  std::vector<Program> both = lowered({.dp = 2, .tp = 2, .microbatches = kMicrobatches, .zero = 1});
  EXPECT_NEAR(
      run(both, slow, waiting).ranks[0].exposed.at("tp") - run(both, slow, waiting_hiding).ranks[0].exposed.at("tp"),
      beside, 1e-9);
}

TEST(Simulate, WhatIsKeptWholeIsNotGatheredAgain) {
  Machine machine = machine_with_links(1e10, 1e9);
  SoftwareProfile keeping = own_profile();
  keeping.keeps_gathered = true;
  std::vector<Program> split = lowered({.tp = 2, .microbatches = 1, .sequence_parallel = true}),
                       whole = lowered({.tp = 2});
  Pricer pricer(machine, machine.tables, own_profile());
  double again = 0;
  int gathers = 0;
  for (const Region& region : split[0].regions)
    for (const Op& op : region.ops)
      if (op.phase == Phase::recompute && op.def == &ops::redistribute)
        again += pricer.price(split[0], op).seconds, ++gathers;
  EXPECT_EQ(gathers, 8 * 2 + 1);  // attention and MLP of each layer, and the head
  EXPECT_NEAR(run(split, machine, keeping).ranks[0].exposed.at("tp"),
              run(split, machine).ranks[0].exposed.at("tp") - again, 1e-12);
  EXPECT_EQ(run(whole, machine, keeping).seconds, run(whole, machine).seconds);
}

TEST(Simulate, SoftwareThatKeepsLogitsMakesThemOnce) {
  Machine machine = machine_with_links(1e18, 1e18);
  SoftwareProfile keeping = own_profile();
  keeping.keeps_logits = true;
  std::vector<Program> split = lowered({.tp = 2, .microbatches = 1}), whole = lowered({.microbatches = 1});
  Pricer pricer(machine, machine.tables, own_profile());
  double twice = 0;
  for (const Region& region : split[0].regions)
    for (const Op& op : region.ops)
      if (op.def == &ops::head_lse) twice += pricer.price(split[0], op).seconds;
  EXPECT_GT(twice, 0);
  EXPECT_NEAR(run(split, machine, keeping).seconds, run(split, machine).seconds - twice, 1e-12);
  EXPECT_EQ(run(whole, machine, keeping).seconds, run(whole, machine).seconds);
}

TEST(Simulate, StepsThatAreWrittenOutTakeTime) {
  Machine machine = machine_with_links(1e10, 1e9);
  std::vector<Program> programs = lowered({.dp = 8, .zero = 1});
  SoftwareProfile plain = own_profile();
  double before = run(programs, machine, plain).seconds;
  SoftwareProfile loss = plain, ops = plain, together = plain;
  loss.loss_eager = true;
  ops.eager_ops = {"swiglu", "rope"};
  EXPECT_GT(run(programs, machine, loss).seconds, before);
  EXPECT_GT(run(programs, machine, ops).seconds, before);
  // Messages that leave in one call pay their hops, but no start of their own.
  together.zero_waits = plain.zero_waits = true;
  together.zero_coalesces = true;
  EXPECT_LT(run(programs, machine, together).seconds, run(programs, machine, plain).seconds);
}

TEST(Simulate, AnOpThatATestAddsTakesTime) {
  Machine machine = machine_with_links(1e11, 1e10);
  OpDef slow = ops::gelu;  // a kind that nobody has heard of
  slow.name = "slow_gelu_of_this_test";
  slow.cost = [](const Attrs&, auto, auto) { return Cost{.read = {int64_t{1} << 30}}; };
  auto add = [&](Graph& graph) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      if (graph.ops[i].def != &ops::swiglu) continue;
      Op more = make_op(graph, slow, {graph.ops[i].outputs[0]}, {}, "added");
      more.block = graph.ops[i].block;
      graph[more.outputs[0]].layout = graph[graph.ops[i].outputs[0]].layout;
      for (size_t k = i + 1; k < graph.ops.size(); ++k)
        for (ValueId& id : graph.ops[k].inputs)
          if (id == graph.ops[i].outputs[0]) id = more.outputs[0];
      graph.ops.insert(graph.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, more);
      return;
    }
  };
  double before = run(lowered({.microbatches = 2}), machine).seconds;
  double after = run(lowered({.microbatches = 2}, add), machine).seconds;
  double once = static_cast<double>(int64_t{1} << 30) / 1e12;
  EXPECT_GT(after - before, 2 * once);
}

TEST(Simulate, TracesTellEveryOpInOrder) {
  SimResult result = run(lowered({.pp = 2}), machine_with_links(1e11, 1e10), own_profile(), {.trace = KeepTrace::yes});
  ASSERT_FALSE(result.trace.empty());
  std::map<std::pair<int, std::string>, double> end;
  for (const Event& event : result.trace) {
    EXPECT_LE(event.start_s, event.end_s);
    EXPECT_LE(event.end_s, result.seconds + 1e-9);
    if (event.lane != "compute") continue;
    double& last = end[{event.rank, event.lane}];
    EXPECT_GE(event.start_s, last - 1e-12) << event.path;
    last = event.end_s;
  }
}

// By rank, lane, microbatch, phase and axes as long as op by op, in far fewer events that keep their order.
TEST(Simulate, TracesOfPassesTakeAsLong) {
  using Kind = std::tuple<int, std::string, int64_t, std::string, std::string>;
  std::vector<Program> programs = lowered({.tp = 2, .pp = 2, .microbatches = 4});
  std::map<Kind, double> seconds[2];
  std::map<int, double> compute_end;
  size_t events[2] = {};
  for (int passes : {0, 1}) {
    SimResult result = run(programs, machine_with_links(1e11, 1e10), own_profile(),
                           {.trace = passes ? KeepTrace::passes : KeepTrace::yes});
    events[passes] = result.trace.size();
    for (const Event& event : result.trace) {
      seconds[passes][{event.rank, event.lane, event.step, event.phase, event.axes}] += event.end_s - event.start_s;
      EXPECT_LE(event.end_s, result.seconds + 1e-9);
      if (!passes || event.lane != "compute") continue;
      EXPECT_GE(event.start_s, compute_end[event.rank] - 1e-12);
      compute_end[event.rank] = event.end_s;
    }
  }
  EXPECT_LT(4 * events[1], events[0]);
  ASSERT_EQ(seconds[0].size(), seconds[1].size());
  for (const auto& [kind, length] : seconds[0]) EXPECT_NEAR(seconds[1].at(kind), length, 1e-9);
}

TEST(Simulate, AStragglerFactorIsThatOfEveryRank) {
  Machine machine = machine_with_links(1e11, 1e10);
  std::vector<Program> programs = lowered({.pp = 2, .microbatches = 3});
  SimResult plain = run(programs, machine), slow = run(programs, machine, own_profile(), {.straggler = 2});
  ASSERT_EQ(plain.ranks.size(), 2u);
  for (size_t rank = 0; rank < plain.ranks.size(); ++rank)
    EXPECT_NEAR(slow.ranks[rank].compute, 2 * plain.ranks[rank].compute, 1e-9) << "rank " << rank;
}

TEST(Simulate, StragglersAndJitter) {
  Machine machine = machine_with_links(1e11, 1e10);
  std::vector<Program> programs = lowered({});
  double plain = run(programs, machine).seconds;
  EXPECT_NEAR(run(programs, machine, own_profile(), {.straggler = 1.5}).seconds, 1.5 * plain, 1e-9);
  double noisy = run(programs, machine, own_profile(), {.jitter = 0.1}).seconds;
  EXPECT_NE(noisy, plain);
  EXPECT_NEAR(noisy, plain, 0.05 * plain);
}

}  // namespace
}  // namespace sextant
