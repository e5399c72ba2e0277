// The steps that the GPU takes are those that ir/walk.h lists, and so those of the CPU and of the simulator
// (tests/train/walk_test.cpp), on every kind of schedule.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "exec/cuda/runtime/cuda_executor.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "train/mesh_cases.h"
#include "train/scratch_run.h"
#include "train/walk_steps.h"

namespace sextant {
namespace {

MakeExecutor cuda_ranks() {
  return [](const RankContext& context, int) { return make_cuda_executor({}, context); };
}

class CudaWalk : public testing::TestWithParam<MeshCase> {};
INSTANTIATE_TEST_SUITE_P(Meshes, CudaWalk, testing::ValuesIn(meshes()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CudaWalk, TheGpuTakesTheListedSteps) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  ScratchRun scratch("cuda-walk");
  std::vector<std::string> settings = common_settings();
  for (const std::string& setting : GetParam().settings) settings.push_back(setting);
  settings.push_back("batch.seq=16");
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  std::unique_ptr<Executor> executor = make_cuda_executor({}, {});
  LoweredRun lowered = lower_run(run, resolve_spec(run), executor->target());
  if (lowered.shape.mesh.world_size() > 4) GTEST_SKIP() << "more ranks than share the GPU in tests";
  std::vector<Steps> by_gpu = executed_steps(lowered, cuda_ranks());
  for (int rank = 0; rank < lowered.shape.mesh.world_size(); ++rank) {
    auto stage = static_cast<size_t>(stage_rank_of(lowered.shape.mesh, rank));
    Steps steps = listed_steps(lowered.programs.train[stage]);
    ASSERT_GT(steps.size(), 40u);  // a stage that has the embedding alone takes 46
    EXPECT_TRUE(by_gpu[static_cast<size_t>(rank)] == steps) << "rank " << rank;
  }
}

}  // namespace
}  // namespace sextant
