#include "exec/cuda/kernels/norm_any.cuh"

namespace sextant::cuda {

namespace {

void forward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_norm<Norm::layer>(NormRows<T>{.x = call.in[0].as<T>(),
                                         .w = call.in[1].as<T>(),
                                         .bias = call.in.size() > 2 ? call.in[2].as<T>() : nullptr,
                                         .y = call.out[0].as<T>(),
                                         .m = call.out[1].as<float>(),
                                         .r = call.out[2].as<float>(),
                                         .rows = shape.rows(),
                                         .width = shape.last(),
                                         .eps = static_cast<float>(call.attrs.real("eps")),
                                         .amax = amax_of(call)},
                             call.stream);
  });
}

void add_forward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_norm<Norm::layer>(NormRows<T>{.x = call.in[0].as<T>(),
                                         .plus = call.in[1].as<T>(),
                                         .w = call.in[2].as<T>(),
                                         .bias = call.in.size() > 3 ? call.in[3].as<T>() : nullptr,
                                         .sum = call.out[0].as<T>(),
                                         .y = call.out[1].as<T>(),
                                         .m = call.out[2].as<float>(),
                                         .r = call.out[3].as<float>(),
                                         .rows = shape.rows(),
                                         .width = shape.last(),
                                         .eps = static_cast<float>(call.attrs.real("eps")),
                                         .amax = amax_of(call)},
                             call.stream);
  });
}

void backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_norm_gradient<Norm::layer>(NormGradient<T>{.dy = call.in[0].as<T>(),
                                                      .x = call.in[1].as<T>(),
                                                      .w = call.in[2].as<T>(),
                                                      .m = call.in[3].as<float>(),
                                                      .r = call.in[4].as<float>(),
                                                      .plus = call.in.size() > 5 ? call.in[5].as<T>() : nullptr,
                                                      .dx = call.out[0].as<T>(),
                                                      .rows = shape.rows(),
                                                      .width = shape.last()},
                                      call);
  });
}

}  // namespace

const CudaKernel layer_norm{.launch = forward};
const CudaKernel add_layer_norm{.launch = add_forward};
const CudaKernel layer_norm_backward{.launch = backward};

}  // namespace sextant::cuda
