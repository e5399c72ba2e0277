// Precision: what a run computes in (train.precision).
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "describe/choice.h"

namespace sextant {

enum class Precision : uint8_t { automatic, f32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4 };

struct PrecisionChoice : Choice<Precision> {
  // Of everything that is not a product of narrower operands; none: the widest type that the device is fastest in.
  std::optional<DType> computes_in = {};
};

inline constexpr PrecisionChoice kPrecisions[] = {
    {{Precision::automatic, "auto", "bf16 on a GPU, f32 on the CPU"}},
    {{Precision::f32, "f32", "f32 throughout"}, DType::f32},
    {{Precision::bf16, "bf16",
      "bf16, with weights in f32 precision beside it, and gradients and optimizer state in f32"},
     DType::bf16},
    {{Precision::fp16, "fp16", "IEEE half in place of bf16, with losses scaled (`train.loss_scale`)"}, DType::f16},
    {{Precision::fp8, "fp8",
      "linears of the blocks in fp8 with f32 sums and one scale for each tensor (e4m3, gradients in e5m2), the rest as "
      "`auto`"}},
    {{Precision::fp8_block, "fp8-block",
      "the same with scales for tiles of 1 × 128 and blocks of 128 × 128 of weights (e4m3)"}},
    {{Precision::mxfp8, "mxfp8", "a format of later devices, which `plan --machine` prices and nothing here runs yet"}},
    {{Precision::nvfp4, "nvfp4", "likewise"}},
};
constexpr const auto& choices_of(Precision) {
  return kPrecisions;
}

}  // namespace sextant
