// ALiBi parameters of attention kernels, from the op's attrs and the rows of its output, whose placement gives the
// heads of the model that this rank has.
#pragma once

#include "base/error.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/tensor.h"
#include "ir/attrs.h"
#include "ops/attention_widths.h"
#include "targets/cuda/attention_sizes.h"

namespace sextant::cuda {

inline void set_alibi(AttentionBlock& block, const Attrs& attrs, const Tensor& y) {
  if (!has_alibi(attrs)) return;
  BUG_IF(y.placement && y.placement->dims[2].size() > 1, "a rank's heads of attention lie apart");
  block.alibi_heads = static_cast<int>(attrs.integer("heads"));
  block.first_head = static_cast<int>(y.global_index(2, 0) / value_dim_of(attrs));
}

}  // namespace sextant::cuda
