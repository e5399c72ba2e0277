#include <algorithm>
#include <array>

#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/gemm/gemm_plan.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/narrow.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant::cuda {

namespace {

// One GEMM of the inputs a and b.
class PreparedGemm final : public PreparedCudaKernel {
 public:
  PreparedGemm(const CudaPreparation& p, const GemmShape& shape)
      : library_(p.device.gemm()), plan_(library_.plan(shape)) {}

  void launch(const CudaCall& call) override {
    GemmOperands operands{call.in[0].data, call.in[1].data, call.out[0].data};
    if (plan_.shape().epilogue == GemmEpilogue::bias) operands.bias = call.in[2].data;
    if (call.accumulate()) operands.sum = SumState::running;
    library_.run(plan_, operands, call.workspace, call.stream, call.check);
  }

 private:
  GemmLibrary& library_;
  const GemmPlan& plan_;
};

GemmShape forward_shape(const CudaPreparation& p) {
  return {.m = p.in[0].shape.rows(),
          .n = p.in[1].shape[0],
          .k = p.in[0].shape.last(),
          .b_order = MatrixOrder::transposed,
          .in = p.in[0].dtype,
          .out = p.out[0].dtype,
          .epilogue = p.in.size() > 2 ? GemmEpilogue::bias : GemmEpilogue::none};
}

GemmShape input_gradient_shape(const CudaPreparation& p) {
  return {.m = p.in[0].shape.rows(),
          .n = p.out[0].shape.last(),
          .k = p.in[0].shape.last(),
          .in = p.in[0].dtype,
          .out = p.out[0].dtype};
}

GemmShape weight_gradient_shape(const CudaPreparation& p) {
  return {.m = p.in[0].shape.last(),
          .n = p.in[1].shape.last(),
          .k = p.in[0].shape.rows(),
          .a_order = MatrixOrder::transposed,
          .in = p.in[0].dtype,
          .out = p.out[0].dtype};
}

template <GemmShape (*shape_of)(const CudaPreparation&)>
std::unique_ptr<PreparedCudaKernel> gemm(const CudaPreparation& p) {
  return std::make_unique<PreparedGemm>(p, shape_of(p));
}

int64_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}

// Base class of three ops that are a GEMM with an epilogue. The epilogue is fused, or a kernel after a plain GEMM does
// it, whichever is faster for the shape.
class GemmWithEpilogue : public PreparedCudaKernel {
 public:
  GemmWithEpilogue(const CudaPreparation& p, const GemmShape& plain, GemmEpilogue epilogue, int64_t bytes_more)
      : library_(p.device.gemm()), plain_(library_.plan(plain)) {
    GemmShape shape = plain;
    shape.epilogue = epilogue;
    fused_ = library_.find_plan(shape);
    if (fused_ && !library_.pays(*fused_, plain_, bytes_more)) fused_ = nullptr;
  }

 protected:
  GemmLibrary& library_;
  const GemmPlan& plain_;
  const GemmPlan* fused_;  // null: the plain GEMM is used
};

class LinearGelu final : public GemmWithEpilogue {
 public:
  explicit LinearGelu(const CudaPreparation& p)
      : GemmWithEpilogue(p, forward_shape(p), p.in.size() > 2 ? GemmEpilogue::gelu_bias : GemmEpilogue::gelu,
                         2 * bytes_of(p.out[0])) {}

  void launch(const CudaCall& call) override {
    void* bias = call.in.size() > 2 ? call.in[2].data : nullptr;
    if (fused_)
      return library_.run(*fused_, {call.in[0].data, call.in[1].data, call.out[0].data, bias, call.out[1].data},
                          call.workspace, call.stream, call.check);
    library_.run(plain_, {call.in[0].data, call.in[1].data, call.out[1].data, bias}, call.workspace, call.stream,
                 call.check);
    CudaCall after = call;
    after.in = call.out.subspan(1, 1);
    after.out = call.out.first(1);
    cuda::gelu.launch(after);
  }
};

class LinearGeluGradient final : public GemmWithEpilogue {
 public:
  explicit LinearGeluGradient(const CudaPreparation& p)
      : GemmWithEpilogue(p, input_gradient_shape(p), GemmEpilogue::gelu_gradient, 3 * bytes_of(p.out[0])) {
    if (p.op.attrs.has("checked")) fused_ = nullptr;  // what is checked must be stored
  }

