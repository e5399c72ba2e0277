// Newton–Schulz on the tensor cores: GEMMs in bf16 where the weights are, as elsewhere; in f32 for f32 weights.
#include <algorithm>
#include <utility>
#include <vector>

#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/gemm/gemm_plan.h"
#include "exec/cuda/kernels/orthogonalize.h"
#include "exec/cuda/runtime/kernel.h"
#include "ops/muon.h"
#include "targets/cuda/orthogonalize_sizes.h"

namespace sextant::cuda {

namespace {

// The GEMMs of one packed matrix. Of a tall one the columns are iterated on: GEMMs are then from the right.
struct MatrixPlans {
  int64_t rows, columns;
  const GemmPlan *gram, *square, *step;

  MatrixPlans(GemmLibrary& library, int64_t rows_in, int64_t columns_in, DType dtype)
      : rows(rows_in), columns(columns_in) {
    int64_t s = shorter(), longer = std::max(rows, columns);
    gram = &library.plan({.m = s,
                          .n = s,
                          .k = longer,
                          .a_order = tall() ? MatrixOrder::transposed : MatrixOrder::as_is,
                          .b_order = tall() ? MatrixOrder::as_is : MatrixOrder::transposed,
                          .in = dtype,
                          .out = dtype});
    square = &library.plan({.m = s, .n = s, .k = s, .in = dtype, .out = dtype});
    step = &library.plan({.m = rows, .n = columns, .k = s, .in = dtype, .out = dtype});
  }
  bool tall() const { return rows > columns; }
  int64_t shorter() const { return std::min(rows, columns); }
};

class Orthogonalize final : public PreparedCudaKernel {
 public:
  explicit Orthogonalize(const CudaPreparation& p)
      : library_(p.device.gemm()), dtype_(orthogonalize_dtype(p.op.attrs)) {
    for (int64_t rows : p.op.attrs.integers("packed"))
      plans_.emplace_back(library_, rows, p.in[0].shape.last(), dtype_);
  }

  void launch(const CudaCall& call) override {
    int64_t at = 0;
    for (const MatrixPlans& plans : plans_) {
      run(plans, call, at);
      at += plans.rows * plans.columns;
    }
  }

 private:
  void run(const MatrixPlans& plans, const CudaCall& call, int64_t at) {
    int64_t count = plans.rows * plans.columns;
    OrthogonalizeSizes sizes(call.attrs.integers("packed"), plans.columns, size_of(dtype_));
    std::byte *x = call.workspace, *next = x + sizes.matrix, *gram = next + sizes.matrix, *square = gram + sizes.gram,
              *partials = square + sizes.gram, *scratch = partials + sizes.partials;
    normalize_matrix({.x = call.in[0].as<float>() + at,
                      .y = x,
                      .dtype = dtype_,
                      .count = count,
                      .least = kLeastNorm,
                      .partials = reinterpret_cast<double*>(partials)},
                     call.stream);
    auto [a, b, c] = kNewtonSchulz;
    for (int64_t step = 0; step < call.attrs.integer("steps"); ++step) {
      library_.run(*plans.gram, {x, x, gram}, scratch, call.stream);
      library_.run(*plans.square, {gram, gram, square}, scratch, call.stream);
      apply_polynomial({.gram = gram,
                        .square = square,
                        .dtype = dtype_,
                        .side = plans.shorter(),
                        .a = static_cast<float>(a),
                        .b = static_cast<float>(b),
                        .c = static_cast<float>(c)},
                       call.stream);
      const void *left = plans.tall() ? x : gram, *right = plans.tall() ? gram : x;
      library_.run(*plans.step, {left, right, next}, scratch, call.stream);
      std::swap(x, next);
    }
    scale_matrix(x, dtype_, call.out[0].as<float>() + at, count,
                 static_cast<float>(muon_factor(call.attrs, plans.rows, plans.columns)), call.stream);
  }

  GemmLibrary& library_;
  DType dtype_;
  std::vector<MatrixPlans> plans_;
};

}  // namespace

const CudaKernel orthogonalize{.prepare = [](const CudaPreparation& p) -> std::unique_ptr<PreparedCudaKernel> {
  return std::make_unique<Orthogonalize>(p);
}};

}  // namespace sextant::cuda
