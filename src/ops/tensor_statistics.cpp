// Statistics of tensors that a run measures while it trains (log.tensor_stats_every): sums that ranks with parts of a
// tensor add up. Nothing is trained on them. The largest magnitude comes from absmax (quantize.cpp).
//
// tensor_statistics: of activations and their gradients. rounding_statistics: of what a product in fp8 reads, beside
// what it was rounded to. change_statistics: of a weight before and after its update; in 16 bits a weight has its low
// bits beside it (adamw.cpp).
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

template <int64_t kNumbers>
TensorTypes numbers_of(const Attrs&, std::span<const TensorType> in) {
  return {{in[0].dtype, {kNumbers}}};
}

Cost read_once(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  Cost cost{.flops = {4 * static_cast<double>(in[0].shape.count())}, .written = out[0].bytes()};
  for (const TensorType& type : in) cost.read += type.bytes();
  return cost;
}

}  // namespace

const OpDef tensor_statistics{
    .name = "tensor_statistics",
    .contract =
        "sums = how many elements there are, Σ x², how many |x| <= zero_below, how many |x| >= largest (or are NaN).",
    .operands = "x[*] -> sums[n]",
    .attrs = {"zero_below", "largest"},
    .shape = numbers_of<4>,
    .wide = {0},
    .rows = {"*"},
    .cost = read_once,
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({4, 6})}, .attrs = {{"zero_below", 0.3}, {"largest", 0.8}}},
                 {.name = "cube", .inputs = {f64({2, 5, 7})}, .attrs = {{"zero_below", 0.5}, {"largest", 0.5}}}},
};

const OpDef rounding_statistics{
    .name = "rounding_statistics",
    .contract =
        "sums = how many elements there are, in how many q is zero and x is not, in how many |q| is the largest number "
        "of its format (or NaN).",
    .operands = "x[*], q[*] -> sums[n]",
    .shape = numbers_of<3>,
    .wide = {0},
    .rows = {"*"},
    .cost = read_once,
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({4, 6}), {DType::e4m3, {4, 6}}}, .attrs = {}}},
};

const OpDef change_statistics{
    .name = "change_statistics",
    .contract =
        "sums = how many elements there are, Σ (after − before)², Σ after², with low bits where they are given.",
    .operands = "before[*], after[*], low_before?[*], low_after?[*] -> sums[n]",
    .shape = numbers_of<3>,
    .wide = {0},
    .rows = {"*"},
    .cost = read_once,
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({4, 6}), f64({4, 6})}}},
};

}  // namespace sextant::ops
