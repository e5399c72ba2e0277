#include <algorithm>
#include <cmath>

#include "exec/cpu/attend.h"
#include "exec/cpu/blocks.h"
#include "exec/cpu/heads.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/vector_math.h"

namespace sextant::cpu {

namespace {

Bytes forward_workspace(const WorkspaceQuery& query) {
  return {query.threads * attend_scratch(query.attrs.integer("head_dim"))};
}

void forward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2];
    Heads heads = local_heads(call.attrs, width);
    int64_t blocks = ceil_div(length, kQueriesPerBlock), scratch = attend_scratch(heads.dim);
    const T* qkv = call.in[0].as<T>();
    T *y = call.out[0].as<T>(), *lse = call.out[1].as<T>();
    call.team.parallel_for(shape[0] * heads.q * blocks, [&](int64_t task, int thread) {
      int64_t b = task / blocks / heads.q, head = task / blocks % heads.q;
      int64_t first = (blocks - 1 - task % blocks) * kQueriesPerBlock;  // long blocks first, for balance
      const T* sequence = qkv + b * length * width;
      int64_t kv = heads.kv_of(head);
      attend(Attend<T>{.queries = std::min(kQueriesPerBlock, length - first),
                       .first = first,
                       .dim = heads.dim,
                       .q = {sequence + first * width + heads.q_at(head), width},
                       .k = {sequence + heads.k_at(kv), width},
                       .v = {sequence + heads.v_at(kv), width},
                       .y = y + (b * length + first) * heads.y_width() + head * heads.dim,
                       .y_stride = heads.y_width(),
                       .lse = lse + (b * heads.q + head) * length + first},
             call.workspace + thread * scratch);
    });
  });
}

constexpr int64_t kScores = kQueriesPerBlock * kKeysPerBlock;

int64_t backward_scratch(int64_t dim) {
  int64_t products = std::max({multiply_scratch(kKeysPerBlock, dim), multiply_scratch(dim, kKeysPerBlock),
                               multiply_scratch(dim, kQueriesPerBlock)});
  return 2 * kScores * static_cast<int64_t>(sizeof(double)) + products;
}

Bytes backward_workspace(const WorkspaceQuery& query) {
  return {query.threads * backward_scratch(query.attrs.integer("head_dim"))};
}

// One head of one sequence; every matrix has positions as rows.
template <class T>
struct HeadGradient {
  Matrix<T> q, k, v, y, dy;
  const T* lse;
  T *dq, *dk, *dv;  // rows as far apart as those of q
  int64_t length, dim;
};

struct Square {  // a block of queries against a block of keys
  int64_t first, queries, first_key, keys;
  int64_t diagonal() const { return first - first_key; }  // query i sees the keys up to i + diagonal
};

// scores <- p = exp(c·q·kᵀ − lse), slopes <- ds = c·p·(dy·vᵀ − Σ dy·y); both 0 where a key may not be seen.
template <class T>
void score_gradients(const HeadGradient<T>& h, const Square& s, T* scores, std::byte* product_scratch) {
  T scale = 1 / std::sqrt(static_cast<T>(h.dim));
  T* slopes = scores + kScores;
  Product<T> product{.m = s.queries,
                     .n = s.keys,
                     .k = h.dim,
                     .a = {h.q.at(s.first, 0), h.q.row_stride},
                     .b = Matrix<T>{h.k.at(s.first_key, 0), h.k.row_stride}.transposed(),
                     .c = scores,
                     .c_stride = kKeysPerBlock,
                     .triangle = Triangle::c_lower,
                     .diagonal = s.diagonal()};
  multiply(product, product_scratch);
  product.a = {h.dy.at(s.first, 0), h.dy.row_stride};
  product.b = Matrix<T>{h.v.at(s.first_key, 0), h.v.row_stride}.transposed();
  product.c = slopes;
  multiply(product, product_scratch);
  for (int64_t i = 0; i < s.queries; ++i) {
    T *p = scores + i * kKeysPerBlock, *ds = slopes + i * kKeysPerBlock;
    int64_t seen = std::clamp<int64_t>(s.first + i + 1 - s.first_key, 0, s.keys);
    T d = dot(h.dy.at(s.first + i, 0), h.y.at(s.first + i, 0), h.dim);
    exp_and_sum(p, seen, scale, h.lse[s.first + i]);
    for (int64_t j = 0; j < seen; ++j) ds[j] = scale * p[j] * (ds[j] - d);
    std::fill(p + seen, p + s.keys, T(0));
    std::fill(ds + seen, ds + s.keys, T(0));
  }
}

