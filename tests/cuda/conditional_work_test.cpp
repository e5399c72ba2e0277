// Work that the device chooses when a captured graph is replayed, between what stands before and behind it; outside of
// a capture, what stands in for all choices.
#include "exec/cuda/runtime/conditional_work.h"

#include <gtest/gtest.h>

#include <vector>

#include "cuda/device_runner.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {
namespace {

class CudaConditionalWork : public OnDevice {};

constexpr size_t kMarks = 5;

ConditionalWork::Work marking(std::byte* at, int mark) {
  return [=](cudaStream_t stream) { check_cuda(cudaMemsetAsync(at, mark, 1, stream), "mark"); };
}

// Each leaves a mark in a place of its own; the last takes two.
std::vector<ConditionalWork::Work> three_choices(std::byte* marks) {
  auto both = [first = marking(marks + 3, 3), second = marking(marks + 1, 4)](cudaStream_t stream) {
    first(stream);
    second(stream);
  };
  return {marking(marks + 1, 1), marking(marks + 2, 2), both};
}

std::vector<int> read_marks(const std::byte* marks) {
  std::vector<unsigned char> found(kMarks);
  check_cuda(cudaMemcpy(found.data(), marks, kMarks, cudaMemcpyDeviceToHost), "read");
  return {found.begin(), found.end()};
}

TEST_F(CudaConditionalWork, TheDeviceChoosesWhenTheGraphIsReplayed) {
  cudaStream_t stream = device().stream();
  GuardedBytes choice_memory(sizeof(int32_t)), marks_memory(kMarks);
  auto* choice = static_cast<int32_t*>(choice_memory.data());
  auto* marks = static_cast<std::byte*>(marks_memory.data());
  ConditionalWork work;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin");
  check_cuda(cudaMemsetAsync(marks, 0, kMarks, stream), "clear");
  work.put(stream, choice, three_choices(marks), [](cudaStream_t) { FAIL() << "the stream is captured"; });
  check_cuda(cudaMemsetAsync(marks + 4, 9, 1, stream), "end");
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
  const std::vector<std::vector<int>> expected{{0, 1, 0, 0, 9}, {0, 0, 2, 0, 9}, {0, 4, 0, 3, 9}, {0, 0, 0, 0, 9}};
  for (int32_t chosen : {0, 1, 2, 3, 1, 0}) {  // 3: none of them
    check_cuda(cudaMemcpy(choice, &chosen, sizeof(chosen), cudaMemcpyHostToDevice), "choice");
    check_cuda(cudaGraphLaunch(ready, stream), "launch");
    check_cuda(cudaStreamSynchronize(stream), "wait");
    EXPECT_EQ(read_marks(marks), expected[static_cast<size_t>(chosen)]) << chosen;
  }
  check_cuda(cudaGraphExecDestroy(ready), "destroy");
  check_cuda(cudaGraphDestroy(graph), "destroy");
}

TEST_F(CudaConditionalWork, WithoutACaptureNothingIsChosen) {
  GuardedBytes choice(sizeof(int32_t)), marks_memory(kMarks);
  auto* marks = static_cast<std::byte*>(marks_memory.data());
  check_cuda(cudaMemset(choice.data(), 0, sizeof(int32_t)), "choice");
  check_cuda(cudaMemset(marks, 0, kMarks), "clear");
  ConditionalWork work;
  work.put(device().stream(), static_cast<const int32_t*>(choice.data()), three_choices(marks), marking(marks, 7));
  check_cuda(cudaStreamSynchronize(device().stream()), "wait");
  EXPECT_EQ(read_marks(marks), (std::vector<int>{7, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace sextant
