// Rows of published runs: read, graded, converted to runs of ours, or refused with the reason.
#include "validate/published_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv.h"
#include "base/error.h"
#include "cost/software_profile_file.h"
#include "plan/prediction_interval.h"
#include "validate/foreign.h"
#include "validate/foreign_experts.h"
#include "validate/validation_figures.h"

namespace sextant {
namespace {

TEST(Csv, QuotesAndLineEnds) {
  CsvTable table = parse_csv("a,b\r\n\"x, \"\"y\"\"\n z\",2\r\n\r\n3,\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"x, \"y\"\n z", "2"}));
  EXPECT_EQ(table.rows[1].fields, (std::vector<std::string>{"3", ""}));
  EXPECT_EQ(table.rows[1].line, 5);
}

TEST(Csv, RefusesWithThePlace) {
  for (const char* text : {"", "a,a\n", "a,b\n1\n", "a,b\n\"1,2\n", "a,b\n\"1\"x,2\n"})
    EXPECT_THROW(parse_csv(text, "t.csv"), UserError) << text;
}

constexpr const char* kHeader =
    "source,model,arch,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq,gpu,n_gpus,dp,tp,pp,vpp,zero_stage,global_"
    "batch_seqs,"
    "micro_batch,recompute,precision,schedule,measured_tokens_per_s_per_gpu,measured_iter_s,measured_mem_gb_per_gpu,"
    "how_known\n";

PublishedRun row(const std::string& cells) {
  return parse_published_runs(kHeader + cells + "\n", "t.csv").front();
}

TEST(PublishedRuns, AreReadAndGraded) {
  PublishedRun run =
      row("InternEvo x,7B,llama,32,4096,32,32,11008,103168,2048,A100-80GB-SXM,16,16,1,1,,1,128,2,none,bf16,"
          "zero1 over 8 GPUs (hybrid),3842,,OOM,read: there. trust A for tok/s");
  EXPECT_TRUE(run.judged());
  EXPECT_TRUE(run.out_of_memory);
  EXPECT_NEAR(*run.measured_seconds(), 128 * 2048 / (3842.0 * 16), 1e-9);
  EXPECT_EQ(row("s,m,gpt,1,2,1,,,,8,H100,1,1,1,1,,,1,1,,bf16,,,1,,trust A- because").grade, Grade::a_minus);
  EXPECT_FALSE(row("s,m,moe,1,2,1,,,,8,H100,1,1,1,1,,,1,1,,bf16,,,1,,trust A").judged());
  EXPECT_EQ(row("s,m,gpt,1,2,1,,,,8,H100,1,1,1,1,max,,1,1,,bf16,,,1,,trust A").unreadable, "vpp 'max'");
}

TEST(PublishedRuns, TimesMadeFromUtilisationsAreNoClocks) {
  auto timed = [](const std::string& how) {
    return row("s,m,gpt,1,2,1,,,,8,H100,1,1,1,1,,,1,1,,bf16,,,1,," + how).timed();
  };
  EXPECT_TRUE(timed("trust A | derived exactly from gbs*seq: iter_s"));
  EXPECT_TRUE(timed("trust A; tflops/mfu derived"));
  EXPECT_FALSE(timed("trust A. tok/s derived with full-attention count"));
  EXPECT_FALSE(timed("trust A; iter_s derived assuming full-attention flop count"));
}

TEST(PublishedRuns, BecomeRunsOfOurs) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  ConvertedRun e = to_run_config(
      row("InternEvo x,7B,llama,32,4096,32,32,11008,103168,2048,A100-80GB-SXM,16,16,1,1,,1,128,2,full,bf16,"
          "zero1 over 8 GPUs (hybrid),3842,,,trust A"),
      profiles);
  EXPECT_EQ(e.why_not, "");
  EXPECT_EQ(e.run.machine, "a100-80-sxm");
  EXPECT_EQ(e.run.config.mesh.zero_ranks, 8);
  EXPECT_EQ(e.run.config.train.recompute, RecomputeMode::full);
  EXPECT_EQ(e.run.profile.name, "internevo-2023");
  auto refused = [&](const std::string& cells) { return to_run_config(row(cells), profiles).why_not; };
  EXPECT_NE(
      refused("InternEvo,m,llama,32,4096,32,32,,,2048,A100,16,8,1,1,,1,128,2,,bf16,,1,,,trust A").find("16 devices"),
      std::string::npos);
  EXPECT_NE(refused("InternEvo,m,moe,32,4096,32,32,,,2048,A100,16,16,1,1,,1,128,2,,bf16,,1,,,trust A").find("experts"),
            std::string::npos);
  EXPECT_NE(
      refused("InternEvo,m,llama,32,4096,32,32,,,2048,Abacus,16,16,1,1,,1,128,2,,bf16,,1,,,trust A").find("Abacus"),
      std::string::npos);
  EXPECT_NE(
      refused("InternEvo,m,llama,32,4096,32,32,,,2048,A100,16,16,1,1,,1,129,2,,bf16,,1,,,trust A").find("multiple"),
      std::string::npos);
}

