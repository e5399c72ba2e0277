// The fields of metrics.jsonl: what runs write, what the table says, and what docs/metrics.md shows are the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "checkout.h"
#include "metric_rows.h"
#include "scratch_run.h"
#include "train/metrics.h"

namespace sextant {
namespace {

// The page with the rows of its table replaced by those of the program.
std::string with_rows(const std::string& page) {
  std::string out;
  bool written = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) {
      out += line + "\n";
    } else if (!written) {
      for (const MetricField& field : metric_fields()) out += row_of(field);
      written = true;
    }
  }
  return out;
}

TEST(MetricFields, CommittedPageHasTheTable) {
  const std::string path = std::string(checkout::kSources) + "/docs/metrics.md";
  if (std::getenv("SEXTANT_REWRITE_DOCS")) write_file_atomically(path, with_rows(read_file(path)));
  std::string page = read_file(path);
  EXPECT_EQ(page, with_rows(page)) << "run the test with SEXTANT_REWRITE_DOCS=1 to write the table anew";
  for (const MetricField& field : metric_fields()) EXPECT_NE(page.find(row_of(field)), std::string::npos) << field.name;
}

std::set<std::string> fields_in(const std::filesystem::path& file) {
  std::set<std::string> names;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line);
    for (const auto& [name, value] : json.items()) names.insert(name);
  }
  return names;
}

TEST(MetricFields, RunsWriteThemAndNoOthers) {
  ScratchRun scratch("metric-fields");
  const std::vector<std::vector<std::string>> runs{
      {"train.eval_every=1", "log.tensor_stats_every=1", "log.tensor_stats_format=f16"},
      {"train.precision=fp8", "log.tensor_stats_every=1", "log.grad_noise_scale=true", "batch.microbatch=2",
       "train.eval_every=0"},
      {"mesh.pp=2", "batch.microbatch=2", "train.eval_every=0"},
      {"mesh.dp=2", "mesh.zero=3", "batch.microbatch=2"},
      {"optimizer.clip=0", "train.loss_scale.initial=8", "train.eval_every=0", "offload.optimizer=true"},
      {"model.architecture=mixtral", "mesh.pp=2", "batch.microbatch=2", "train.eval_every=0"},
      {"model.architecture=mixtral", "model.experts.z_loss=0.01", "model.experts.drop_above=1", "train.eval_every=0"},
      {"model.architecture=deepseek_v3", "model.kv_heads=4", "model.experts.ffn=32", "train.eval_every=0"},
      {"model.architecture=deepseek_v3", "model.kv_heads=4", "model.latent.rope_dim=4", "model.experts.count=8",
       "model.experts.ffn=32", "model.experts.per_token=2", "model.experts.groups=4", "model.experts.keep_groups=2",
       "model.mtp.depths=1", "train.eval_every=0"},
      {"model.architecture=mixtral", "mesh.dp=2", "mesh.ep=2", "mesh.expert_capacity=1", "batch.microbatch=1",
       "train.eval_every=0"},
  };
  std::set<std::string> written, known;
  for (const MetricField& field : metric_fields()) EXPECT_TRUE(known.insert(std::string(field.name)).second);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> settings = runs[i];
    for (const char* common : {"train.steps=2", "optimizer.warmup=0", "checkpoint.at_end=false"})
      settings.push_back(common);
    std::string out = fmt::format("run-{}", i);
    scratch.run(out, settings);
    std::set<std::string> names = fields_in(scratch.root() / out / "metrics.jsonl");
    for (const char* always :
         {"step", "loss", "grad_norm", "lr", "tokens", "tokens_per_s", "step_s", "model_flops", "mfu"})
      EXPECT_TRUE(names.contains(always)) << always << " in " << out;
    written.merge(names);
  }
  // Fields that only a failing run writes, and a run that keeps its state on NVMe, which not every kernel allows.
  StepMetrics failed{.step = 1};
  failed.values.set(number::loss, std::nan(""));
  failed.values.set(number::grad_norm, std::numeric_limits<double>::infinity());
  failed.values.set(number::norm_limit, 2.0);
  failed.values.set(number::nvme_arena_bytes, int64_t{4096});
  MetricsFile(scratch.root() / "failed.jsonl", 0).append(failed);
  std::set<std::string> names = fields_in(scratch.root() / "failed.jsonl");
  EXPECT_FALSE(names.contains("loss"));
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch.root() / "failed.jsonl"))["non_finite"],
            (nlohmann::json{{"loss", "nan"}, {"grad_norm", "inf"}}));
  written.merge(names);
  EXPECT_EQ(written, known);
}

// Of a token: every weight that is multiplied with six times (twice forward, four times backward), and likewise queries
// with keys and scores with values, of which a token sees half on average.
TEST(MetricFields, ModelFlopsAreThoseOfTheFormulaAndMfuTheirPartOfThePeak) {
  ScratchRun scratch("model-flops");
  RunConfig run = scratch.config("tiny-llama.toml", {"train.steps=2", "batch.sequences=4", "train.eval_every=0",
                                                     "optimizer.warmup=0", "checkpoint.at_end=false"});
  constexpr double kLayers = 2, kHidden = 64, kKeys = 32, kFfn = 192, kVocabulary = 512, kSeq = 64;
  static constexpr double kPeak = 1e12;
  double weights = kLayers * (2 * kHidden * kHidden + 2 * kHidden * kKeys + 3 * kHidden * kFfn) + kHidden * kVocabulary;
  double attention = kLayers * 2 * kHidden * (kSeq + 1) / 2;
  TrainView view{.verbosity = Verbosity::quiet, .on_begin = [](Beginning) { return std::optional(kPeak); }};
  train(run, scratch.root() / "run", cpu_ranks(), {}, view);
  std::istringstream lines(read_file(scratch.root() / "run/metrics.jsonl"));
  int steps = 0;
  for (std::string line; std::getline(lines, line); ++steps) {
    auto json = nlohmann::json::parse(line);
    double flops = json["model_flops"], seconds = json["step_s"], mfu = json["mfu"];
    EXPECT_DOUBLE_EQ(flops, 6 * (weights + attention) * 4 * kSeq);
    EXPECT_NEAR(mfu, flops / seconds / kPeak, 1e-9 * mfu);
  }
  EXPECT_EQ(steps, 2);
}

}  // namespace
}  // namespace sextant