template <class T>
void head_backward(const HeadGradient<T>& h, std::byte* scratch) {
  T *scores = reinterpret_cast<T*>(scratch), *slopes = scores + kScores;
  std::byte* product_scratch = scratch + 2 * kScores * sizeof(double);
  int64_t stride = h.q.row_stride;
  for (int64_t first_key = 0; first_key < h.length; first_key += kKeysPerBlock) {
    for (int64_t first = first_key / kQueriesPerBlock * kQueriesPerBlock; first < h.length; first += kQueriesPerBlock) {
      Square s{first, std::min(kQueriesPerBlock, h.length - first), first_key, 0};
      s.keys = std::min({kKeysPerBlock, h.length - first_key, first + s.queries - first_key});
      score_gradients(h, s, scores, product_scratch);
      multiply(Product<T>{.m = s.queries,
                          .n = h.dim,
                          .k = s.keys,
                          .a = {slopes, kKeysPerBlock},
                          .b = {h.k.at(first_key, 0), stride},
                          .c = h.dq + first * stride,
                          .c_stride = stride,
                          .write = first_key == 0 ? Write::over : Write::add,
                          .triangle = Triangle::a_lower,
                          .diagonal = s.diagonal()},
               product_scratch);
      multiply(Product<T>{.m = s.keys,
                          .n = h.dim,
                          .k = s.queries,
                          .a = Matrix<T>{slopes, kKeysPerBlock}.transposed(),
                          .b = {h.q.at(first, 0), stride},
                          .c = h.dk + first_key * stride,
                          .c_stride = stride,
                          .write = Write::add,
                          .triangle = Triangle::a_upper,
                          .diagonal = s.diagonal()},
               product_scratch);
      multiply(Product<T>{.m = s.keys,
                          .n = h.dim,
                          .k = s.queries,
                          .a = Matrix<T>{scores, kKeysPerBlock}.transposed(),
                          .b = {h.dy.at(first, 0), h.dy.row_stride},
                          .c = h.dv + first_key * stride,
                          .c_stride = stride,
                          .write = Write::add,
                          .triangle = Triangle::a_upper,
                          .diagonal = s.diagonal()},
               product_scratch);
    }
  }
}

// All query heads of one key head belong to one task: their contributions to dk and dv add up in a fixed order.
void backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[1].shape;
    int64_t length = shape[1], width = shape[2];
    Heads heads = local_heads(call.attrs, width);
    int64_t scratch = backward_scratch(heads.dim), group = heads.q / heads.kv;
    call.team.parallel_for(shape[0] * heads.kv, [&](int64_t task, int thread) {
      int64_t b = task / heads.kv, kv = task % heads.kv;
      const T* qkv = call.in[1].as<T>() + b * length * width;
      T* dqkv = call.out[0].as<T>() + b * length * width;
      for (int64_t row = 0; row < length; ++row) {
        std::fill_n(dqkv + row * width + heads.k_at(kv), heads.dim, T(0));
        std::fill_n(dqkv + row * width + heads.v_at(kv), heads.dim, T(0));
      }
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        int64_t y_at = b * length * heads.y_width() + head * heads.dim;
        head_backward(HeadGradient<T>{.q = {qkv + heads.q_at(head), width},
                                      .k = {qkv + heads.k_at(kv), width},
                                      .v = {qkv + heads.v_at(kv), width},
                                      .y = {call.in[2].as<T>() + y_at, heads.y_width()},
                                      .dy = {call.in[0].as<T>() + y_at, heads.y_width()},
                                      .lse = call.in[3].as<T>() + (b * heads.q + head) * length,
                                      .dq = dqkv + heads.q_at(head),
                                      .dk = dqkv + heads.k_at(kv),
                                      .dv = dqkv + heads.v_at(kv),
                                      .length = length,
                                      .dim = heads.dim},
                      call.workspace + thread * scratch);
      }
    });
  });
}

}  // namespace

const CpuKernel attention{.run = forward, .workspace = forward_workspace};
const CpuKernel attention_backward{.run = backward, .workspace = backward_workspace};

}  // namespace sextant::cpu
