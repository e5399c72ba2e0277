// Multi-token prediction in training: every mesh agrees with one rank in losses and weights, runs go on from one mesh
// on another, and what a depth sees and predicts is what stands so far behind, within the document and the sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>

#include "base/error.h"
#include "ckpt/convert.h"
#include "ckpt/slices.h"
#include "ckpt/weights_reader.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "config/mesh_axes.h"
#include "ir/mtp_paths.h"
#include "mesh_cases.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/data/dataset.h"
#include "train/data/feeder.h"
#include "train/trainer.h"

namespace sextant {
namespace {

using MtpSettings = std::vector<std::string>;

// A small DeepSeek-V3 whose routers have every loss and rule there is.
MtpSettings mtp_settings(const MtpSettings& more) {
  MtpSettings settings = common_settings();
  for (const char* own : {"model.architecture=deepseek_v3",
                          "model.kv_heads=4",
                          "model.head_dim=16",
                          "model.latent.q_rank=24",
                          "model.latent.kv_rank=20",
                          "model.latent.rope_dim=6",
                          "model.latent.value_dim=12",
                          "model.experts.count=8",
                          "model.experts.ffn=16",
                          "model.experts.shared_ffn=16",
                          "model.experts.groups=4",
                          "model.experts.keep_groups=2",
                          "model.experts.dense_first=1",
                          "model.experts.balance_loss=0.01",
                          "model.experts.balance_scope=sequence",
                          "model.experts.z_loss=0.001",
                          "model.mtp.depths=2",
                          "batch.seq=16",
                          "train.steps=4",
                          "train.eval_every=4",
                          "optimizer.warmup=0",
                          "data.tokenizer_vocab=300"})
    settings.emplace_back(own);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void run_mtp(const ScratchRun& scratch, std::string_view out, const MtpSettings& more) {
  scratch.run(out, mtp_settings(more), "tiny-moe.toml");
}

void expect_same_metrics(const ScratchRun& scratch, std::string_view got, std::string_view wanted) {
  for (const char* name : {"loss", "mtp_loss", "balance_loss", "router_z_loss", "grad_norm", "validation_loss"}) {
    MtpSettings x = scratch.metric(got, name), y = scratch.metric(wanted, name);
    ASSERT_EQ(x.size(), y.size()) << name;
    ASSERT_FALSE(y.empty()) << name;
    double tolerance = std::string_view(name) == "grad_norm" ? 1e-4 : 1e-5;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(std::stod(x[i]), std::stod(y[i]), tolerance * std::stod(y[i])) << name << " of line " << i + 1;
  }
}

void expect_same_weights(const std::filesystem::path& got, const std::filesystem::path& wanted) {
  WeightsReader a(got), b(wanted);
  ASSERT_EQ(a.names(), b.names());
  EXPECT_TRUE(b.contains("model.layers.5.mlp.gate.e_score_correction_bias"));
  for (const std::string& name : b.names()) {
    TensorView view = b.tensor(name);
    std::vector<float> x(static_cast<size_t>(view.shape.count())), y(x);
    load_rows(a.tensor(name), {0, row_count(view.shape)}, Transpose::no, x);
    load_rows(view, {0, row_count(view.shape)}, Transpose::no, y);
    double distance = 0, size = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      distance += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
      size += std::pow(static_cast<double>(y[i]), 2);
    }
    EXPECT_LE(std::sqrt(distance), 1e-4 * std::sqrt(size)) << name;
  }
}

std::vector<MeshCase> mtp_meshes() {
  return {
      {"tp2", {"mesh.tp=2"}},
      {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"cp2", {"mesh.cp=2"}},
      {"cp2_ulysses", {"mesh.cp=2", "mesh.context=ulysses"}},
      {"pp2", {"mesh.pp=2"}},
      {"pp2_uneven", {"mesh.pp=2", "pipeline.layers='3,1'"}},
      {"pp2_zb_h1", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
      {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
      {"pp2_dualpipev", {"mesh.pp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"dp2_ep2", {"mesh.dp=2", "mesh.ep=2"}},
      {"zero1", {"mesh.dp=2", "mesh.zero=1"}},
      {"zero2", {"mesh.dp=2", "mesh.zero=2"}},
      {"zero3_full", {"mesh.dp=2", "mesh.zero=3", "train.recompute=full"}},
      {"pp2_dp2_ep2_zero3", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=3"}},
      {"pp2_cp2_tp2", {"mesh.pp=2", "mesh.cp=2", "mesh.tp=2"}},
      {"microbatch8", {"batch.microbatch=8"}},
  };
}

TEST(MtpTraining, EveryMeshAgreesWithOneRank) {
  ScratchRun scratch("mtp-meshes");
  run_mtp(scratch, "one", {});
  EXPECT_EQ(scratch.metric("one", "mtp_loss").size(), 4U);
  for (const MeshCase& mesh : mtp_meshes()) {
    SCOPED_TRACE(mesh.name);
    run_mtp(scratch, mesh.name, mesh.settings);
    expect_same_metrics(scratch, mesh.name, "one");
    expect_same_weights(scratch.root() / mesh.name / "step-000004", scratch.root() / "one/step-000004");
  }
}

// A module's layer is a block: computed again, and repeated in rounds, it gives the same bits.
TEST(MtpTraining, RecomputationAndRoundsGiveTheSameBits) {
  ScratchRun scratch("mtp-blocks");
  auto model_of = [&](std::string_view out) {
    return read_file(scratch.root() / out / "step-000004" / "model.safetensors");
  };
  const MtpSettings mesh{"mesh.dp=4", "mesh.ep=4", "model.experts.keep_groups=1", "mesh.expert_dispatch=rows"};
  auto with = [&](const MtpSettings& more) {
    MtpSettings settings = mesh;
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  };
  run_mtp(scratch, "kept", mesh);
  run_mtp(scratch, "full", with({"train.recompute=full"}));
  run_mtp(scratch, "rounds", with({"mesh.expert_capacity=1"}));
  EXPECT_TRUE(model_of("full") == model_of("kept"));
  EXPECT_TRUE(model_of("rounds") == model_of("kept"));
  EXPECT_EQ(scratch.metric("full", "mtp_loss"), scratch.metric("kept", "mtp_loss"));
  EXPECT_EQ(scratch.metric("rounds", "mtp_loss"), scratch.metric("kept", "mtp_loss"));
  EXPECT_FALSE(scratch.metric("rounds", "lost_rows").empty());
}

TEST(MtpTraining, DocumentsAreMaskedAlikeOnMeshes) {
  ScratchRun scratch("mtp-documents");
  // A token of the text ends documents, so that sequences have several.
  const MtpSettings masked{"data.mask_documents=true", "data.end_of_text=46", "batch.seq=32"};
  run_mtp(scratch, "one", masked);
  run_mtp(scratch, "plain", {"batch.seq=32"});
  EXPECT_NE(scratch.metric("one", "mtp_loss"), scratch.metric("plain", "mtp_loss"));
  for (const MeshCase& mesh : {MeshCase{"dp2_tp2", {"mesh.dp=2", "mesh.tp=2"}},
                               MeshCase{"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
                               MeshCase{"microbatch4", {"batch.microbatch=4"}}}) {
    SCOPED_TRACE(mesh.name);
    MtpSettings settings = masked;
    settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
    run_mtp(scratch, mesh.name, settings);
    expect_same_metrics(scratch, mesh.name, "one");
  }
}

TEST(MtpTraining, GoesOnOnAnotherMesh) {
  ScratchRun scratch("mtp-resume");
  const MtpSettings common{"train.steps=6", "checkpoint.every=3", "checkpoint.keep=0"};
  auto with = [&](MtpSettings more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  run_mtp(scratch, "whole", common);
  run_mtp(scratch, "first", with({"mesh.pp=2", "mesh.dp=2", "mesh.ep=2"}));
  std::filesystem::remove_all(scratch.root() / "first/step-000006");
  for (const MeshCase& mesh : {MeshCase{"one", {}}, MeshCase{"tp2_cp2", {"mesh.tp=2", "mesh.cp=2"}},
                               MeshCase{"zero3_dp4", {"mesh.dp=4", "mesh.zero=3"}}}) {
    SCOPED_TRACE(mesh.name);
    std::filesystem::copy(scratch.root() / "first", scratch.root() / mesh.name,
                          std::filesystem::copy_options::recursive);
    run_mtp(scratch, mesh.name, with(mesh.settings));
    expect_same_metrics(scratch, mesh.name, "whole");
    expect_same_weights(scratch.root() / mesh.name / "step-000006", scratch.root() / "whole/step-000006");
  }
  // The weight of the loss may change on the way, as in DeepSeek-V3's own run; the number of depths may not.
  std::filesystem::copy(scratch.root() / "first", scratch.root() / "lighter", std::filesystem::copy_options::recursive);
  run_mtp(scratch, "lighter", with({"model.mtp.loss_weight=0.1"}));
  EXPECT_NE(scratch.metric("lighter", "grad_norm")[3], scratch.metric("whole", "grad_norm")[3]);
  std::filesystem::copy(scratch.root() / "first", scratch.root() / "other", std::filesystem::copy_options::recursive);
  try {
    run_mtp(scratch, "other", with({"model.mtp.depths=1"}));
    FAIL() << "nothing was said";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("mtp.depths 1 differs from the checkpoint's 2"), std::string::npos)
        << error.what();
  }
}

// From a directory the modules are read when they are asked for, and only then.
TEST(MtpTraining, StartsFromADirectory) {
  ScratchRun scratch("mtp-source");
  run_mtp(scratch, "source", {"train.steps=1", "optimizer.lr=0", "model.experts.bias_update_speed=0"});
  const std::string from = (scratch.root() / "source/step-000001").string();
  auto train_from = [&](std::string_view out, const MtpSettings& more) {
    MtpSettings settings{"train.steps=1",  "train.eval_every=0", "batch.seq=16",
                         "optimizer.lr=0", "optimizer.warmup=0", "data.stories_bytes=60000"};
    settings.insert(settings.end(), more.begin(), more.end());
    std::filesystem::path file = scratch.root() / "from.toml";
    write_file_atomically(file, fmt::format("model.from = \"{}\"\n", from));
    settings.push_back(fmt::format("data.cache={}", (scratch.root() / "cache").string()));
    train(load_config(file, settings), scratch.root() / out, cpu_ranks());
  };
  train_from("with", {"model.mtp.depths=2"});
  EXPECT_TRUE(read_file(scratch.root() / "with/step-000001/model.safetensors") ==
              read_file(std::filesystem::path(from) / "model.safetensors"));
  train_from("without", {});
  WeightsReader without(scratch.root() / "without/step-000001");
  EXPECT_TRUE(without.contains("model.layers.3.self_attn.o_proj.weight"));
  EXPECT_FALSE(without.contains("model.layers.4.eh_proj.weight"));
  EXPECT_TRUE(scratch.metric("without", "mtp_loss").empty());
  try {
    train_from("other", {"model.mtp.depths=1"});
    FAIL() << "nothing was said";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("got 1, but model.from has 2; expected 2 or 0"), std::string::npos)
        << error.what();
  }
}

using Rows = std::map<std::string, std::vector<int32_t>>;  // of feeds, by path

// The feeds of the first microbatch, put together from what every rank was given.
Rows feeds_of(const ScratchRun& scratch, const MtpSettings& settings) {
  RunConfig run = scratch.config("tiny-moe.toml", mtp_settings(settings));
  ModelSpec spec = resolve_spec(run);
  RunPrograms programs = build_programs(run, run_shape(run, spec), cpu_target(1));
  ThreadTeam readers(1);
  Dataset dataset = open_dataset(run, spec, readers, [](std::string_view) {});
  int ranks = mesh_of(run.mesh).world_size();
  Rows found;
  std::mutex adding;
  ThreadHub hub(ranks, std::chrono::seconds(60));
  for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
         auto executor = make_cpu_executor(1, {transport.rank(), ranks == 1 ? nullptr : &transport});
         auto arena = executor->allocate(programs.arena_bytes(0));
         auto bound = executor->bind(programs.train[0], *arena);
         Feeder feeder(*bound, dataset.train, dataset.end_of_text, 1);
         for (const char* path : {"tokens", "targets", "tokens.1", "targets.1", "tokens.2", "targets.2"}) {
           // Feeds of one region share bytes with what comes after them: each is looked at as soon as it is written.
           for (RegionKind region : {RegionKind::forward, RegionKind::backward}) feeder.before({.region = region}, {});
           const Value& value = bound->program().at(path);
           std::vector<int32_t> part(static_cast<size_t>(value.local.count()));
           bound->read(value, std::as_writable_bytes(std::span(part)));
           std::lock_guard lock(adding);
           std::vector<int32_t>& whole = found[path];
           whole.resize(static_cast<size_t>(value.shape.count()), -7);
           for (const Piece& piece : held_pieces(*bound, value))
             for (int64_t r = 0; r < piece.rows; ++r)
               for (int64_t c = 0; c < piece.columns; ++c)
                 whole[static_cast<size_t>((piece.row + r) * value.shape[1] + piece.column + c)] =
                     part[static_cast<size_t>(piece.at + r * piece.stride + c)];
         }
       }))
    EXPECT_EQ(end.error, "");
  return found;
}

TEST(MtpFeeds, AreWhatStandsSoFarBehind) {
  ScratchRun scratch("mtp-feeds");
  constexpr int64_t kSeq = 32;
  constexpr int32_t kEnd = 46;
  for (bool masked : {false, true}) {
    MtpSettings settings{"batch.microbatch=8", "batch.seq=32"};
    if (masked) settings.insert(settings.end(), {"data.mask_documents=true", "data.end_of_text=46"});
    Rows rows = feeds_of(scratch, settings);
    int64_t hidden_by_documents = 0;
    for (int64_t depth = 1; depth <= 2; ++depth)
      for (int64_t row = 0; row < 8; ++row)
        for (int64_t i = 0; i < kSeq; ++i) {
          auto at = [&](const std::string& path, int64_t position) {
            return rows.at(path)[static_cast<size_t>(row * kSeq + position)];
          };
          // All that is known of the sequence: its tokens and the target of the last.
          auto token = [&](int64_t position) {
            return position < kSeq ? at("tokens", position) : at("targets", kSeq - 1);
          };
          bool ends = false;
          for (int64_t j = i; j < i + depth && j < kSeq; ++j) ends = ends || token(j) == kEnd;
          bool counts = i + depth < kSeq && !(masked && ends);
          hidden_by_documents += i + depth < kSeq && masked && ends ? 1 : 0;
          EXPECT_EQ(at(mtp_paths(depth).tokens, i), i + depth <= kSeq ? token(i + depth) : 0) << i;
          EXPECT_EQ(at(mtp_paths(depth).targets, i), counts ? token(i + depth + 1) : -1) << i;
        }
    if (masked)
      EXPECT_GT(hidden_by_documents, 0);
    else
      for (const char* mesh : {"mesh.cp=2", "mesh.cp=4"})
        for (const char* context : {"mesh.context=ring", "mesh.context=ulysses"})
          EXPECT_EQ(feeds_of(scratch, {"batch.microbatch=8", "batch.seq=32", mesh, context}), rows) << mesh << context;
  }
}

// With the first and the last stage on one rank there is one embedding; else the last stage has its own copy.
TEST(MtpMemory, IsThePlansAndHoldsTheEmbeddingOnce) {
  ScratchRun scratch("mtp-memory");
  for (const MeshCase& mesh : mtp_meshes()) {
    RunConfig run = scratch.config("tiny-moe.toml", mtp_settings(mesh.settings));
    ModelSpec spec = resolve_spec(run);
    LoweredRun lowered = lower_run(run, spec, cpu_target(1));
    RunPlan plan = make_plan({.run = run, .lowered = lowered});
    std::string name = mesh.name;
    for (size_t stage = 0; stage < lowered.programs.train.size(); ++stage) {
      const Program& program = lowered.programs.train[stage];
      EXPECT_EQ(plan.classes[stage].memory.total(), lowered.programs.arena_bytes(static_cast<int>(stage))) << name;
      bool holds = program.find("embed.weight") != nullptr, ends = program.find("mtp.0.eh_proj.weight") != nullptr;
      bool folded = name == "pp2_zbv" || name == "pp2_dualpipev";
      EXPECT_EQ(ends, lowered.programs.train.size() == 1 || stage == (folded ? 0U : 1U)) << name;
      EXPECT_EQ(holds, stage == 0 || ends) << name;
    }
  }
}

TEST(MtpConfig, WhatCannotBeIsRefused) {
  ScratchRun scratch("mtp-refused");
  auto complaint = [&](const char* file, const MtpSettings& settings) -> std::string {
    try {
      scratch.config(file, settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(complaint("tiny-llama.toml", {"model.mtp.depths=1"}).find("llama has no multi-token prediction"),
            std::string::npos);
  EXPECT_NE(complaint("tiny-moe.toml", mtp_settings({"model.mtp.depths=17"})).find("from 0 to 16"), std::string::npos);
  EXPECT_NE(complaint("tiny-moe.toml", mtp_settings({"model.mtp.loss_weight=-1"})).find("at least 0"),
            std::string::npos);
  EXPECT_NE(complaint("tiny-moe.toml", mtp_settings({"batch.seq=2"})).find("no target 2 tokens behind the next one"),
            std::string::npos);
}

}  // namespace
}  // namespace sextant
