// Products of fp8 operands through cuBLASLt. On Hopper it takes one form of them, both operands along the sum, which is
// how the ops are defined. Forward adds up fast, gradients in f32; with scales for tiles everything is added up in f32.
#include <array>

#include "base/error.h"
#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/gemm/gemm_plan.h"
#include "exec/cuda/kernels/fp8_scales.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/fp8_sizes.h"

namespace sextant::cuda {

namespace {

Fp8GemmSizes sizes_of(const CudaPreparation& p) {
  Fp8GemmSizes sizes = fp8_gemm_sizes(p.op.attrs, p.in[0].shape, p.in[2].shape, p.out[0].shape);
  int64_t tile = p.op.attrs.integer_or("tile", kFp8Tile);
  if (!sizes.taken() || tile != kFp8Tile)
    throw RunError(p.op.path,
                   fmt::format("a product in fp8 of {}x{}x{}, with {} numbers to a scale, on a GPU", sizes.m, sizes.n,
                               sizes.k, tile),
                   fmt::format("sizes are multiples of {}, tiles have {}", kFp8Unit, kFp8Tile));
  return sizes;
}

GemmShape fp8_shape(const CudaPreparation& p, const Fp8GemmSizes& sizes, GemmScales scales) {
  return {.m = sizes.m,
          .n = sizes.n,
          .k = sizes.k,
          .b_order = MatrixOrder::transposed,
          .in = p.in[0].dtype,
          .out = p.out[0].dtype,
          .scales = scales,
          .scaled_b = p.in[2].dtype};
}

// A product, and the bias behind it where there is one: in the GEMM, or by a kernel of its own where the library cannot
// (of a bias in f32).
class ScaledGemm : public PreparedCudaKernel {
 public:
  ScaledGemm(const CudaPreparation& p, const GemmShape& shape) : library_(p.device.gemm()) {
    bool has_bias = p.in.size() > kBias && p.op.attrs.integer_or("accumulate", 0) == 0;
    const GemmPlan* with_bias = nullptr;
    if (has_bias && p.in[kBias].dtype == DType::bf16) {
      GemmShape biased = shape;
      biased.epilogue = GemmEpilogue::bias;
      with_bias = library_.find_plan(biased);
    }
    plan_ = with_bias ? with_bias : &library_.plan(shape);
    bias_behind_ = has_bias && !with_bias;
  }

 protected:
  void multiply(const CudaCall& call, GemmOperands operands, std::byte* workspace) const {
    if (plan_->shape().epilogue == GemmEpilogue::bias) operands.bias = call.in[kBias].data;
    library_.run(*plan_, operands, workspace, call.stream, call.check);
    if (!bias_behind_) return;
    std::array<Tensor, 2> in{call.out[0], call.in[kBias]};
    CudaCall after = call;
    after.in = in;
    cuda::row_bias.launch(after);
  }

 private:
  static constexpr size_t kBias = 4;

  GemmLibrary& library_;
  const GemmPlan* plan_;
  bool bias_behind_;
};

// One scale for each operand.
class TensorScaledGemm final : public ScaledGemm {
 public:
  TensorScaledGemm(const CudaPreparation& p, GemmSums sums) : ScaledGemm(p, shape_of(p, sums)) {}

  void launch(const CudaCall& call) override {
    multiply(call,
             {.a = call.in[0].data,
              .b = call.in[2].data,
              .c = call.out[0].data,
              .sum = call.accumulate() ? SumState::running : SumState::fresh,
              .a_scales = call.in[1].as<float>(),
              .b_scales = call.in[3].as<float>()},
             call.workspace);
  }

 private:
  static GemmShape shape_of(const CudaPreparation& p, GemmSums sums) {
    GemmShape shape = fp8_shape(p, sizes_of(p), GemmScales::tensors);
    shape.sums = sums;
    return shape;
  }
};

// A scale for every tile of a, and for every block or tile of b.
class TileScaledGemm final : public ScaledGemm {
 public:
  TileScaledGemm(const CudaPreparation& p, GemmScales scales)
      : ScaledGemm(p, shape_of(p, scales)), sizes_(sizes_of(p)), scales_(scales) {}

  void launch(const CudaCall& call) override {
    const Tensor &a = call.in[1], &b = call.in[3];
    std::byte* next = call.workspace;
    auto* a_scales = reinterpret_cast<float*>(next);
    transpose_scales(a.as<float>(), a_scales, sizes_.m, a.count() / sizes_.m, call.stream);
    next += tile_scale_bytes(a.shape);
    const float* b_scales = b.as<float>();
    if (scales_ == GemmScales::tiles) {
      auto* turned = reinterpret_cast<float*>(next);
      transpose_scales(b_scales, turned, sizes_.n, b.count() / sizes_.n, call.stream);
      b_scales = turned;
      next += tile_scale_bytes(b.shape);
    } else if (block_scale_bytes(b.shape) > 0) {
      auto* padded = reinterpret_cast<float*>(next);
      pad_scales(b_scales, padded, b.shape.rows(), b.shape.last(), block_scale_stride(b.shape), call.stream);
      b_scales = padded;
      next += block_scale_bytes(b.shape);
    }
    // Sequences whose last tile is not full are added up one after the other.
    int64_t products = sizes_.in_one() ? 1 : sizes_.sequences;
    int64_t depth = sizes_.k / products, tiles = ceil_div(depth, kFp8Tile);
    for (int64_t i = 0; i < products; ++i)
      multiply(call,
               {.a = call.in[0].as<uint8_t>() + i * depth,
                .b = call.in[2].as<uint8_t>() + i * depth,
                .c = call.out[0].data,
                .sum = call.accumulate() || i > 0 ? SumState::running : SumState::fresh,
                .a_scales = a_scales + i * tiles * sizes_.m,
                .b_scales = scales_ == GemmScales::tiles ? b_scales + i * tiles * sizes_.n : b_scales},
               next);
  }

 private:
  static GemmShape shape_of(const CudaPreparation& p, GemmScales scales) {
    Fp8GemmSizes sizes = sizes_of(p);
    GemmShape shape = fp8_shape(p, sizes, scales);
    if (sizes.in_one()) return shape;
    shape.a_stride = shape.b_stride = sizes.k;
    shape.k = sizes.k / sizes.sequences;
    return shape;
  }

  Fp8GemmSizes sizes_;
  GemmScales scales_;
};

template <GemmSums kSums>
std::unique_ptr<PreparedCudaKernel> of_tensors(const CudaPreparation& p) {
  return std::make_unique<TensorScaledGemm>(p, kSums);
}

template <GemmScales kScales>
std::unique_ptr<PreparedCudaKernel> of_tiles(const CudaPreparation& p) {
  return std::make_unique<TileScaledGemm>(p, kScales);
}

}  // namespace

const CudaKernel fp8_linear{.prepare = of_tensors<GemmSums::fast>};
const CudaKernel fp8_linear_input_gradient{.prepare = of_tensors<GemmSums::in_f32>};
const CudaKernel fp8_linear_weight_gradient{.prepare = of_tensors<GemmSums::in_f32>};
const CudaKernel fp8_block_linear{.prepare = of_tiles<GemmScales::tiles_and_blocks>};
const CudaKernel fp8_block_linear_input_gradient{.prepare = of_tiles<GemmScales::tiles_and_blocks>};
const CudaKernel fp8_block_linear_weight_gradient{.prepare = of_tiles<GemmScales::tiles>};

}  // namespace sextant::cuda