// A source says that chunks are interleaved and not how many: torchtitan makes two of a rank, Megatron-LM's runs have
// as many as there are layers for, up to eight.
TEST(PublishedRuns, ChunksThatAreNotSaidAreTheSoftwares) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  auto chunks = [&](const std::string& source, const std::string& schedule) {
    ConvertedRun run =
        to_run_config(row(source + ",m,llama,126,16384,128,8,53248,128256,8192,H100,512,8,8,8,,1,256,4," +
                          "full,bf16," + schedule + ",,32,,trust A"),
                      profiles);
    EXPECT_EQ(run.why_not, "");
    return run.run.config.pipeline.chunks;
  };
  EXPECT_EQ(chunks("torchtitan benchmarks/llama3_h100_202412", "interleaved-1f1b + AsyncTP"), 2);
  EXPECT_EQ(chunks("NVIDIA Megatron-Bridge performance summary 26.", "interleaved-1f1b"), 8);
}

// As the recipes of Megatron-Bridge write them: Qwen3-235B counts embedding and loss ("account for"), DeepSeek-V3 has
// layouts such as Et*4|(t*4|)*14tmL and Et|(tt|)*30mL.
TEST(PublishedRuns, LayersAreDividedAsMegatronDoes) {
  auto stages = [](int64_t first, int64_t each, size_t between, int64_t last) {
    std::vector<int64_t> out{first};
    out.insert(out.end(), between, each);
    out.push_back(last);
    return out;
  };
  EXPECT_EQ(layers_of_stages(48, 8), stages(6, 6, 6, 6));
  EXPECT_EQ(layers_of_stages(94, 32), stages(2, 3, 30, 2));
  EXPECT_EQ(layers_of_stages(94, 96), stages(0, 1, 94, 0));
  EXPECT_EQ(layers_of_stages(61, 16), stages(4, 4, 14, 1));
  EXPECT_EQ(layers_of_stages(61, 32), stages(1, 2, 30, 0));
  EXPECT_EQ(layers_of_stages(61, 8), stages(8, 8, 6, 5));
}

// DeepSeek-V3's summaries count 260 GFLOP for a token with the module of multi-token prediction, 249 without.
TEST(PublishedRuns, TheCountTellsWhetherMultiTokenPredictionWasTrained) {
  auto depths = [](const char* model, double tflops) {
    PublishedRun run = row(std::string("s,") + model +
                           ",moe-mla,61,7168,128,,2048,129280,4096,H100,256,64,1,4,4,1,4096,1,,bf16,,1000,,,trust A");
    run.tflops_per_gpu = tflops;
    return experts_published_as(run).spec.mtp_depths;
  };
  EXPECT_EQ(depths("DeepSeek-V3", 260.1), 1);
  EXPECT_EQ(depths("DeepSeek-V3", 249.2), 0);
  EXPECT_EQ(depths("DeepSeek-V3 (w/o MTP)", 260.1), 0);
}

