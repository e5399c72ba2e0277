// AttentionLibrary: cuDNN's attention, which reads and writes packed qkv rows in place. libcudnn.so.9 is opened at run
// time, so that a program built with it starts without it; execution plans are built once per shape and kept as long as
// the device.
//
// Enters: shapes of one rank, in bf16 or f16. Leaves: plans to run on a stream. cuDNN's headers stay in
// attention_library.cpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "exec/cuda/attention/document_batch.h"
#include "exec/cuda/runtime/device.h"
#include "targets/cuda/attention_sizes.h"

namespace sextant {

// qkv, dqkv [b, s, (heads + kv_heads)·d + kv_heads·v]; y, dy [b, s, heads·v]; lse [b, heads, s] in f32; begins [b, s]
// in i32, where documents stay apart. Forward has no dy and dqkv.
struct AttentionOperands {
  void *qkv = nullptr, *y = nullptr, *lse = nullptr, *dy = nullptr, *dqkv = nullptr;
  const int32_t* begins = nullptr;
  const cuda::DocumentBatch* documents = nullptr;  // of plans for a ragged batch; statistics are then there, not in lse
  size_t part = 0;                                 // of these, which the plan is of
};

struct AttentionPlan;

class AttentionLibrary {
 public:
  // Says on stderr, once, why cuDNN cannot be used where that is so.
  explicit AttentionLibrary(const CudaDevice& device);
  ~AttentionLibrary();
  AttentionLibrary(const AttentionLibrary&) = delete;
  AttentionLibrary& operator=(const AttentionLibrary&) = delete;

  const std::string& problem() const { return problem_; }  // why there are no plans; empty when there are

  // Null when cuDNN has no way to do it: then our own kernels must. RunError when its plan needs more scratch than was
  // planned; of masked attention, that is no way either.
  const AttentionPlan* forward(const AttentionShape& shape);
  const AttentionPlan* backward(const AttentionShape& shape);
  // Only puts work on the stream. CUDA graphs captured from it must not outlive the library.
  void run(const AttentionPlan& plan, const AttentionOperands& operands, std::byte* workspace,
           cudaStream_t stream) const;

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
  std::string problem_;
};

}  // namespace sextant
