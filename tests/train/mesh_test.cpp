// The same model on one rank and on many meshes: the losses of 20 steps and the weights at the end agree.
#include <gtest/gtest.h>

#include <cmath>

#include "ckpt/weights_reader.h"
#include "ckpt/convert.h"
#include "scratch_run.h"

namespace sextant {
namespace {

struct MeshCase {
  const char* name;
  std::vector<std::string> settings;
};

void PrintTo(const MeshCase& mesh, std::ostream* out) { *out << mesh.name; }

// AdamW divides by the root of the second moment: where a gradient is all but zero, its rounding error would become a step of
// full size. An eps well above that error keeps the comparison about the arithmetic.
const std::vector<std::string> kCommon{"optimizer.eps=1e-6", "optimizer.lr=1e-3", "model.layers=4",       "batch.sequences=8", "batch.microbatch=1", "batch.seq=32",
                                       "train.steps=20",       "train.eval_every=20", "train.eval_batches=2",
                                       "optimizer.schedule=constant", "train.timeout_s=60"};

double loss_at(const std::vector<std::string>& losses, size_t i) { return std::stod(losses[i]); }

void expect_same_weights(const std::filesystem::path& a, const std::filesystem::path& b) {
  WeightsReader left(a), right(b);
  for (const std::string& name : left.names()) {
    TensorView x = left.tensor(name), y = right.tensor(name);
    ASSERT_EQ(x.bytes.size(), y.bytes.size()) << name;
    const float* p = reinterpret_cast<const float*>(x.bytes.data());
    const float* q = reinterpret_cast<const float*>(y.bytes.data());
    double difference = 0, size = 0;
    for (size_t i = 0; i < x.bytes.size() / 4; ++i) {
      difference += (p[i] - q[i]) * (p[i] - q[i]);
      size += p[i] * p[i];
    }
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(size) + 1e-7) << name;
  }
}

class OnMeshes : public testing::TestWithParam<std::tuple<const char*, MeshCase>> {
 protected:
  // One reference run per architecture, shared by all meshes.
  static ScratchRun& scratch() {
    static ScratchRun run("meshes");
    return run;
  }
  static const std::vector<std::string>& reference(const std::string& file) {
    static std::map<std::string, std::vector<std::string>> known;
    if (auto at = known.find(file); at != known.end()) return at->second;
    scratch().run("one-" + file, kCommon, file);
    return known[file] = scratch().losses("one-" + file);
  }
};

TEST_P(OnMeshes, TrainsAsOneRankDoes) {
  const auto& [file, mesh] = GetParam();
  const std::vector<std::string>& expected = reference(file);
  std::vector<std::string> settings = kCommon;
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  std::string out = fmt::format("{}-{}", mesh.name, file);
  scratch().run(out, settings, file);
  std::vector<std::string> losses = scratch().losses(out);
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(loss_at(losses, i), loss_at(expected, i), 1e-5 * loss_at(expected, i)) << "step " << i + 1;
  expect_same_weights(scratch().root() / ("one-" + std::string(file)) / "step-000020", scratch().root() / out / "step-000020");
}

std::vector<MeshCase> meshes() {
  return {
      {"dp2", {"mesh.dp=2"}},
      {"dp4", {"mesh.dp=4"}},
      {"tp2", {"mesh.tp=2"}},
      {"tp4", {"mesh.tp=4"}},
      {"dp2_tp2", {"mesh.dp=2", "mesh.tp=2"}},
      {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"tp4_sp", {"mesh.tp=4", "mesh.sequence_parallel=true"}},
      {"zero1_dp2", {"mesh.dp=2", "mesh.zero=1"}},
      {"zero1_dp4", {"mesh.dp=4", "mesh.zero=1"}},
      {"zero2_dp2", {"mesh.dp=2", "mesh.zero=2"}},
      {"zero3_dp2", {"mesh.dp=2", "mesh.zero=3"}},
      {"zero3_dp4", {"mesh.dp=4", "mesh.zero=3"}},
      {"zero3_dp2_tp2_sp", {"mesh.dp=2", "mesh.zero=3", "mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"hsdp_zero3_dp4", {"mesh.dp=4", "mesh.zero=3", "mesh.zero_ranks=2"}},
      {"hsdp_zero1_dp4", {"mesh.dp=4", "mesh.zero=1", "mesh.zero_ranks=2"}},
      {"pp2_gpipe", {"mesh.pp=2", "pipeline.schedule=gpipe"}},
      {"pp2_1f1b", {"mesh.pp=2"}},
      {"pp4_1f1b", {"mesh.pp=4"}},
      {"pp2_interleaved", {"mesh.pp=2", "pipeline.schedule=interleaved", "pipeline.chunks=2"}},
      {"pp2_breadth_first", {"mesh.pp=2", "pipeline.schedule=breadth-first", "pipeline.chunks=2"}},
      {"pp2_zb_h1", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
      {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
      {"pp4_uneven", {"mesh.pp=2", "pipeline.layers='1,3'"}},
      {"dp2_tp2_pp2", {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}},
      {"dp2_pp2_zero3_full", {"mesh.dp=2", "mesh.pp=2", "mesh.zero=3", "train.recompute=full"}},
      {"cp2", {"mesh.cp=2"}},
      {"cp4", {"mesh.cp=4"}},
      {"cp2_tp2_dp2", {"mesh.cp=2", "mesh.tp=2", "mesh.dp=2"}},
      {"cp2_tp2_sp", {"mesh.cp=2", "mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"pp2_cp2_zero3", {"mesh.pp=2", "mesh.cp=2", "mesh.zero=3"}},
      {"pp2_cp2_zero3_full", {"mesh.pp=2", "mesh.cp=2", "mesh.zero=3", "train.recompute=full"}},
      {"cp2_ulysses", {"mesh.cp=2", "mesh.context=ulysses"}},
      {"cp4_ulysses", {"mesh.cp=4", "mesh.context=ulysses"}},
      {"cp2_ulysses_zero3", {"mesh.cp=2", "mesh.context=ulysses", "mesh.zero=3"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Meshes, OnMeshes,
                         testing::Combine(testing::Values("tiny-llama.toml", "tiny-gpt2.toml"), testing::ValuesIn(meshes())),
                         [](const auto& info) {
                           std::string file = std::get<0>(info.param);
                           return std::string(std::get<1>(info.param).name) + "_" + file.substr(5, file.find('.') - 5);
                         });

}  // namespace
}  // namespace sextant
