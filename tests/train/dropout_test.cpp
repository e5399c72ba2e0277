// Dropout in whole runs: every mesh, schedule, recomputation and cut into microbatches leaves out the same elements as
// one rank does, a run that goes on leaves out what it would have, and evaluation leaves out nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "ckpt/weights_reader.h"
#include "ir/print.h"
#include "mesh_cases.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

constexpr const char* kDropoutRates[] = {"model.hidden_dropout=0.1", "model.attention_dropout=0.2",
                                         "model.embedding_dropout=0.15"};

std::vector<std::string> dropout_settings(const std::vector<std::string>& more) {
  std::vector<std::string> all{"train.steps=4",
                               "train.eval_every=4",
                               "train.eval_sequences=2",
                               "batch.sequences=4",
                               "batch.microbatch=1",
                               "batch.seq=32",
                               "model.max_seq=32",
                               "model.layers=4",
                               "optimizer.eps=1e-6",
                               "optimizer.lr=1e-3",
                               "optimizer.schedule=constant",
                               "train.timeout_s=60"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> with_dropout(std::vector<std::string> more) {
  more.insert(more.end(), std::begin(kDropoutRates), std::end(kDropoutRates));
  return dropout_settings(more);
}

std::vector<double> as_numbers(const std::vector<std::string>& texts) {
  std::vector<double> values;
  for (const std::string& text : texts) values.push_back(std::stod(text));
  return values;
}

void expect_losses_near(const std::vector<double>& got, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5 * expected[i]) << what << " " << i + 1;
}

class DropoutOnMeshes : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Models, DropoutOnMeshes, testing::Values("tiny-gpt2.toml", "tiny-llama.toml", "neox", "palm"));

// Overrides that make the tiny llama another model; neox and palm add attention and MLP together.
std::vector<std::string> dropout_model_settings(const std::string& model) {
  if (model == "neox") return {"model.architecture=neox", "model.kv_heads=4", "model.ffn=256", "model.head_dim=16"};
  if (model == "palm") return {"model.architecture=palm", "model.kv_heads=1"};
  return {};
}

