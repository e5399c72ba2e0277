#include "cost/software_profile.h"

namespace sextant {

SoftwareProfile own_profile() {
  SoftwareProfile own;
  own.name = "sextant";
  own.about = "our own executor on GPUs";
  own.source =
      "docs/gpu.md: CUDA graphs, cuDNN attention, f32 gradients; the master weight is the bf16 one and 16 bits more";
  own.kernels = Kernels::ours;
  own.optimizer_bytes = 2 + 4 + 4;  // those 16 bits and two moments
  return own;
}

}  // namespace sextant
