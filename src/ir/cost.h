// Cost: what an op needs, from shapes only. Executed flops count multiply and add as two; bytes are the least that must
// cross memory (each operand once). Where the kind of kernel decides the time, its key stands here too: an op that says
// nothing is a streaming kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"

namespace sextant {

// y[rows, columns], each a sum of `depth` terms. Grouped: `count` of them in one kernel, each with operands of its own.
struct Gemm {
  double rows = 0, columns = 0, depth = 0;
  enum class Of : uint8_t {
    model,
    repeated,   // another op has computed it already: executed, but no work of the model
    optimizer,  // no work of the model either
  } of = Of::model;
  double count = 1;
  double flops() const { return 2 * count * rows * columns * depth; }
};

// Softmax attention of one rank's heads. Two GEMMs forward, five backward, of which one repeats the scores.
struct AttentionWork {
  double batch = 0, heads = 0, queries = 0, keys = 0, head_dim = 0;  // of queries and keys
  double value_dim = 0;                                              // of values and outputs; 0: head_dim
  double seen = 0.5;  // share of the queries × keys square that is computed
  bool backward = false;
  double kv_heads = 0;  // heads of keys and values; 0: as many as of queries

  double key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  double width_of_values() const { return value_dim > 0 ? value_dim : head_dim; }
  // Elements of a head that its GEMMs go over for each score: q·kᵀ and p·v; backward the scores again, dq and dk of
  // head_dim, dp and dv of value_dim.
  double summed(double key, double value) const { return backward ? 3 * key + 2 * value : key + value; }
  double square() const { return batch * heads * queries * keys; }  // scores, seen or not
  double flops() const { return 2 * square() * seen * summed(head_dim, width_of_values()); }
};

struct Cost {
  Flops flops;  // executed
  Bytes read;
  Bytes written;
  std::vector<Gemm> gemms = {};
  std::optional<AttentionWork> attention = {};
  std::optional<DType> computes_in = {};  // of its GEMMs, where that is not its operands' type
  double inner = 0;                       // elements that it makes and reads again inside: logits of a loss

  Cost& operator+=(const Cost& o) {
    flops += o.flops, read += o.read, written += o.written, inner += o.inner;
    gemms.insert(gemms.end(), o.gemms.begin(), o.gemms.end());
    if (o.attention) attention = o.attention;
    return *this;
  }
};

// FLOPs that the model requires, however it is executed: GEMMs count once, attention twice in forward and four times in
// backward. `square`: how much of attention's square counts, causal (visible positions only) or full.
enum class CountAttention : uint8_t { causal, full };
Flops model_flops(const Cost& cost, CountAttention square);

}  // namespace sextant
