#include "view/sim_timeline_svg.h"

#include <gtest/gtest.h>

#include <map>

#include "view/trace_blocks.h"
#include "view/xml_check.h"

namespace sextant {
namespace {

struct Shape {
  int ranks = 1, microbatches = 1, layers = 1, ops = 1;  // ops of a layer, each of one microsecond
};

// Forward and backward of each microbatch in turn, with a message of half that time after each layer and one beside it.
Trace made_up(const Shape& shape) {
  Trace trace;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double now = rank * 1e-6;
    for (int m = 0; m < shape.microbatches; ++m)
      for (const char* phase : {"forward", "backward"})
        for (int layer = 0; layer < shape.layers; ++layer) {
          std::string path = "layers." + std::to_string(layer) + ".mlp";
          for (int op = 0; op < shape.ops; ++op, now += 1e-6)
            trace.push_back({.path = path,
                             .name = "linear",
                             .start_s = now,
                             .end_s = now + 1e-6,
                             .rank = rank,
                             .step = m,
                             .phase = phase});
          trace.push_back({.path = path,
                           .name = "send",
                           .start_s = now,
                           .end_s = now + 2e-6,
                           .lane = "comm",
                           .rank = rank,
                           .step = m,
                           .phase = phase,
                           .axes = "dp"});
          trace.push_back({.path = path,
                           .name = "sum",
                           .start_s = now,
                           .end_s = now + 5e-7,
                           .rank = rank,
                           .step = m,
                           .phase = phase,
                           .axes = "tp"});
          now += 5e-7;
        }
    trace.push_back(
        {.path = "adamw", .name = "adamw", .start_s = now, .end_s = now + 1e-6, .rank = rank, .phase = "update"});
  }
  return trace;
}

// Seconds by rank, lane and kind: what no cutting may change.
std::map<std::string, double> sums(const Trace& trace) {
  std::map<std::string, double> out;
  for (const Event& e : trace)
    out[std::to_string(e.rank) + e.lane + (e.axes.empty() ? e.phase : "messages along " + e.axes)] +=
        e.end_s - e.start_s;
  return out;
}

std::map<std::string, double> sums(const TraceBlocks& blocks) {
  std::map<std::string, double> out;
  for (const TraceLane& lane : blocks.lanes)
    for (const TraceBlock& block : lane.blocks)
      for (size_t kind = 0; kind < block.seconds.size(); ++kind)
        if (block.seconds[kind] > 0)
          out[std::to_string(lane.rank) + lane.lane + blocks.kinds[kind].name] += block.seconds[kind];
  return out;
}

TEST(TraceBlocks, AreAsFineAsTheLimitsAllowAndLoseNoTime) {
  struct Case {
    Shape shape;
    BlockOf each;
  };
  for (const auto& [shape, each] :
       {Case{{2, 2, 4, 5}, BlockOf::op}, Case{{2, 2, 32, 10}, BlockOf::layer},
        Case{{2, 32, 32, 10}, BlockOf::microbatch}, Case{{2, 600, 2, 2}, BlockOf::moment}}) {
    Trace trace = made_up(shape);
    TraceBlocks blocks = cut_into_blocks(trace);
    EXPECT_EQ(blocks.each, each) << name_of(each);
    auto truth = sums(trace), got = sums(blocks);
    ASSERT_EQ(got.size(), truth.size());
    for (const auto& [what, seconds] : truth)
      EXPECT_NEAR(got[what], seconds, 1e-9 + 1e-6 * seconds) << name_of(each) << " " << what;
    size_t all = 0;
    for (const TraceLane& lane : blocks.lanes) all += lane.blocks.size();
    EXPECT_LE(all, 3000u);
  }
}

TEST(TraceBlocks, AWaitThatCanBeSeenEndsABlock) {
  Trace trace = made_up({1, 1, 40, 10});
  double later = trace.back().end_s;
  for (size_t i = trace.size() / 4; i < trace.size(); ++i) trace[i].start_s += later, trace[i].end_s += later;
  TraceBlocks blocks = cut_into_blocks(trace);
  ASSERT_EQ(blocks.each, BlockOf::layer);
  for (const TraceLane& lane : blocks.lanes)
    for (const TraceBlock& block : lane.blocks) EXPECT_LT(block.length(), later / 10) << block.label;
}

TEST(TraceBlocks, PhasesComeFirstInTheOrderOfAStep) {
  TraceBlocks blocks = cut_into_blocks(made_up({1, 1, 1, 1}));
  std::vector<std::string> names;
  for (const TraceKind& kind : blocks.kinds) names.push_back(kind.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"forward", "backward", "update", "messages along dp", "messages along tp"}));
}

TEST(SimTimeline, HasABlockPerEventOfASmallTrace) {
  Trace trace = made_up({2, 2, 2, 3});
  std::string svg = sim_timeline_svg(trace);
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<g><title>"), trace.size());
  EXPECT_EQ(count_of(svg, ">stage "), 2u);
  EXPECT_EQ(count_of(svg, "layers.1.mlp (linear), microbatch 1"), 2u * 2 * 3);
}

TEST(SimTimeline, TellsTheShareOfComputing) {
  // 3 µs of forward, backward and update, until the last message beside them ends at 1 + 0.5 + 1 + 2.
  EXPECT_EQ(count_of(sim_timeline_svg(made_up({1, 1, 1, 1})), ">66.7 %<"), 1u);
}

TEST(SimTimeline, StaysSmallHoweverLongTheTrace) {
  for (const Shape& shape : {Shape{64, 64, 2, 2}, Shape{1, 1, 2000, 20}, Shape{4, 2000, 2, 2}, Shape{300, 8, 2, 2}}) {
    std::string svg = sim_timeline_svg(made_up(shape));
    EXPECT_LT(svg.size(), 1'000'000u) << shape.ranks << " ranks, " << shape.microbatches << " microbatches";
    EXPECT_EQ(why_not_well_formed(svg), "");
  }
}

TEST(SimTimeline, SaysWhatItLeavesOut) {
  std::string svg = sim_timeline_svg(made_up({40, 1, 1, 1}));
  EXPECT_EQ(count_of(svg, ">stage "), 32u);
  EXPECT_EQ(count_of(svg, "8 more, left out"), 1u);
  EXPECT_EQ(count_of(svg, ">stage 39<"), 1u);
}

TEST(SimTimeline, HostileWordsAreWords) {
  Trace trace = made_up({1, 1, 1, 1});
  for (Event& e : trace)
    e.path = e.name = e.phase = kHostile, e.lane = e.axes.empty() ? "compute" : kHostile,
    e.axes = e.axes.empty() ? "" : kHostile;
  std::string svg = sim_timeline_svg(trace, {.title = kHostile, .row = kHostile});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<script"), 0u);
}

TEST(SimTimeline, NothingToDrawIsStillAPicture) {
  EXPECT_EQ(why_not_well_formed(sim_timeline_svg({})), "");
}

}  // namespace
}  // namespace sextant
