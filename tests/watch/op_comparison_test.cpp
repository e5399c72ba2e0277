// Ops of a run beside its plan, from files made by the test: which is slow, on which rank, since when.
#include "watch/op_comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_files.h"

namespace sextant {
namespace {

constexpr std::string_view kPlan =
    R"({"machine":"here","step":{"seconds":0.02},"ops":[[0,"linear","layers.*.qkv",8,0.004],[0,"rms_norm","layers.*.norm",8,0.001],[0,"redistribute","grad.bucket",1,0.002],"bad",[0,"x"]]})";

// A line of ops/rank-N.jsonl; times in milliseconds.
std::string timed_line(int step, int rank, double linear, double norm, double message) {
  return fmt::format(
             R"({{"step":{},"rank":{},"stage":0,"ops":[["linear","layers.*.qkv",8,{}],["rms_norm","layers.*.norm",8,{}],["redistribute","grad.bucket",1,{}]]}})",
             step, rank, linear / 1e3, norm / 1e3, message / 1e3) +
         "\n";
}

const ComparedOp& op_named(const OpComparison& comparison, std::string_view name) {
  for (const ComparedOp& op : comparison.ops)
    if (op.op == name) return op;
  ADD_FAILURE() << "no " << name;
  return comparison.ops.front();
}

TEST(OpComparisons, NameTheSlowOpItsRankAndItsStep) {
  RunFiles files("ops");
  files.write("r/plan.json", std::string(kPlan) + "\n");
  for (int rank = 0; rank < 4; ++rank)
    for (int step = 100; step <= 1000; step += 100) {
      bool slow = rank == 2 && step >= 600;
      files.append(fmt::format("r/ops/rank-{}.jsonl", rank),
                   timed_line(step, rank, slow ? 9 : 4.2, 1.05, slow ? 2 : 7));
    }
  files.append("r/ops/rank-0.jsonl", "{\"step\":1100,\"ra");  // torn
  OpComparison found = compare_ops(files / "r");
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.plan->machine, "here");
  EXPECT_EQ(found.plan->seconds, 0.02);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.steps.size(), 10u);
  ASSERT_EQ(found.ops.size(), 3u);
  const ComparedOp& linear = op_named(found, "linear");
  EXPECT_EQ(linear.rank, 2);
  EXPECT_EQ(linear.since_step, 600);
  EXPECT_NEAR(*linear.rank_s, 0.009, 1e-9);
  EXPECT_NEAR(*linear.measured_s, 0.0042, 1e-9);
  EXPECT_NEAR(*linear.slowdown, 9 / 4.0, 1e-9);
  const ComparedOp& norm = op_named(found, "rms_norm");
  EXPECT_FALSE(norm.rank || norm.since_step);
  EXPECT_NEAR(*norm.slowdown, 1.05, 1e-9);
  // Who waits is not who is slow.
  EXPECT_TRUE(op_named(found, "redistribute").is_message);
  EXPECT_FALSE(op_named(found, "redistribute").rank);
  std::string text = op_comparison_text(found);
  EXPECT_NE(text.find("linear layers.*.qkv takes 2.2 times what is predicted on rank 2, since step 600\n"), text.npos)
      << text;
  EXPECT_EQ(text.find("rms_norm layers.*.norm takes"), text.npos) << text;
  auto json = nlohmann::json::parse(op_comparison_json(found));
  EXPECT_EQ(json["plan"]["step_s"], 0.02);
  EXPECT_EQ(json["ops"].size(), 3u);
}

TEST(OpComparisons, ReadAFewStepsOfALongRun) {
  RunFiles files("ops-long");
  files.write("r/plan.json", std::string(kPlan) + "\n");
  std::string lines;
  constexpr int kSteps = 5000;
  for (int step = 1; step <= kSteps; ++step) lines += timed_line(step, 0, step >= 2000 ? 8 : 4, 1, 1);
  files.write("r/ops/rank-0.jsonl", lines);
  OpComparison found = compare_ops(files / "r");
  EXPECT_LE(found.steps.size(), 140u);
  EXPECT_GE(found.steps.size(), 128u);
  EXPECT_EQ(found.steps.front(), 1);
  for (size_t last = 0; last < 5; ++last) EXPECT_EQ(found.steps[found.steps.size() - 1 - last], kSteps - int64_t(last));
  EXPECT_NEAR(static_cast<double>(op_named(found, "linear").since_step.value_or(0)), 2000, 50);
  EXPECT_EQ(whole_body(op_comparison_pieces(files / "r")), op_comparison_json(found));
}

TEST(OpComparisons, NeedNoPlanAndNoTimes) {
  RunFiles files("ops-alone");
  files.write("r/metrics.jsonl", metrics_line(1, 5));
  OpComparison none = compare_ops(files / "r");
  EXPECT_TRUE(none.ops.empty() && !none.plan && op_comparison_text(none).empty());
  for (int step = 1; step <= 8; ++step) files.append("r/ops/rank-0.jsonl", timed_line(step, 0, step > 4 ? 8 : 4, 1, 1));
  OpComparison found = compare_ops(files / "r");
  EXPECT_EQ(op_named(found, "linear").since_step, 5);
  EXPECT_FALSE(op_named(found, "linear").rank);
  EXPECT_NEAR(*op_named(found, "linear").slowdown, 2, 1e-9);
  EXPECT_FALSE(op_named(found, "rms_norm").slowdown);
}

TEST(OpComparisons, FollowNoLinkOutOfTheRun) {
  RunFiles files("ops-link");
  files.write("outside/rank-0.jsonl", timed_line(1, 0, 4, 1, 1));
  files.write("outside/plan.json", std::string(kPlan) + "\n");
  files.write("r/metrics.jsonl", metrics_line(1, 5));
  std::filesystem::create_directory_symlink(files / "outside", files / "r/ops");
  std::filesystem::create_symlink(files / "outside/plan.json", files / "r/plan.json");
  OpComparison found = compare_ops(files / "r");
  EXPECT_TRUE(found.ops.empty());
  EXPECT_FALSE(found.plan);
}

}  // namespace
}  // namespace sextant
