// The products of a linear (ops/linear.cpp) of operands in fp8, summed in f32 and written wide. Every product is of the
// form c = a·bᵀ with both operands contiguous along what is summed over, which is the one form that fp8 units of a
// Hopper GPU take: so the gradients read transposed copies, w as wt[i o] and dy, x as dyt[o b s], xt[i b s].
//
// Scales are what bytes are multiplied by to get the value. fp8_linear*: one for each operand. fp8_block_linear*: one
// for every `tile` numbers along what is summed over, of a weight one for each block of tile × tile. Attrs: `to`, the
// type that is written, without it that of the scales; `tile`.
#include "base/error.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

DType written_dtype(const Attrs& attrs, const TensorType& scales) {
  if (!attrs.has("to")) return scales.dtype;
  auto dtype = dtype_from_name(attrs.text_or("to", ""));
  BUG_IF(!dtype, "an fp8 product to '{}'", attrs.text_or("to", ""));
  return *dtype;
}

// c[m n] = a[m k]·b[n k]ᵀ, whatever dims m and k are made of.
Cost product_cost(std::span<const TensorType> in, std::span<const TensorType> out) {
  auto rows = static_cast<double>(out[0].shape.rows()), columns = static_cast<double>(out[0].shape.last());
  Gemm gemm{.rows = rows, .columns = columns, .depth = static_cast<double>(in[0].shape.count()) / rows};
  return gemms_cost({gemm}, in, out);
}

Cost fp8_cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  return product_cost(in, out);
}

TensorTypes tokens_out(const Attrs& attrs, std::span<const TensorType> in) {
  return {{written_dtype(attrs, in[1]), {in[0].shape[0], in[0].shape[1], in[2].shape[0]}}};
}

TensorTypes weights_out(const Attrs& attrs, std::span<const TensorType> in) {
  return {{written_dtype(attrs, in[1]), {in[0].shape[0], in[2].shape[0]}}};
}

// The scales of an operand with tiles along its last dim, or with blocks.
void require_tiles(const Attrs& attrs, const TensorType& operand, const TensorType& scales) {
  int64_t tile = attrs.integer("tile");
  BUG_IF(ceil_div(operand.shape.last(), tile) != scales.shape.last(), "{} scales for tiles of {} of {}",
         scales.shape.text(), tile, operand.shape.text());
}

TensorTypes tiled_tokens_out(const Attrs& attrs, std::span<const TensorType> in) {
  require_tiles(attrs, in[0], in[1]);
  require_tiles(attrs, in[2], in[3]);
  BUG_IF(ceil_div(in[2].shape[0], attrs.integer("tile")) != in[3].shape[0], "{} scales for blocks of {}",
         in[3].shape.text(), in[2].shape.text());
  return tokens_out(attrs, in);
}

TensorTypes tiled_weights_out(const Attrs& attrs, std::span<const TensorType> in) {
  require_tiles(attrs, in[0], in[1]);
  require_tiles(attrs, in[2], in[3]);
  return weights_out(attrs, in);
}

TensorType e4m3(GlobalShape shape) {
  return {DType::e4m3, std::move(shape)};
}
TensorType e5m2(GlobalShape shape) {
  return {DType::e5m2, std::move(shape)};
}

const Attrs kTiled{{"tile", 2}};

}  // namespace

const OpDef fp8_linear{
    .name = "fp8_linear",
    .contract = "y = x_scale·w_scale·x·wᵀ (+ bias).",
    .operands = "x[b s i], x_scale[], w[o i], w_scale[], bias?[o] -> y[b s o]",
    .attrs = {"to"},
    .shape = tokens_out,
    .rows = {"b", "s", "o", "x:S(i) w:S(i) bias:P -> y:P"},
    .cost = fp8_cost,
    .examples = {{.name = "plain", .inputs = {e4m3({2, 4, 6}), f64({}), e4m3({6, 6}), f64({})}},
                 {.name = "bias", .inputs = {e4m3({2, 4, 6}), f64({}), e4m3({6, 6}), f64({}), f64({6})}}},
};

