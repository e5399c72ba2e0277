// The places of a list of tokens, ordered by the row of the vocabulary that each names; equal rows stay in the order of
// their places. A stable radix sort: the order, and so every sum made along it, is the same in every run.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "exec/tensor.h"
#include "targets/cuda/embedding_sizes.h"

namespace sextant::cuda {

struct TokenOrder {
  const int32_t* rows;    // ascending; tokens that another rank holds, and `without`, come last, as row `absent`
  const int32_t* places;  // rows[i] is named by tokens[places[i]]
};

struct TokenList {
  const int32_t* tokens;
  int64_t count;         // below 2^31
  const Tensor& w;       // [v, ...]: its placement says which tokens are here, its dim 0 is `absent`
  std::byte* workspace;  // token_order_workspace bytes
  cudaStream_t stream;
  int64_t without = -1;  // a token to leave out
};

TokenOrder order_tokens(const TokenList& list);  // the result lies in the workspace

}  // namespace sextant::cuda
