#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// Where the parts of a row of kv lie: of every key head its own part of the key, then its value.
struct LatentRows {
  LocalHeads heads;
  int64_t shared, own;  // of a key

  LatentRows(const Attrs& attrs, int64_t qkv_width)
      : heads(local_heads(attrs, qkv_width)), shared(attrs.integer("shared_dim")), own(heads.dim - shared) {}
  int64_t kv_width() const { return heads.kv * (own + heads.value_dim); }
  int64_t key_at(int64_t head) const { return head * (own + heads.value_dim); }
  int64_t value_at(int64_t head) const { return key_at(head) + own; }
};

void run_latent_qkv(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.out[0].shape.last();
    const LatentRows rows(call.attrs, width);
    const LocalHeads& heads = rows.heads;
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* kv = call.in[1].as<T>() + row * rows.kv_width();
        const T* shared = call.in[2].as<T>() + row * rows.shared;
        T* to = call.out[0].as<T>() + row * width;
        std::copy_n(call.in[0].as<T>() + row * heads.q_width(), heads.q_width(), to);
        for (int64_t head = 0; head < heads.kv; ++head) {
          std::copy_n(kv + rows.key_at(head), rows.own, to + heads.k_at(head));
          std::copy_n(shared, rows.shared, to + heads.k_at(head) + rows.own);
          std::copy_n(kv + rows.value_at(head), heads.value_dim, to + heads.v_at(head));
        }
      }
    });
  });
}

void run_latent_qkv_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    const LatentRows rows(call.attrs, width);
    const LocalHeads& heads = rows.heads;
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = call.in[0].as<T>() + row * width;
        T* kv = call.out[1].as<T>() + row * rows.kv_width();
        T* shared = call.out[2].as<T>() + row * rows.shared;
        std::copy_n(from, heads.q_width(), call.out[0].as<T>() + row * heads.q_width());
        std::fill_n(shared, rows.shared, T(0));
        for (int64_t head = 0; head < heads.kv; ++head) {
          const T* key = from + heads.k_at(head);
          std::copy_n(key, rows.own, kv + rows.key_at(head));
          for (int64_t j = 0; j < rows.shared; ++j) shared[j] += key[rows.own + j];
          std::copy_n(from + heads.v_at(head), heads.value_dim, kv + rows.value_at(head));
        }
      }
    });
  });
}

}  // namespace

const CpuKernel latent_qkv{.run = run_latent_qkv};
const CpuKernel latent_qkv_backward{.run = run_latent_qkv_backward};

}  // namespace sextant::cpu
