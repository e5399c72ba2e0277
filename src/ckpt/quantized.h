// Quantised weights of Hugging Face directories, read as numbers. Two forms:
//   mxfp4 (gpt-oss): NAME_blocks U8 [slices, rows, columns / 32, 16] holds two numbers of four bits in a byte, the
//   first
//     in the low bits, and NAME_scales U8 [slices, rows, columns / 32] the exponent, plus 127, of each 32 of them;
//   fp8 by blocks (DeepSeek-V3): NAME F8_E4M3 [rows, columns], or a stack of such, and NAME_scale_inv F32 (or BF16)
//   with
//     a factor for each block of 128 × 128, of which the last ones may be smaller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ckpt/convert.h"
#include "ckpt/weights_reader.h"

namespace sextant {

constexpr int64_t kMxfp4Group = 32;     // numbers with one scale
constexpr int64_t kFp8BlockSize = 128;  // rows and columns with one scale

float float_from_e2m1(uint8_t code);  // the low four bits
float float_from_e8m0(uint8_t code);  // a power of two; NaN for 255

// The shape of a tensor of weights, one matrix or a stack of them.
struct MatrixShape {
  int64_t slices = 0;  // 0: the tensor has no dim for them
  int64_t rows = 0, columns = 0;
  GlobalShape in_file() const { return slices > 0 ? GlobalShape{slices, rows, columns} : GlobalShape{rows, columns}; }
};

class Mxfp4Weights {
 public:
  // None where the source has no blocks of this name. UserError where their shapes do not fit.
  static std::optional<Mxfp4Weights> find(const WeightsReader& source, const std::string& name,
                                          const MatrixShape& shape);
  void load(int64_t slice, RowRange rows, std::span<float> destination) const;

 private:
  TensorView blocks_, scales_;
  MatrixShape shape_;
};

class Fp8Weights {
 public:
  // None where the tensor is of another type or has no scales. UserError where shapes do not fit.
  static std::optional<Fp8Weights> find(const WeightsReader& source, const std::string& name, const MatrixShape& shape);
  void load(int64_t slice, RowRange rows, std::span<float> destination) const;

 private:
  TensorView weights_;
  std::vector<float> scales_;
  MatrixShape shape_, blocks_;
};

}  // namespace sextant
