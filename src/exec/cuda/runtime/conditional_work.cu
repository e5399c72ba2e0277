#include "exec/cuda/runtime/conditional_work.h"

#include <vector>

#include "exec/cuda/runtime/check.h"

namespace sextant {

namespace {

// Of a stream under capture: the graph, and what comes next depends on.
struct CaptureEnd {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
};

CaptureEnd capture_end(cudaStream_t stream) {
  CaptureEnd end;
  check_cuda(cudaStreamGetCaptureInfo(stream, &end.status, nullptr, &end.graph, &end.nodes, &end.edges, &end.count),
             "asking for a capture");
  return end;
}

__global__ void set_condition(cudaGraphConditionalHandle condition, const int32_t* choice) {
  cudaGraphSetConditional(condition, static_cast<unsigned>(*choice));
}

// A node behind all that the stream has captured so far; returns its bodies.
std::vector<cudaGraph_t> add_node(cudaStream_t stream, cudaGraphConditionalHandle condition, size_t bodies) {
  CaptureEnd end = capture_end(stream);
  cudaGraphNodeParams node{};
  node.type = cudaGraphNodeTypeConditional;
  node.conditional.handle = condition;
  node.conditional.type = cudaGraphCondTypeSwitch;
  node.conditional.size = static_cast<unsigned>(bodies);
  cudaGraphNode_t added = nullptr;
  check_cuda(cudaGraphAddNode(&added, end.graph, end.nodes, end.edges, end.count, &node), "adding a conditional node");
  check_cuda(cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies),
             "going on behind a conditional node");
  return {node.conditional.phGraph_out, node.conditional.phGraph_out + bodies};
}

void capture_body(cudaStream_t stream, cudaGraph_t body, const ConditionalWork::Work& work) {
  check_cuda(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal),
             "capturing a choice");
  cudaGraph_t ended = nullptr;
  try {
    work(stream);
  } catch (...) {
    cudaStreamEndCapture(stream, &ended);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &ended), "ending the capture of a choice");
}

}  // namespace

ConditionalWork::ConditionalWork() {
  check_cuda(cudaStreamCreateWithFlags(&body_, cudaStreamNonBlocking), "making a stream");
}

ConditionalWork::~ConditionalWork() {
  cudaStreamDestroy(body_);
}

void ConditionalWork::put(cudaStream_t stream, const int32_t* choice, std::span<const Work> choices,
                          const Work& unchosen) const {
  CaptureEnd begin = capture_end(stream);
  if (begin.status != cudaStreamCaptureStatusActive) return unchosen(stream);
  cudaGraphConditionalHandle condition;
  check_cuda(cudaGraphConditionalHandleCreate(&condition, begin.graph, 0, cudaGraphCondAssignDefault),
             "making a condition");
  set_condition<<<1, 1, 0, stream>>>(condition, choice);
  std::vector<cudaGraph_t> bodies = add_node(stream, condition, choices.size());
  for (size_t i = 0; i < choices.size(); ++i) capture_body(body_, bodies[i], choices[i]);
}

}  // namespace sextant
