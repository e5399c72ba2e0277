// Value: one tensor of a Graph or Program. Where it came from (its path) survives every pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/units.h"
#include "ir/measured.h"
#include "ir/memory_space.h"
#include "mesh/layout.h"

namespace sextant {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

enum class ValueKind : uint8_t {
  activation,  // made and used inside a step
  parameter,   // a weight
  gradient,    // a weight's gradient, accumulated over microbatches
  tally,       // counts of a step, accumulated over microbatches as gradients are
  state,       // of the optimizer, kept between steps
  low_bits,   // what a weight that is computed with in 16 bits lacks of its f32: the low half; of an f16 weight, all of
              // it
  quantized,  // a weight in fp8, or its scales: made once a step, for all its microbatches
  cache,      // keys and values, kept between steps
  feed,       // given from outside each step: tokens, learning rate
  fetch,      // handed out: loss, gradient norm
};

// The quantity that a tally accumulates.
enum class TallyOf : uint8_t {
  load,             // slots of each expert of a layer
  lost_rows,        // slots that found no row on their way to experts (ops/dispatch.cpp)
  measured,         // what a run measures of its tensors (Value::measured)
  small_gradients,  // squares of the gradient of the first microbatch (passes/measure_tensors.h)
};

// How a parameter begins: drawn from Philox by (seed, path, global element index), or constant.
struct Init {
  enum class Kind : uint8_t { zeros, ones, normal } kind = Kind::zeros;
  double std = 0;  // normal only
  bool operator==(const Init&) const = default;
};

// A value that is some rows of a tensor in checkpoints (and draws its initial elements as those rows): how a model is
// cut on one mesh then shows on no other.
struct StoredIn {
  std::string path;  // empty: a tensor of its own, under the value's path
  int64_t first_row = 0;
  int64_t first_packed = 0;  // how many of that tensor's packed_rows come before
  bool operator==(const StoredIn&) const = default;
};

struct Value {
  ValueId id = kNoValue;
  std::string path;  // "layers.3.attn.q"
  ValueKind kind = ValueKind::activation;
  DType dtype = DType::f32;
  GlobalShape shape;
  Layout layout;
  // Of a parameter: the mesh axes whose ranks use the same elements of it on other data, in mesh order. Its gradient is
  // summed over them, and ZeRO shards over those it can. Along the others the layout alone says who holds what.
  std::vector<int> data_axes;
  // Of a gradient, a tally, a state and low bits: the parameter they belong to. Of an activation: the parameter with
  // whose gradient its tally is made, where there is one.
  ValueId of = kNoValue;
  TallyOf counted = TallyOf::load;   // of a tally, and of an activation that has one
  Init init;                         // parameters and states
  StoredIn stored;                   // parameters and states
  std::vector<int64_t> packed_rows;  // of a parameter that packs several tensors, one below the other: rows of each
  // Of a parameter that no optimizer trains: it follows its tally by the rule of ops::balance_bias, at this speed.
  std::optional<double> balance_speed;
  std::optional<Measured> measured;         // of a tally or a fetch that holds measured numbers
  MemorySpace space = MemorySpace::device;  // where its bytes are: states and low bits by update, the others by offload
  LocalShape local;                         // set by partition
  int32_t buffer = -1;                      // set by memory: an index into Program::buffers

  bool is_trained() const { return !balance_speed.has_value(); }  // parameters
  const std::string& stored_path() const { return stored.path.empty() ? path : stored.path; }
  Bytes global_bytes() const { return {shape.count() * size_of(dtype)}; }
  Bytes local_bytes() const { return {local.count() * size_of(dtype)}; }
};

// Kinds whose bytes stay valid from step to step.
constexpr bool is_persistent(ValueKind kind) {
  return kind != ValueKind::activation && kind != ValueKind::quantized && kind != ValueKind::feed &&
         kind != ValueKind::fetch;
}

// Kinds that are sums over the microbatches of a step: the first one overwrites what the step before left.
constexpr bool is_step_sum(ValueKind kind) {
  return kind == ValueKind::gradient || kind == ValueKind::tally;
}

std::string_view name_of(ValueKind kind);
std::string init_text(const Init& init);  // "zeros", "ones", "normal(0.02)"

}  // namespace sextant
