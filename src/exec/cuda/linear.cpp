#include "exec/cuda/column_sums.h"
#include "exec/cuda/gemm.h"
#include "exec/cuda/kernel.h"

namespace sextant::cuda {

namespace {

// A product of the op's operands: its plan, and where each operand stands.
struct Roles {
  GemmShape shape;
  size_t a, b;             // inputs
  int bias = -1, aux = -1; // inputs; aux of gelu is output 1
};

class Product final : public PreparedCudaKernel {
 public:
  Product(const CudaPreparation& p, const Roles& roles)
      : library_(p.device.gemm()), plan_(library_.plan(roles.shape)), roles_(roles) {}

  void launch(const CudaCall& call) override {
    GemmOperands operands{call.in[roles_.a].data, call.in[roles_.b].data, call.out[0].data};
    if (roles_.bias >= 0) operands.bias = call.in[static_cast<size_t>(roles_.bias)].data;
    if (roles_.aux >= 0) operands.aux = call.in[static_cast<size_t>(roles_.aux)].data;
    if (roles_.shape.epilogue == GemmEpilogue::gelu || roles_.shape.epilogue == GemmEpilogue::gelu_bias)
      operands.aux = call.out[1].data;
    if (call.accumulate()) operands.sum = SumState::running;
    library_.run(plan_, operands, call.workspace, call.stream);
  }

 private:
  GemmLibrary& library_;
  const GemmPlan& plan_;
  Roles roles_;
};

Bytes product_workspace(const WorkspaceQuery&) { return {GemmLibrary::kWorkspace}; }

GemmShape forward_shape(const CudaPreparation& p) {
  return {.m = p.in[0].shape.rows(), .n = p.in[1].shape[0], .k = p.in[0].shape.last(), .b_order = MatrixOrder::transposed,
          .in = p.in[0].dtype, .out = p.out[0].dtype};
}

std::unique_ptr<PreparedCudaKernel> forward(const CudaPreparation& p) {
  Roles roles{.shape = forward_shape(p), .a = 0, .b = 1};
  if (p.in.size() > 2) roles.bias = 2, roles.shape.epilogue = GemmEpilogue::bias;
  return std::make_unique<Product>(p, roles);
}

std::unique_ptr<PreparedCudaKernel> forward_gelu(const CudaPreparation& p) {
  Roles roles{.shape = forward_shape(p), .a = 0, .b = 1};
  roles.shape.epilogue = GemmEpilogue::gelu;
  if (p.in.size() > 2) roles.bias = 2, roles.shape.epilogue = GemmEpilogue::gelu_bias;
  return std::make_unique<Product>(p, roles);
}

GemmShape input_gradient_shape(const CudaPreparation& p) {
  return {.m = p.in[0].shape.rows(), .n = p.out[0].shape.last(), .k = p.in[0].shape.last(), .in = p.in[0].dtype,
          .out = p.out[0].dtype};
}

std::unique_ptr<PreparedCudaKernel> input_gradient(const CudaPreparation& p) {
  return std::make_unique<Product>(p, Roles{.shape = input_gradient_shape(p), .a = 0, .b = 1});
}

std::unique_ptr<PreparedCudaKernel> gelu_gradient(const CudaPreparation& p) {
  Roles roles{.shape = input_gradient_shape(p), .a = 0, .b = 1, .aux = 2};
  roles.shape.epilogue = GemmEpilogue::gelu_gradient;
  return std::make_unique<Product>(p, roles);
}

std::unique_ptr<PreparedCudaKernel> weight_gradient(const CudaPreparation& p) {
  GemmShape shape{.m = p.in[0].shape.last(), .n = p.in[1].shape.last(), .k = p.in[0].shape.rows(),
                  .a_order = MatrixOrder::transposed, .in = p.in[0].dtype, .out = p.out[0].dtype};
  return std::make_unique<Product>(p, Roles{.shape = shape, .a = 0, .b = 1});
}

void bias_gradient(const CudaCall& call) {
  sum_columns({.x = call.in[0].data, .dtype = call.in[0].dtype, .rows = call.in[0].shape.rows(),
               .width = call.in[0].shape.last(), .out = call.out[0].as<float>(),
               .write = call.accumulate() ? ColumnSums::Write::add : ColumnSums::Write::over, .workspace = call.workspace,
               .stream = call.stream});
}

Bytes bias_gradient_workspace(const WorkspaceQuery& query) {
  return {column_sums_workspace(query.in[0].shape.rows(), query.in[0].shape.last())};
}

}  // namespace

const CudaKernel linear{.workspace = product_workspace, .prepare = forward};
const CudaKernel linear_gelu{.workspace = product_workspace, .prepare = forward_gelu};
const CudaKernel linear_gelu_gradient{.workspace = product_workspace, .prepare = gelu_gradient};
const CudaKernel linear_input_gradient{.workspace = product_workspace, .prepare = input_gradient};
const CudaKernel linear_weight_gradient{.workspace = product_workspace, .prepare = weight_gradient};
const CudaKernel linear_bias_gradient{.launch = bias_gradient, .workspace = bias_gradient_workspace};

}  // namespace sextant::cuda
