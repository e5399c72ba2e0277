// The bias by which experts are chosen follows the load of the whole step: by the same amounts however the batch is cut
// into microbatches and ranks and whatever is computed again, and not at all in a step that is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "ckpt/model_weights.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "config/mesh_axes.h"
#include "mesh_cases.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/health/replica_check.h"
#include "train/trainer.h"

namespace sextant {
namespace {

constexpr float kSpeed = 0.01f;
constexpr int kBiasSteps = 4;

using Vectors = std::map<std::string, std::vector<float>>;  // by path

// A rank's part of the values whose paths have this begin and end.
Vectors held_vectors(const Bound& bound, std::string_view begin, std::string_view end) {
  Vectors found;
  for (const Value& value : bound.program().values) {
    if (!value.path.starts_with(begin) || !value.path.ends_with(end) || value.buffer < 0) continue;
    std::vector<float>& x = found[value.path];
    x.resize(static_cast<size_t>(value.local.count()));
    bound.read(value, std::as_writable_bytes(std::span(x)));
  }
  return found;
}

Vectors biases_of(const Bound& bound) {
  return held_vectors(bound, "layers.", "router.correction");
}

// Every layer has experts; a rank holds the biases of some.
void expect_ranges(const StepMetrics& metrics, const Vectors& biases) {
  for (const auto& [path, bias] : biases) {
    size_t layer = std::stoul(path.substr(path.find('.') + 1));
    auto [least, most] = std::minmax_element(bias.begin(), bias.end());
    EXPECT_EQ(metrics[number::correction_bias_min].at(layer), static_cast<double>(*least)) << path;
    EXPECT_EQ(metrics[number::correction_bias_max].at(layer), static_cast<double>(*most)) << path;
  }
}

class ExpertBias : public testing::TestWithParam<MeshCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("expert-bias");
    return run;
  }

  // DeepSeek-V3's router in a small model. Weights stay as they are, so that rounding cannot change what is chosen.
  static ModelSpec spec_of(const RunConfig& run) {
    ModelSpec spec = resolve_spec(run);
    ExpertsSpec& experts = *spec.experts;
    experts.count = 8;
    experts.score = ExpertScore::sigmoid;
    experts.groups = 4, experts.keep_groups = 2, experts.group_top = 2;
    experts.scale = 2.5;
    experts.correction_bias = true;
    experts.bias_update_speed = static_cast<double>(kSpeed);
    return spec;
  }

  static RunConfig config(const std::vector<std::string>& more) {
    std::vector<std::string> settings = common_settings();
    for (const char* own : {"batch.seq=16", "train.eval_every=0", "optimizer.lr=0"}) settings.emplace_back(own);
    settings.insert(settings.end(), more.begin(), more.end());
    return scratch().config("tiny-moe.toml", settings);
  }

  // Some steps from the same weights; `after` sees the trainer of every rank at the end of each.
  static void train_with(const std::vector<std::string>& settings,
                         const std::function<void(Trainer&, int step)>& after) {
    RunConfig run = config(settings);
    ModelSpec spec = spec_of(run);
    RunPrograms programs = build_programs(run, run_shape(run, spec), cpu_target(1));
    ThreadTeam readers(1);
    Dataset dataset = open_dataset(run, spec, readers, [](std::string_view) {});
    int ranks = mesh_of(run.mesh).world_size();
    ThreadHub hub(ranks, std::chrono::seconds(60));
    for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
           auto executor = make_cpu_executor(1, {transport.rank(), ranks == 1 ? nullptr : &transport});
           HostGroup group = ranks == 1 ? HostGroup() : HostGroup(transport, kHostTag);
           Trainer trainer({run, programs, dataset, *executor, group});
           initialize_weights(trainer.bound(), 1);
           for (int step = 1; step <= kBiasSteps; ++step) {
             trainer.begin_step(step, (step - 1) * run.batch.sequences);
             expect_ranges(trainer.finish_step(), biases_of(trainer.bound()));
             after(trainer, step);
           }
           ReplicaCheck(trainer.bound(), ranks == 1 ? nullptr : &transport, SameWork::same_bits).check_all();
         }))
      EXPECT_EQ(end.error, "");
  }

  // Of all layers, after the last step.
  static Vectors biases_after(const std::vector<std::string>& settings) {
    Vectors biases;
    std::mutex adding;
    train_with(settings, [&](Trainer& trainer, int step) {
      if (step < kBiasSteps) return;
      std::lock_guard lock(adding);
      for (auto& [path, bias] : biases_of(trainer.bound())) {
        auto [known, fresh] = biases.emplace(path, bias);
        EXPECT_EQ(known->second, bias) << path << " differs between ranks";
      }
    });
    return biases;
  }
};

TEST_F(ExpertBias, FollowsTheCountsOfEachStep) {
  Vectors before;
  int moved = 0;
  train_with({"batch.microbatch=2"}, [&](Trainer& trainer, int) {
    Vectors counts = held_vectors(trainer.bound(), "tally.", "load.counts"), now = biases_of(trainer.bound());
    ASSERT_EQ(now.size(), 4U);
    ASSERT_EQ(counts.size(), 4U);
    for (const auto& [path, bias] : now) {
      std::string layer = path.substr(0, path.find(".router"));
      const std::vector<float>& load = counts.at("tally." + layer + ".load.counts");
      float slots = std::accumulate(load.begin(), load.end(), 0.0f);
      EXPECT_EQ(slots, 8 * 16 * 2) << "tokens of the step, times experts per token";
      std::vector<float>& old = before[path];
      old.resize(bias.size());
      for (size_t e = 0; e < bias.size(); ++e) {
        float mean = slots / 8, expected = load[e] < mean ? old[e] + kSpeed : load[e] > mean ? old[e] - kSpeed : old[e];
        EXPECT_EQ(bias[e], expected) << path << " of expert " << e << ", which got " << load[e];
        if (bias[e] != old[e]) ++moved;
      }
      old = bias;
    }
  });
  EXPECT_GT(moved, 0);
}

TEST_F(ExpertBias, OfASkippedStepStaysAsItIs) {
  Vectors before;
  train_with({}, [&](Trainer& trainer, int step) {
    Vectors now = biases_of(trainer.bound());
    if (step > 2) {
      EXPECT_EQ(now, before) << "step " << step;
    }
    if (step > 1) {
      before = now;
      std::vector<float> bad{std::numeric_limits<float>::quiet_NaN()};
      trainer.bound().write(trainer.bound().program().at("head.weight"), std::as_bytes(std::span(bad)));
    }
  });
}

TEST_P(ExpertBias, IsTheSameOnEveryLayout) {
  static const Vectors one = biases_after({});
  ASSERT_EQ(one.size(), 4U);
  EXPECT_EQ(biases_after(GetParam().settings), one);
}

std::vector<MeshCase> bias_cases() {
  std::vector<MeshCase> cases{
      {"microbatch2", {"batch.microbatch=2"}},
      {"microbatch8", {"batch.microbatch=8"}},
      {"full", {"train.recompute=full"}},
      {"selective", {"train.recompute=selective"}},
  };
  for (const MeshCase& mesh : meshes())
    for (std::string_view name :
         {"dp2", "tp2", "tp2_sp", "zero1_dp2", "zero2_dp2", "zero3_dp2_tp2_sp", "hsdp_zero3_dp4", "pp2_1f1b", "pp2_zbv",
          "dp2_pp2_zero3_full", "cp2", "cp2_tp2_sp", "cp2_ulysses"})
      if (mesh.name == name) cases.push_back(mesh);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExpertBias, testing::ValuesIn(bias_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sextant
