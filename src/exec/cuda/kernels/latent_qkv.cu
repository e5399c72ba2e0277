#include <numeric>

#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

// Widths of a row of packed qkv and of the rows that it is made of. `own` and `shared` are the parts of a key.
struct LatentSizes {
  int64_t q_width, k_width, width, kv_width;
  int dim, value_dim, own, shared, kv_heads;

  LatentSizes(const Attrs& attrs, int64_t qkv_width) : width(qkv_width) {
    LocalHeads heads = local_heads(attrs, qkv_width);
    q_width = heads.q_width();
    k_width = heads.k_width();
    dim = static_cast<int>(heads.dim);
    value_dim = static_cast<int>(heads.value_dim);
    shared = static_cast<int>(attrs.integer("shared_dim"));
    own = dim - shared;
    kv_heads = static_cast<int>(heads.kv);
    kv_width = heads.kv * (own + value_dim);
  }

  // All parts begin at multiples of it.
  int64_t divisor() const {
    int64_t parts = std::gcd(std::gcd(dim, value_dim), std::gcd(own, shared));
    return std::gcd(parts, std::gcd(width, kv_width));
  }
};

// V neighbouring elements of a row of qkv.
template <class T, int V>
struct Pack {
  const T *q, *kv, *shared;
  T* qkv;
  LatentSizes sizes;

  __device__ const T* source(int64_t row, int64_t column) const {
    if (column < sizes.q_width) return q + row * sizes.q_width + column;
    const T* from = kv + row * sizes.kv_width;
    int at = static_cast<int>(column - sizes.q_width), head_width = sizes.own + sizes.value_dim;
    if (at < sizes.k_width) {
      int head = at / sizes.dim, element = at - head * sizes.dim;
      return element < sizes.own ? from + head * head_width + element
                                 : shared + row * sizes.shared + element - sizes.own;
    }
    at -= static_cast<int>(sizes.k_width);
    int head = at / sizes.value_dim;
    return from + head * head_width + sizes.own + at - head * sizes.value_dim;
  }
  __device__ void operator()(int64_t row, int64_t column) const {
    store<V>(qkv + row * sizes.width + column, load<V>(source(row, column)));
  }
};

// V neighbouring elements of dq, dkv and dshared, one behind the other.
template <class T, int V>
struct Unpack {
  const T* dqkv;
  T *dq, *dkv, *dshared;
  LatentSizes sizes;

  __device__ void operator()(int64_t row, int64_t column) const {
    const T* from = dqkv + row * sizes.width;
    if (column < sizes.q_width) {
      store<V>(dq + row * sizes.q_width + column, load<V>(from + column));
      return;
    }
    const T* keys = from + sizes.q_width;
    int64_t at = column - sizes.q_width;
    if (at < sizes.kv_width) {
      int head_width = sizes.own + sizes.value_dim, head = static_cast<int>(at) / head_width;
      int element = static_cast<int>(at) - head * head_width;
      const T* source = element < sizes.own ? keys + head * sizes.dim + element
                                            : keys + sizes.k_width + head * sizes.value_dim + element - sizes.own;
      store<V>(dkv + row * sizes.kv_width + at, load<V>(source));
      return;
    }
    at -= sizes.kv_width;
    float sums[V] = {};
    for (int head = 0; head < sizes.kv_heads; ++head) {
      float values[V];
      load_floats(keys + head * sizes.dim + sizes.own + at, values);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += values[i];
    }
    store_floats(dshared + row * sizes.shared + at, sums);
  }
};

void run_latent_qkv(const CudaCall& call) {
  const LocalShape& shape = call.out[0].shape;
  const LatentSizes sizes(call.attrs, shape.last());
  for_cuda_vectors(call.in[0].dtype, sizes.divisor(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), sizes.width,
                       Pack<T, V>{call.in[0].as<const T>(), call.in[1].as<const T>(), call.in[2].as<const T>(),
                                  call.out[0].as<T>(), sizes});
  });
}

void run_latent_qkv_backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  const LatentSizes sizes(call.attrs, shape.last());
  for_cuda_vectors(call.in[0].dtype, sizes.divisor(), [&]<class T, int V>() {
    for_row_vectors<V>(
        call.stream, shape.rows(), sizes.q_width + sizes.kv_width + sizes.shared,
        Unpack<T, V>{call.in[0].as<const T>(), call.out[0].as<T>(), call.out[1].as<T>(), call.out[2].as<T>(), sizes});
  });
}

}  // namespace

const CudaKernel latent_qkv{.launch = run_latent_qkv};
const CudaKernel latent_qkv_backward{.launch = run_latent_qkv_backward};

}  // namespace sextant::cuda
