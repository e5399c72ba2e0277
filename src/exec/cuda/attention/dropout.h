// Dropout parameters of attention kernels, from the op's attrs and operands. `y` holds rows of attention's output; its
// placement gives the heads of the model that this rank has.
#pragma once

#include "base/error.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/dropout_mask.h"
#include "exec/tensor.h"
#include "ir/attrs.h"
#include "ops/attention_widths.h"

namespace sextant::cuda {

// Where query 0 and key 0 of a block stand in their sequences.
struct BlockPlace {
  int64_t query_0 = 0, key_0 = 0;
};

inline void set_dropout(AttentionBlock& block, const Attrs& attrs, std::span<const Tensor> in, const Tensor& y,
                        BlockPlace place = {}) {
  const Tensor* keys = dropout_keys(in);
  if (!keys) return;
  BUG_IF(y.placement && y.placement->dims[2].size() > 1, "a rank's heads of attention lie apart");
  const DropoutMask mask(attrs);
  block.dropout = {.keys = keys->as<const uint64_t>(),
                   .site = static_cast<uint32_t>(mask.site()),
                   .first_head = static_cast<uint32_t>(y.global_index(2, 0) / value_dim_of(attrs)),
                   .threshold = mask.threshold(),
                   .factor = static_cast<float>(mask.factor()),
                   .query_0 = place.query_0,
                   .key_0 = place.key_0};
}

}  // namespace sextant::cuda
