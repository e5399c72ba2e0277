// Sums of gradients that do not depend on the order in which they are made: train.reproducible = "mesh".
//
// exact_sum rounds a term to a multiple of a fixed quantum and adds it in f64. As long as `terms` of them cannot exceed
// 2^53 quanta, no addition rounds, so any order over microbatches and ranks gives the same bits. A term that is too
// large for that becomes infinite, and what is not finite stays so: the norm tells, and the update changes nothing.
// exact_squares, add_exact_squares and exact_total do the same for the gradient norm, whose terms span more than 53
// bits: in bins of 32 (exec/exact_arithmetic.h). exact_value is the sum as the optimizer reads it.
//
// No row along k: the bins are three, and are read together.
// exact_total: No row but the implied ones: the bins must be whole before they are read.
#include "base/error.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

// The type in which optimizers read gradients.
DType exact_value_type(const Attrs& attrs) {
  auto dtype = dtype_from_name(attrs.text_or("dtype", "f32"));
  BUG_IF(!dtype, "no type '{}'", attrs.text_or("dtype", ""));
  return *dtype;
}

constexpr int64_t kExactBins = 3;

}  // namespace

const OpDef exact_sum{
    .name = "exact_sum",
    .contract =
        "sum = x, each element rounded to a multiple of 2^-44, in f64; infinite where |x| > 2^9 / terms, so that sums "
        "of that many are exact.",
    .operands = "x[*] -> sum[*]",
    .attrs = {"terms"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{DType::f64, in[0].shape}};
    },
    .rows = {"*", "x:P -> sum:P"},
    .cost = streaming_cost(4),
    .recompute = Recompute::never,
    .accumulate = Accumulate::supported,
    .examples = {{.name = "matrix", .inputs = {f64({3, 5})}, .attrs = {{"terms", 4}}}},
};

const OpDef exact_value{
    .name = "exact_value",
    .contract = "x = sum, rounded to `dtype`.",
    .operands = "sum[*] -> x[*]",
    .attrs = {"dtype"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{exact_value_type(attrs), in[0].shape}};
    },
    .rows = {"*"},
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .examples = {{.name = "matrix", .inputs = {f64({3, 5})}, .attrs = {{"dtype", std::string("f64")}}}},
};

const OpDef exact_squares{
    .name = "exact_squares",
    .contract =
        "bins = Σ x² over all elements, each rounded to `dtype` before, as three numbers: multiples of 2^-6, 2^-38 and "
        "2^-70, whose sum it is.",
    .operands = "x[*] -> bins[k]",
    .attrs = {"dtype"},
    .shape = [](const Attrs&, auto) -> TensorTypes {
      return {{DType::f64, {kExactBins}}};
    },
    .rows = {"*"},
    .cost = [](const Attrs&, auto in,
               auto) { return Cost{.flops = {12 * static_cast<double>(in[0].shape.count())}, .read = in[0].bytes()}; },
    .held_by_several = HeldBySeveral::first_only,
    .examples = {{.name = "small", .inputs = {f64({3, 5})}, .attrs = {{"dtype", std::string("f64")}}}},
};

const OpDef add_exact_squares{
    .name = "add_exact_squares",
    .contract = "total = Σ bins.",
    .operands = "bins...[k] -> total[k]",
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[0]}; },
    .rows = {"bins:P -> total:P"},
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .missing_inputs = MissingInputs::left_out,
    .examples = {{.name = "three", .inputs = {f64({3}), f64({3}), f64({3})}}},
};

const OpDef exact_total{
    .name = "exact_total",
    .contract = "y = bins[0] + bins[1] + bins[2], rounded to `dtype`; infinite from 2^46 on.",
    .operands = "bins[k] -> y[]",
    .attrs = {"dtype"},
    .shape = [](const Attrs& attrs, auto) -> TensorTypes {
      return {{exact_value_type(attrs), {}}};
    },
    .cost = streaming_cost(3),
    .recompute = Recompute::never,
    .examples = {{.name = "bins", .inputs = {f64({3})}, .attrs = {{"dtype", std::string("f64")}}}},
};

}  // namespace sextant::ops
