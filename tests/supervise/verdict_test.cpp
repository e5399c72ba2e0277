// Verdicts from replays of a step that was not finite, and the policy that follows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "supervise/retry_policy.h"
#include "supervise/step_verdict.h"

namespace sextant {
namespace {

std::string printed(const char* numbers, const char* verdict, const char* non_finite = "null") {
  return fmt::format(
      R"({{"run":"r","executions":[{{"step":3,{0}}},{{"step":3,{0}}}],"verdict":"{1}","bisect":{{"non_finite":{2}}}}})",
      numbers, verdict, non_finite);
}
constexpr const char* kFinite = R"("loss":5.5,"grad_norm":1.5)";
constexpr const char* kNan = R"("loss":"nan","grad_norm":"nan")";
constexpr const char* kOp =
    R"({"op":"layers.7.mlp.gelu","kind":"gelu","layer":7,"rank":2,"document":{"file":"/data/books.bin","token":201,"document":17,"source":{"file":"books.jsonl","record":43}}})";

TEST(Verdicts, AreReadOffWhatReplayPrints) {
  ReplayFacts facts = parse_replay("a warning\n" + printed(kNan, "reproducible", kOp)).value();
  EXPECT_FALSE(facts.finite);
  EXPECT_TRUE(facts.agree);
  EXPECT_EQ(facts.first_op, "layers.7.mlp.gelu (gelu), layer 7, on rank 2");
  EXPECT_EQ(facts.document, "/data/books.bin: document 17 (books.jsonl:43), token 201");
  EXPECT_TRUE(parse_replay(printed(kFinite, "transient"))->finite);
  EXPECT_FALSE(parse_replay(printed(kNan, "persistent"))->agree);
  for (const char* text :
       {"", "sextant: no such step", "{", "[]", "{}", R"({"executions":[]})", R"({"executions":[1]})"})
    EXPECT_FALSE(parse_replay(text)) << text;
}

TEST(Verdicts, FollowFromWhereItHappensAgain) {
  ReplayFacts finite = parse_replay(printed(kFinite, "transient")).value(),
              nan = parse_replay(printed(kNan, "reproducible", kOp)).value(),
              differ = parse_replay(printed(kNan, "persistent")).value();
  auto name = [](const std::optional<ReplayFacts>& here, const std::optional<ReplayFacts>& there) {
    return judge_step(3, here, "here", there, "there").name();
  };
  EXPECT_EQ(name(finite, {}), "transient");
  EXPECT_EQ(name(differ, {}), "persistent");
  EXPECT_EQ(name(nan, finite), "persistent");
  EXPECT_EQ(name(nan, nan), "reproducible");
  EXPECT_EQ(name(nan, {}), "reproducible");
  EXPECT_EQ(name({}, {}), "unknown");
  EXPECT_NE(judge_step(3, nan, "here", {}, "").text.find("no other device"), std::string::npos);
  StepVerdict found = judge_step(3, nan, "here", nan, "there");
  EXPECT_NE(found.text.find("layers.7.mlp.gelu (gelu), layer 7, on rank 2, at /data/books.bin: document 17"),
            std::string::npos)
      << found.text;
  EXPECT_EQ(found.event().details.integer("layer"), 7);
}

TEST(Verdicts, HaveTheirOwnPolicy) {
  RetryPolicy policy{{.retries = 3}, -1};
  EXPECT_TRUE(policy.after({.kind = CauseKind::transient_fault}, 5, 4).retry);
  EXPECT_TRUE(policy.after({.kind = CauseKind::transient_fault}, 5, 4).retry);
  EXPECT_TRUE(policy.after({.kind = CauseKind::faulty_device}, 5, 4).retry);
  EXPECT_FALSE(policy.after({.kind = CauseKind::reproducible_non_finite}, 9, 8).retry);
  Cause gave_up{.kind = CauseKind::reproducible_non_finite, .exit_code = 6};
  EXPECT_EQ(gave_up.as_exit_code(), ExitCode::non_finite);
  EXPECT_EQ(gave_up.text(), "exit code 6 (non-finite, reproducible)");
}

}  // namespace
}  // namespace sextant