  void launch(const CudaCall& call) override {
    GemmOperands operands{call.in[0].data, call.in[1].data, call.out[0].data};
    if (fused_) {
      operands.aux = call.in[2].data;
      return library_.run(*fused_, operands, call.workspace, call.stream, call.check);
    }
    library_.run(plain_, operands, call.workspace, call.stream, call.check);
    std::array<Tensor, 2> in{call.out[0], call.in[2]};
    CudaCall after = call;
    after.in = in;
    cuda::gelu_backward.launch(after);
  }
};

void sum_bias(const CudaCall& call, const Tensor& out, SumState sum) {
  sum_columns({.x = call.in[0].data,
               .dtype = call.in[0].dtype,
               .rows = call.in[0].shape.rows(),
               .width = call.in[0].shape.last(),
               .out = out.as<float>(),
               .write = sum == SumState::running ? ColumnSums::Write::add : ColumnSums::Write::over,
               .workspace = call.workspace,
               .stream = call.stream});
}

class LinearGradients final : public GemmWithEpilogue {
 public:
  explicit LinearGradients(const CudaPreparation& p)
      : GemmWithEpilogue(p, weight_gradient_shape(p), GemmEpilogue::row_sums, bytes_of(p.in[0])) {}

  void launch(const CudaCall& call) override {
    GemmOperands operands{call.in[0].data, call.in[1].data, call.out[0].data};
    operands.sum = call.sum;
    if (fused_ && call.sum == SumState::fresh) {  // the epilogue cannot add onto a sum
      operands.bias = call.out[1].data;
      return library_.run(*fused_, operands, call.workspace, call.stream, call.check);
    }
    library_.run(plain_, operands, call.workspace, call.stream, call.check);
    sum_bias(call, call.out[1], call.sum);
  }
};

// A gradient of linear_wide: the gradient of its sums is f32, and narrowed to the type of the other operand first.
class WideGradient final : public PreparedCudaKernel {
 public:
  WideGradient(const CudaPreparation& p, GemmShape shape)
      : library_(p.device.gemm()), narrow_(p.in[1].dtype), plan_(library_.plan(narrowed(shape, p.in[1].dtype))) {}

  void launch(const CudaCall& call) override {
    const Tensor& dy = call.in[0];
    std::byte* gemm_workspace = call.workspace;
    const void* gradient = dy.data;
    if (narrow_ != dy.dtype) {
      narrow_floats(dy.as<float>(), call.workspace, narrow_, dy.count(), call.stream);
      gradient = call.workspace;
      gemm_workspace += narrowed_bytes(dy.count(), size_of(narrow_));
    }
    GemmOperands operands{gradient, call.in[1].data, call.out[0].data};
    if (call.accumulate()) operands.sum = SumState::running;
    library_.run(plan_, operands, gemm_workspace, call.stream, call.check);
  }

 private:
  static GemmShape narrowed(GemmShape shape, DType dtype) {
    shape.in = dtype;
    return shape;
  }

  GemmLibrary& library_;
  DType narrow_;
  const GemmPlan& plan_;
};

template <GemmShape (*shape_of)(const CudaPreparation&)>
std::unique_ptr<PreparedCudaKernel> wide_gradient(const CudaPreparation& p) {
  return std::make_unique<WideGradient>(p, shape_of(p));
}

template <class Prepared>
std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  return std::make_unique<Prepared>(p);
}

void bias_gradient(const CudaCall& call) {
  sum_bias(call, call.out[0], call.accumulate() ? SumState::running : SumState::fresh);
}

}  // namespace

const CudaKernel linear{.prepare = gemm<forward_shape>};
const CudaKernel linear_gelu{.prepare = prepare<LinearGelu>};
const CudaKernel linear_gelu_gradient{.prepare = prepare<LinearGeluGradient>};
const CudaKernel linear_input_gradient{.prepare = gemm<input_gradient_shape>};
const CudaKernel linear_weight_gradient{.prepare = gemm<weight_gradient_shape>};
const CudaKernel linear_gradients{.prepare = prepare<LinearGradients>};
const CudaKernel linear_bias_gradient{.launch = bias_gradient};
const CudaKernel linear_wide{.prepare = gemm<forward_shape>};
const CudaKernel linear_wide_input_gradient{.prepare = wide_gradient<input_gradient_shape>};
const CudaKernel linear_wide_weight_gradient{.prepare = wide_gradient<weight_gradient_shape>};

}  // namespace sextant::cuda