const OpDef fp8_linear_input_gradient{
    .name = "fp8_linear_input_gradient",
    .contract = "dx = dy_scale·w_scale·dy·wtᵀ.",
    .operands = "dy[b s o], dy_scale[], wt[i o], w_scale[] -> dx[b s i]",
    .attrs = {"to"},
    .shape = tokens_out,
    .rows = {"b", "s", "i", "o"},
    .cost = fp8_cost,
    .examples = {{.name = "plain", .inputs = {e5m2({2, 4, 6}), f64({}), e4m3({4, 6}), f64({})}}},
};

const OpDef fp8_linear_weight_gradient{
    .name = "fp8_linear_weight_gradient",
    .contract = "dw = dy_scale·x_scale·dyt·xtᵀ, summed over all tokens.",
    .operands = "dyt[o b s], dy_scale[], xt[i b s], x_scale[] -> dw[o i]",
    .attrs = {"to"},
    .shape = weights_out,
    .rows = {"b", "s", "o", "i"},
    .cost = fp8_cost,
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain", .inputs = {e5m2({6, 2, 4}), f64({}), e4m3({4, 2, 4}), f64({})}}},
};

const OpDef fp8_block_linear{
    .name = "fp8_block_linear",
    .contract = "y = x·wᵀ (+ bias), each operand times its scales.",
    .operands = "x[b s i], x_scales[b s k], w[o i], w_scales[p k], bias?[o] -> y[b s o]",
    .attrs = {"tile", "to"},
    .shape = tiled_tokens_out,
    .rows = {"b", "s", "w:S(o) w_scales:S(p) bias:S(o) -> y:S(o)",
             "x:S(i) x_scales:S(k) w:S(i) w_scales:S(k) bias:P -> y:P"},
    .cost = fp8_cost,
    .examples = {{.name = "plain",
                  .inputs = {e4m3({2, 4, 12}), f64({2, 4, 6}), e4m3({12, 12}), f64({6, 6})},
                  .attrs = kTiled},
                 {.name = "ragged",
                  .inputs = {e4m3({2, 4, 5}), f64({2, 4, 3}), e4m3({7, 5}), f64({4, 3}), f64({7})},
                  .attrs = kTiled},
                 {.name = "bias",
                  .inputs = {e4m3({2, 4, 12}), f64({2, 4, 6}), e4m3({12, 12}), f64({6, 6}), f64({12})},
                  .attrs = kTiled}},
};

const OpDef fp8_block_linear_input_gradient{
    .name = "fp8_block_linear_input_gradient",
    .contract = "dx = dy·wtᵀ, each operand times its scales.",
    .operands = "dy[b s o], dy_scales[b s p], wt[i o], w_scales[k p] -> dx[b s i]",
    .attrs = {"tile", "to"},
    .shape = tiled_tokens_out,
    .rows = {"b", "s", "wt:S(i) w_scales:S(k) -> dx:S(i)", "dy:S(o) dy_scales:S(p) wt:S(o) w_scales:S(p) -> dx:P"},
    .cost = fp8_cost,
    .examples = {{.name = "plain",
                  .inputs = {e4m3({2, 4, 8}), f64({2, 4, 4}), e4m3({8, 8}), f64({4, 4})},
                  .attrs = kTiled}},
};

const OpDef fp8_block_linear_weight_gradient{
    .name = "fp8_block_linear_weight_gradient",
    .contract = "dw = dyt·xtᵀ, each operand times its scales, summed over all tokens.",
    .operands = "dyt[o b s], dy_scales[o b n], xt[i b s], x_scales[i b n] -> dw[o i]",
    .attrs = {"tile", "to"},
    .shape = tiled_weights_out,
    .rows = {"b", "dyt:S(s) dy_scales:S(n) xt:S(s) x_scales:S(n) -> dw:P", "o", "i"},
    .cost = fp8_cost,
    .accumulate = Accumulate::supported,
    .examples = {{.name = "plain",
                  .inputs = {e4m3({6, 2, 8}), f64({6, 2, 4}), e4m3({4, 2, 8}), f64({4, 2, 4})},
                  .attrs = kTiled}},
};

}  // namespace sextant::ops