// Released models have their own experts, whatever a row leaves out; modules that are named are computed again.
TEST(PublishedRuns, ModelsWithExpertsAreThoseReleased) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  auto converted = [&](const std::string& model, const std::string& recompute) {
    return to_run_config(row("NVIDIA dgxc-benchmarking (2025-09)," + model + ",H100-80GB-SXM,64,64,1,1,,1,128,1," +
                             recompute + ",bf16,,1000,,,trust A"),
                         profiles);
  };
  ConvertedRun maverick = converted("Llama 4 Maverick,moe,48,5120,40,8,8192,202048,8192", "");
  EXPECT_EQ(maverick.why_not, "");
  EXPECT_EQ(maverick.run.spec.architecture, "llama4");
  EXPECT_EQ(maverick.run.spec.experts->count, 128);
  EXPECT_EQ(maverick.run.spec.experts->every, 2);
  EXPECT_EQ(converted("Llama 4 Scout,moe,48,5120,40,8,8192,202048,8192", "").run.spec.experts->count, 16);
  const std::string kimi = "Kimi K2,moe-mla,61,7168,64,,2048,163840,4096";
  EXPECT_EQ(converted(kimi, "").run.spec.experts->count, 384);
  EXPECT_EQ(converted(kimi, "").run.spec.heads, 64);
  EXPECT_EQ(converted(kimi, "selective(layernorm)").run.config.train.recompute, RecomputeMode::norms);
  EXPECT_EQ(converted(kimi, "selective(layernorm+moe_act)").run.config.train.recompute, RecomputeMode::selective);
  EXPECT_EQ(converted(kimi, "selective(mla_up_proj)").run.config.train.recompute, RecomputeMode::latent);
}

// The tables that come with the program: the figures of docs/planning.md are of these rows.
TEST(PublishedRuns, TheProgramsOwnAreReadWhole) {
  std::vector<PublishedRun> runs = read_published_runs(std::string(kPublishedRuns));
  std::map<std::string, size_t> rows, judged;
  for (const PublishedRun& run : runs) {
    ++rows[run.file];
    if (run.judged()) ++judged[run.file];
    EXPECT_NE(run.grade, Grade::unknown) << run.file << ":" << run.line;
    EXPECT_FALSE(run.model.empty()) << run.file << ":" << run.line;
  }
  EXPECT_EQ(rows, (std::map<std::string, size_t>{{"published_moe_runs.csv", 110}, {"published_runs.csv", 676}}));
  EXPECT_EQ(judged, (std::map<std::string, size_t>{{"published_runs.csv", 330}}));
}

// Steps that were measured, against today's predictions and the intervals that the program tells: what the table of
// held-out errors was made from. Every seventh of the judged rows on up to 64 devices, so that a fault in any price
// shows, and seconds suffice.
TEST(PublishedRuns, MeasurementsLieInTheIntervalsOfPredictions) {
  std::vector<PublishedRun> runs;
  int judged = 0;
  for (PublishedRun& run : read_published_runs(std::string(kPublishedRuns)))
    if (run.judged() && run.measured_seconds() && run.gpus.value_or(1000) <= 64 && judged++ % 7 == 0)
      runs.push_back(std::move(run));
  Validation validation(runs);
  validation.predict(Constants::fitted);
  const IntervalModel intervals = load_interval_model();
  std::vector<double> errors;
  int inside = 0;
  for (const ValidationRow& row : validation.rows()) {
    if (!row.predicted() || !row.measured_s) continue;
    errors.push_back(std::abs(std::log(row.predicted_s / *row.measured_s)));
    inside += errors.back() <= intervals.interval(row.traits()).log_half ? 1 : 0;
  }
  ASSERT_GE(errors.size(), 20u);
  auto middle = errors.begin() + std::ssize(errors) / 2;
  std::ranges::nth_element(errors, middle);
  EXPECT_LT(*middle, 0.05);
  // Of 80 %, three standard deviations of so few below; the fit has seen these rows, so more is no fault.
  EXPECT_GE(static_cast<double>(inside) / static_cast<double>(errors.size()), 0.65);
}

// Parallel folding's Table 3: with tables alone the times are near, and the order of layouts is theirs.
TEST(PublishedRuns, ModelsWithExpertsArePredicted) {
  std::vector<PublishedRun> runs;
  for (PublishedRun& run : read_published_runs(std::string(kPublishedRuns)))
    if (run.source == "MoE Parallel Folding arXiv 2504.14960 Table 3" && run.model != "Llama3-8x70B")
      runs.push_back(std::move(run));
  ASSERT_EQ(runs.size(), 7u);
  Validation validation(runs);
  validation.predict(Constants::tables);
  ValidationFigures figures = figures_of(validation);
  EXPECT_EQ(figures.experts.judged_converted, 7u);
  EXPECT_EQ(figures.judged, 0u);  // dense rows are judged apart
  EXPECT_LT(figures.experts.judged_errors.median, 0.08);
  EXPECT_EQ(figures.experts.pairs.right, figures.experts.pairs.pairs);
  EXPECT_GE(figures.experts.pairs.pairs, 5u);
}

}  // namespace
}  // namespace sextant
