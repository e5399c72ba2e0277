// Comparisons of runs whose noise is known, and the log.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/rng.h"
#include "run_files.h"
#include "watch/run_comparison.h"
#include "watch/run_log.h"

namespace sextant {
namespace {

// A loss that falls slowly, with noise of a known spread: x[i] = phi x[i-1] + e, whose mean over n has the variance
// sigma^2 / n / (1 - phi)^2.
struct NoisyLoss {
  double level = 2, spread = 0.05, phi = 0;
  uint64_t seed = 1;
};

std::unique_ptr<WatchedRun> noisy_run(const RunFiles& files, const std::string& name, const NoisyLoss& loss,
                                      int steps) {
  Random random(loss.seed, "noisy run");
  std::string lines;
  double noise = 0;
  for (int step = 1; step <= steps; ++step) {
    noise = loss.phi * noise + loss.spread * random.normal(static_cast<uint64_t>(step));
    lines += metrics_line(step, loss.level + 3 * std::exp(-step / 100.0) - 1e-5 * step + noise);
  }
  files.write(name + "/metrics.jsonl", lines);
  auto run = std::make_unique<WatchedRun>(1, files / name, name);
  run->poll(1 << 26);
  return run;
}

TEST(LossEstimates, HaveTheErrorOfIndependentNoise) {
  RunFiles files("estimate");
  auto run = noisy_run(files, "r", {}, 4000);
  auto estimate = loss_at(run->columns(), {XAxis::tokens, 1e9}, 1000);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->steps, 1000u);
  EXPECT_NEAR(estimate->error, 0.05 / std::sqrt(1000), 0.05 / std::sqrt(1000) * 0.35);
  EXPECT_NEAR(estimate->mean, 2 - 1e-5 * 3500, 4 * estimate->error);
  EXPECT_EQ(loss_at(run->columns(), {XAxis::tokens, 100000}, 1000)->tokens, 100000);
  EXPECT_FALSE(loss_at(run->columns(), {XAxis::tokens, 500}, 1000));  // five steps
}

TEST(LossEstimates, CountAutocorrelationIn) {
  RunFiles files("estimate-correlated");
  double sum = 0;
  constexpr int kRuns = 8;
  for (int i = 0; i < kRuns; ++i) {
    auto run = noisy_run(files, "r", {.spread = 0.02, .phi = 0.8, .seed = static_cast<uint64_t>(i + 10)}, 3000);
    sum += loss_at(run->columns(), {XAxis::tokens, 1e9}, 1000)->error;
  }
  double expected = 0.02 / (1 - 0.8) / std::sqrt(1000);  // 2.2 times the error were the noise independent at its spread
  EXPECT_NEAR(sum / kRuns, expected, expected * 0.3);
}

TEST(RunComparisons, TellNoiseFromDifference) {
  RunFiles files("compare");
  auto a = noisy_run(files, "a", {.seed = 1}, 2000), same = noisy_run(files, "same", {.seed = 2}, 2000),
       better = noisy_run(files, "better", {.level = 1.95, .seed = 3}, 1500),
       worse = noisy_run(files, "worse", {.level = 2.05, .seed = 4}, 2000),
       few = noisy_run(files, "few", {.seed = 5}, 5);
  EXPECT_EQ(compare_runs(*a, *same).verdict, ComparisonVerdict::no_difference);
  RunComparison comparison = compare_runs(*a, *better);
  EXPECT_EQ(comparison.verdict, ComparisonVerdict::better);
  EXPECT_NEAR(comparison.difference, -0.05, 4 * comparison.error);
  EXPECT_EQ(comparison.equal_a->tokens, 150000);  // at the tokens of the shorter one
  // The higher final loss is reached by both, by the better one sooner.
  ASSERT_TRUE(comparison.a_reached && comparison.b_reached);
  EXPECT_LT(comparison.b_reached->tokens, comparison.a_reached->tokens);
  EXPECT_EQ(comparison.a_reached->seconds, comparison.a_reached->tokens / 100 * 0.5);
  EXPECT_EQ(compare_runs(*a, *worse).verdict, ComparisonVerdict::worse);
  EXPECT_EQ(compare_runs(*a, *few).verdict, ComparisonVerdict::unknown);
  EXPECT_NE(compare_runs(*a, *few).sentence().find("cannot be compared"), std::string::npos);
}

// A model of half the size has seen twice the tokens at equal FLOPs.
TEST(RunComparisons, TellLossesAtEqualFlopsOfDifferentModels) {
  RunFiles files("compare-flops");
  auto run_of = [&](const std::string& name, double flops) {
    std::string lines;
    for (int step = 1; step <= 400; ++step)
      lines += metrics_line(step, 4 - 0.005 * step, fmt::format(",\"model_flops\":{}", flops));
    files.write(name + "/metrics.jsonl", lines);
    auto run = std::make_unique<WatchedRun>(1, files / name, name);
    while (run->poll(size_t{1} << 20)) {
    }
    return run;
  };
  auto large = run_of("large", 2e12), small = run_of("small", 1e12), same = run_of("same", 2e12);
  RunComparison comparison = compare_runs(*large, *small, 20);
  ASSERT_TRUE(comparison.equal_flops);
  EXPECT_EQ(comparison.equal_flops->flops, 400e12);
  EXPECT_EQ(comparison.equal_flops->a.tokens, 20000);
  EXPECT_EQ(comparison.equal_flops->b.tokens, 40000);
  EXPECT_NEAR(comparison.equal_flops->difference(), -1, 1e-5);  // 200 steps
  EXPECT_EQ(comparison.difference, 0);                          // at equal tokens
  EXPECT_EQ(*comparison.a_reached->flops, 2 * *comparison.b_reached->flops);
  EXPECT_NE(comparison_text({comparison}).find("at equal FLOPs (4e14)"), std::string::npos);
  EXPECT_FALSE(compare_runs(*large, *same, 20).equal_flops);
}

// Runs of one config whose seeds shift their levels by 1 % and more: the curves alone would call them different.
TEST(RunComparisons, ReckonWithWhatAnotherSeedChanges) {
  RunFiles files("compare-seeds");
  std::vector<std::unique_ptr<WatchedRun>> runs;
  std::vector<const WatchedRun*> all;
  auto add = [&](const std::string& name, double level, int seed, double rate) {
    auto run = noisy_run(files, name, {.level = level, .spread = 0.02, .seed = static_cast<uint64_t>(seed)}, 1000);
    files.write(name + "/config.toml",
                fmt::format("[optimizer]\nlr = {}\n[train]\nseed = {}\n[model]\npreset = \"gpt2\"\n", rate, seed));
    all.push_back(run.get());
    runs.push_back(std::move(run));
  };
  add("one", 2.00, 1, 0.001);
  add("two", 2.03, 2, 0.001);
  add("same-seed", 2.03, 1, 0.0011);
  add("high", 2.60, 3, 0.01);
  RunComparison two = compare_runs(*all[0], *all[1]);
  EXPECT_EQ(two.verdict, ComparisonVerdict::no_difference);
  EXPECT_NEAR(two.seed_error, SeedNoise::kAssumed * std::hypot(two.equal_a->mean, two.equal_b->mean), 1e-12);
  EXPECT_GT(std::fabs(two.difference), 2 * two.curve_error);
  RunComparison same = compare_runs(*all[0], *all[2]);
  EXPECT_EQ(same.seed_error, 0);
  EXPECT_EQ(same.verdict, ComparisonVerdict::worse);
  EXPECT_EQ(compare_runs(*all[0], *all[3]).verdict, ComparisonVerdict::worse);
  // Where seeds are seen to change little, a small difference counts.
  for (int seed = 10; seed < 22; ++seed) add(fmt::format("again-{}", seed), 2.00 + 0.0005 * (seed % 3), seed, 0.001);
  SeedNoise measured = seed_noise_of(all, 0);
  EXPECT_EQ(measured.runs, 14u);
  EXPECT_LT(measured.share, 0.01);
  EXPECT_GT(measured.share, 0.001);
  std::string text = comparison_text({compare_with_first(all)[0]});
  EXPECT_NE(text.find("from 14 runs that differ in their seed alone"), text.npos) << text;
}

// A tokenizer of longer tokens has a higher loss per token and fewer bits per byte of the same text.
class OtherUnits : public testing::Test {
 protected:
  struct Text {
    std::string config = "[data]\ntrain = [\"text.txt\"]\n", tokenizer = "t1", data = "d1";
    double bytes_per_token = 2;
    bool validated = true;
  };
  std::unique_ptr<WatchedRun> run_of(const std::string& name, double bits_per_byte, const Text& text) const {
    Random random(static_cast<uint64_t>(name.size()), "other units");
    std::string lines;
    for (int step = 1; step <= 400; ++step) {
      double bits = bits_per_byte + std::exp(-step / 30.0), nats = bits * text.bytes_per_token * std::numbers::ln2;
      std::string validation = fmt::format(",\"validation_loss\":{},\"bits_per_byte\":{}", nats, bits);
      lines += metrics_line(step, nats + 0.02 * random.normal(static_cast<uint64_t>(step)),
                            text.validated && step % 50 == 0 ? validation : "");
    }
    files_.write(name + "/metrics.jsonl", lines);
    files_.write(name + "/config.toml", "[model]\npreset = \"gpt2\"\n" + text.config);
    if (!text.tokenizer.empty())
      files_.write(name + "/events.jsonl",
                   fmt::format(R"({{"time":"2026-11-17T18:03:54.123Z","event":"start","step":1,"text":"begins",)"
                               R"("tokenizer":"{}","data":"{}"}})"
                               "\n",
                               text.tokenizer, text.data));
    auto run = std::make_unique<WatchedRun>(1, files_ / name, name);
    run->poll(1 << 26);
    return run;
  }
  RunFiles files_{"other-units"};
};

TEST_F(OtherUnits, OtherTokenizersAreJudgedByBitsPerByte) {
  auto small = run_of("v512", 2, {}),
       large = run_of("v2048", 1, {.tokenizer = "t2", .data = "d2", .bytes_per_token = 6});
  RunComparison comparison = compare_runs(*small, *large);
  EXPECT_GT(comparison.b.final_loss->mean, comparison.a.final_loss->mean);  // per token it is worse
  EXPECT_EQ(comparison.basis.measure, LossMeasure::bits_per_byte);
  EXPECT_EQ(comparison.verdict, ComparisonVerdict::better);
  EXPECT_NEAR(comparison.difference, -1, 0.02);
  EXPECT_NE(comparison.sentence().find("in bits per byte, beyond the noise"), std::string::npos)
      << comparison.sentence();
  EXPECT_NE(comparison_text({comparison}).find("v512 and v2048 have different tokenizers"), std::string::npos);
  auto json = nlohmann::json::parse(comparison_json({comparison}))["comparisons"][0];
  EXPECT_EQ(json["basis"]["measure"], "bits_per_byte");
  ASSERT_TRUE(comparison.reached_loss && comparison.a_reached && comparison.b_reached);
  EXPECT_NEAR(*comparison.reached_loss, 2, 0.02);
  EXPECT_LT(comparison.b_reached->tokens, comparison.a_reached->tokens);
  // As close as one step's noise of the loss is, they are not told apart.
  auto same = run_of("same", 2.002, {.tokenizer = "t2", .data = "d2", .bytes_per_token = 6});
  EXPECT_EQ(compare_runs(*small, *same).verdict, ComparisonVerdict::no_difference);
}

TEST_F(OtherUnits, WithoutACommonMeasureThereIsNoVerdict) {
  auto base = run_of("base", 2, {});
  auto refused = [&](const WatchedRun& other, const std::string& why) {
    RunComparison comparison = compare_runs(*base, other);
    EXPECT_EQ(comparison.verdict, ComparisonVerdict::unknown);
    EXPECT_FALSE(comparison.basis.measure);
    EXPECT_NE(comparison.sentence().find(why), std::string::npos) << comparison.sentence();
    auto json = nlohmann::json::parse(comparison_json({comparison}))["comparisons"][0];
    EXPECT_TRUE(json["equal_tokens"]["difference"].is_null());
    EXPECT_TRUE(json["to_loss"]["loss"].is_null());
  };
  refused(*run_of("unmeasured", 1, {.tokenizer = "t2", .data = "d2", .validated = false}), "has no bits_per_byte");
  const std::string other = "[data]\ntrain = [\"other.txt\"]\n";
  refused(*run_of("other-data", 1, {.config = other, .data = "d2"}),
          "different validation data (data.train [\"text.txt\"] -> [\"other.txt\"])");
  refused(*run_of("other-both", 1, {.config = other, .tokenizer = "t2", .data = "d2"}), "and different tokenizers");
  // Of runs before the hashes, by their configs.
  refused(*run_of("old", 1, {.config = other, .tokenizer = "", .data = ""}), "data.train");
}

TEST_F(OtherUnits, OtherDataIsJudgedByTheSameValidation) {
  const std::string held_out = "validation = [\"held.txt\"]\n";
  auto one = run_of("one", 2, {.config = "[data]\ntrain = [\"a.txt\"]\n" + held_out, .data = "d1"});
  auto two = run_of("two", 1.5, {.config = "[data]\ntrain = [\"b.txt\"]\n" + held_out, .data = "d2"});
  RunComparison comparison = compare_runs(*one, *two);
  EXPECT_EQ(comparison.basis.measure, LossMeasure::validation_loss);
  EXPECT_EQ(comparison.verdict, ComparisonVerdict::better);
  EXPECT_NE(comparison.sentence().find("in validation loss"), std::string::npos) << comparison.sentence();
  // The same text in another place is the same.
  auto moved = run_of("moved", 2, {.config = "[data]\ntrain = [\"moved/a.txt\"]\n" + held_out, .data = "d1"});
  EXPECT_EQ(compare_runs(*one, *moved).basis.measure, LossMeasure::loss);
}

TEST(RunComparisons, ListKeysThatDiffer) {
  RunFiles files("compare-config");
  auto a = noisy_run(files, "a", {}, 50), b = noisy_run(files, "b", {}, 50);
  EXPECT_NE(compare_runs(*a, *b).config_remark, "");
  files.write("a/config.toml", "[optimizer]\nlr = 0.001\n[model]\npreset = \"gpt2\"\n");
  files.write("b/config.toml", "[optimizer]\nlr = 0.002\n[model]\npreset = \"gpt2\"\n");
  RunComparison comparison = compare_runs(*a, *b);
  EXPECT_EQ(comparison.config_remark, "");
  ASSERT_EQ(comparison.config.size(), 1u);
  EXPECT_EQ(comparison.config[0].key, "optimizer.lr");
  auto json = nlohmann::json::parse(comparison_json({comparison}));
  EXPECT_EQ(json["comparisons"][0]["config"][0]["key"], "optimizer.lr");
  // Directories that a config names may no longer exist, and other versions had other keys.
  files.write("b/config.toml", "[optimizer]\nlr = 0.002\nbygone = 1\n[model]\nfrom = \"/nowhere/at/all\"\n");
  comparison = compare_runs(*a, *b);
  EXPECT_EQ(comparison.config_remark, "");
  EXPECT_EQ(std::ranges::count(comparison.config, "optimizer.lr", &ConfigChange::key), 1);
  EXPECT_EQ(std::ranges::count(comparison.config, "model.from", &ConfigChange::key), 1);
  files.write("b/config.toml", "no toml");
  comparison = compare_runs(*a, *b);
  EXPECT_NE(comparison.config_remark, "");
  EXPECT_EQ(comparison_text({comparison}).find("\\n"), std::string::npos) << comparison_text({comparison});
}

TEST(RunLog, HasEventsWithTheLossOfTheirStep) {
  RunFiles files("log");
  files.write("r/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4.25));
  files.write("r/events.jsonl",
              R"({"time":"2026-11-17T18:03:54.123Z","event":"checkpoint","step":2,"text":"a <b>|</b> line"})"
              "\n"
              R"({"time":"2026-11-17T18:04:00.000Z","event":"failure","step":9,"text":"disk\nfull\u001b[2J"})"
              "\n");
  WatchedRun run(1, files / "r", "r");
  run.poll(1 << 20);
  std::string text = run_log_markdown(run, run.modified());
  EXPECT_NE(
      text.find("\n## 2026-11-17\n\n- 18:03:54, step 2, loss 4.2500: **checkpoint**: a \\<b\\>\\|\\</b\\> line\n"),
      text.npos)
      << text;
  EXPECT_NE(text.find("- 18:04:00, step 9: **failure**: disk full\\x1b\\[2J\n"), text.npos) << text;
  EXPECT_NE(text.find("The run is failed at step 2, after "), text.npos) << text;
  EXPECT_NE(text.find(" It had a failure.\n"), text.npos) << text;
  std::string page = run_log_html(run, run.modified());
  EXPECT_NE(page.find("a &lt;b&gt;|&lt;/b&gt; line"), page.npos);
  EXPECT_NE(page.find("<polyline"), page.npos);
}

}  // namespace
}  // namespace sextant