TEST_P(DropoutOnMeshes, LeaveOutWhatOneRankDoes) {
  const std::string model = GetParam(), file = model.ends_with(".toml") ? model : "tiny-llama.toml";
  ScratchRun scratch("dropout-" + model);
  auto losses_of = [&](const std::string& out, const std::vector<std::string>& more) {
    scratch.run(out, more, file);
    return as_numbers(scratch.losses(out));
  };
  std::vector<std::string> own = dropout_model_settings(model);
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), own.begin(), own.end());
    return more;
  };
  std::vector<double> expected = losses_of("one", with_dropout(with({}))),
                      plain = losses_of("plain", dropout_settings(with({})));
  EXPECT_GT(std::abs(plain.back() - expected.back()), 1e-4) << "dropout changed nothing";
  double validation = as_numbers(scratch.metric("one", "validation_loss")).back();
  for (const MeshCase& mesh : std::vector<MeshCase>{
           {"tp2", {"mesh.tp=2"}},
           {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
           {"dp2", {"mesh.dp=2"}},
           {"cp2", {"mesh.cp=2"}},
           {"cp2_ulysses", {"mesh.cp=2", "mesh.context=ulysses"}},
           {"cp2_tp2_sp", {"mesh.cp=2", "mesh.tp=2", "mesh.sequence_parallel=true"}},
           {"pp2_1f1b", {"mesh.pp=2"}},
           {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
           {"pp2_dualpipe", {"mesh.pp=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
           {"pp2_cp2_full", {"mesh.pp=2", "mesh.cp=2", "train.recompute=full"}},
           {"zero3_dp2", {"mesh.dp=2", "mesh.zero=3"}},
           {"full", {"train.recompute=full"}},
           {"selective", {"train.recompute=selective"}},
           {"microbatch_4", {"batch.microbatch=4"}},
           {"dp2_microbatch_2", {"mesh.dp=2", "batch.microbatch=2"}},
       }) {
    expect_losses_near(losses_of(mesh.name, with_dropout(with(mesh.settings))), expected, mesh.name);
    double other = as_numbers(scratch.metric(mesh.name, "validation_loss")).back();
    EXPECT_NEAR(other, validation, 1e-5 * validation) << mesh.name;
  }
}

// A block of its own for each rank of a pipeline: all three places stand on other ranks.
TEST(Dropout, EveryPlaceActsByItself) {
  ScratchRun scratch("dropout-places");
  std::vector<std::vector<double>> seen;
  for (const char* rate : {"model.hidden_dropout=0.3", "model.attention_dropout=0.3", "model.embedding_dropout=0.3",
                           "model.dropout=0.3", "model.dropout=0"}) {
    scratch.run("run", dropout_settings({rate, "train.eval_every=0"}));
    std::vector<double> losses = as_numbers(scratch.losses("run"));
    for (const std::vector<double>& other : seen) EXPECT_GT(std::abs(other.back() - losses.back()), 1e-5) << rate;
    seen.push_back(losses);
    std::filesystem::remove_all(scratch.root() / "run");
  }
}

// Other seeds, and other steps of one run, leave out other elements: with a learning rate of 0 and one sequence over
// and over, only these differ.
TEST(Dropout, StepsAndSeedsDiffer) {
  ScratchRun scratch("dropout-steps");
  scratch.run("run",
              dropout_settings({"model.dropout=0.3", "optimizer.lr=0", "optimizer.min_lr=0", "train.eval_every=0"}));
  scratch.run("again",
              dropout_settings({"model.dropout=0.3", "optimizer.lr=0", "optimizer.min_lr=0", "train.eval_every=0"}));
  EXPECT_EQ(scratch.losses("again"), scratch.losses("run"));
  std::vector<std::string> losses = scratch.losses("run");
  std::sort(losses.begin(), losses.end());
  EXPECT_EQ(std::adjacent_find(losses.begin(), losses.end()), losses.end());
}

TEST(Dropout, AResumedRunGoesOnBitForBit) {
  ScratchRun scratch("dropout-resume");
  scratch.run("whole", with_dropout({"train.steps=6", "checkpoint.every=3"}));
  scratch.run("parts", with_dropout({"train.steps=3", "checkpoint.every=3"}));
  scratch.run("parts", with_dropout({"train.steps=6", "checkpoint.every=3"}));
  std::vector<std::string> whole = scratch.losses("whole"), parts = scratch.losses("parts");
  EXPECT_EQ(parts, whole);
  WeightsReader a(scratch.root() / "whole/step-000006"), b(scratch.root() / "parts/step-000006");
  for (const std::string& name : a.names())
    EXPECT_TRUE(std::ranges::equal(a.tensor(name).bytes, b.tensor(name).bytes)) << name;
  // The rates are part of what the run is: with others it is not the run that has ended.
  EXPECT_THROW(scratch.run("parts", dropout_settings({"train.steps=6", "checkpoint.every=3"})), UserError);
}

std::vector<std::string> program_texts(const std::vector<Program>& programs) {
  std::vector<std::string> texts;
  for (const Program& program : programs) texts.push_back(print(program));
  return texts;
}

RunPrograms lowered_programs(const ScratchRun& scratch, const std::vector<std::string>& more) {
  RunConfig run = scratch.config("tiny-gpt2.toml", dropout_settings(more));
  return lower_run(run, resolve_spec(run), cpu_target(1), Checks::each_pass).programs;
}

TEST(Dropout, ARateOfZeroIsNoOp) {
  ScratchRun scratch("dropout-zero");
  for (const std::vector<std::string>& mesh : std::vector<std::vector<std::string>>{
           {}, {"mesh.tp=2", "mesh.sequence_parallel=true"}, {"mesh.pp=2", "mesh.cp=2"}}) {
    std::vector<std::string> zero = mesh, some = mesh;
    zero.push_back("model.dropout=0");
    some.push_back("model.dropout=0.1");
    RunPrograms plain = lowered_programs(scratch, mesh), without = lowered_programs(scratch, zero),
                with = lowered_programs(scratch, some);
    EXPECT_EQ(program_texts(without.train), program_texts(plain.train));
    EXPECT_EQ(program_texts(plain.train)[0].find("dropout"), std::string::npos);
    EXPECT_NE(program_texts(with.train)[0].find("dropout"), std::string::npos);
    // Evaluation has none, whatever training has; only what training keeps lies elsewhere.
    EXPECT_EQ(program_texts(with.evaluate)[0].find("dropout"), std::string::npos);
  }
}

TEST(Dropout, EveryPlaceOfAModelHasASiteOfItsOwn) {
  ScratchRun scratch("dropout-sites");
  RunPrograms with = lowered_programs(scratch, {"model.dropout=0.1"});
  std::multiset<int64_t> sites;
  for (const Op& op : with.train[0].regions[0].ops)
    if (op.attrs.has("site")) sites.insert(op.attrs.integer("site"));
  EXPECT_EQ(sites.size(), 1u + 3 * 4);  // the embedding, and three in each of four layers
  EXPECT_EQ(std::set<int64_t>(sites.begin(), sites.end()).size(), sites.size());
}

// Nothing is kept for backward but eight bytes a sequence: masks are made again.
TEST(Dropout, NoMaskIsSaved) {
  ScratchRun scratch("dropout-memory");
  RunPrograms plain = lowered_programs(scratch, {}), with = lowered_programs(scratch, {"model.dropout=0.1"});
  auto saved = [](const Program& program) {
    int64_t bytes = 0;
    for (const Buffer& buffer : program.buffers)
      if (buffer.kind == BufferClass::saved) bytes += buffer.total_bytes();
    return bytes;
  };
  EXPECT_EQ(saved(with.train[0]), saved(plain.train[0]));
  EXPECT_LE(with.train[0].arena_bytes - plain.train[0].arena_bytes, 4096);
}

TEST(Dropout, RatesOutsideTheRangeAreRefused) {
  ScratchRun scratch("dropout-refused");
  for (const char* rate :
       {"model.dropout=1", "model.hidden_dropout=-0.1", "model.attention_dropout=1.5", "model.embedding_dropout=nan"})
    EXPECT_THROW(scratch.config("tiny-gpt2.toml", {rate}), UserError) << rate;
}

}  // namespace
}  // namespace sextant
