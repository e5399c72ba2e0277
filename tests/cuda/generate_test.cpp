// A trained model writes the same text on the GPU as on the CPU, choosing the likeliest token each time.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "exec/cuda/runtime/cuda_executor.h"
#include "generate/generator.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

std::vector<uint32_t> likeliest_tokens(const std::filesystem::path& directory, Executor& executor) {
  Generator generator(directory, executor, 0);
  std::vector<uint32_t> tokens;
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 40};
  // A prompt of several tokens goes through prefill, what follows through decode.
  generator.generate("One day the baker and the old farmer", options, [&](uint32_t token) { tokens.push_back(token); });
  return tokens;
}

TEST(GenerateOnCuda, WritesWhatTheCpuWrites) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    SCOPED_TRACE(file);
    ScratchRun scratch("cuda-generate");
    scratch.run("run", {"train.steps=30"}, file);
    std::filesystem::path directory = scratch.root() / "run" / "step-000030";
    std::unique_ptr<Executor> cpu = make_cpu_executor(2, {}), cuda = make_cuda_executor({}, {});
    std::vector<uint32_t> tokens = likeliest_tokens(directory, *cpu);
    EXPECT_GT(tokens.size(), 1u);
    EXPECT_EQ(likeliest_tokens(directory, *cuda), tokens);
  }
}

}  // namespace
}  // namespace sextant
