// Into fp8 (base/fp8.h). A value is multiplied by scale = largest / amax before it is rounded, with amax its largest
// magnitude and `largest` that of the format; what the ops write is 1/scale, by which the bytes are multiplied to get
// the value back. An amax that is zero, infinite or NaN has the scale 1; a NaN passes through.
//
// absmax is apart from quantize_*, because its value is the whole tensor's: over the ranks that hold parts it is a
// maximum. quantize_tiles and quantize_blocks need no other rank: each tile of 1 × tile or tile × tile has its own.
//
// `transposed`=1: they write the transpose too, as GEMMs that sum over rows read it (ops/fp8_linear.cpp). Of tiles it
// has scales of its own, along what it is read along. Attrs: `dtype`, of what is written; `tile`.
//
// Recompute::with_input: what is made of a gathered value is made again of that, and not kept in its place.
#include "base/error.h"
#include "base/fp8.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

DType narrow_dtype(const Attrs& attrs) {
  auto dtype = dtype_from_name(attrs.text_or("dtype", ""));
  BUG_IF(!dtype || !is_fp8(*dtype), "quantize to '{}'", attrs.text_or("dtype", ""));
  return *dtype;
}

bool is_transposed(const Attrs& attrs) {
  return attrs.integer_or("transposed", 0) != 0;
}

int64_t tiles_along(const Attrs& attrs, int64_t extent) {
  return ceil_div(extent, attrs.integer("tile"));
}

GlobalShape transposed_shape(const GlobalShape& x) {
  if (x.rank() == 2) return {x[1], x[0]};
  return {x[2], x[0], x[1]};
}

// With one scale for all of it.
TensorTypes whole_types(const Attrs& attrs, std::span<const TensorType> in) {
  DType dtype = narrow_dtype(attrs);
  TensorTypes out{{dtype, in[0].shape}, {wide_of(in[0].dtype), GlobalShape{}}};
  if (is_transposed(attrs)) out.push_back({dtype, transposed_shape(in[0].shape)});
  return out;
}

TensorTypes tile_types(const Attrs& attrs, std::span<const TensorType> in) {
  DType dtype = narrow_dtype(attrs), wide = wide_of(in[0].dtype);
  const GlobalShape& x = in[0].shape;
  TensorTypes out{{dtype, x}, {wide, {x[0], x[1], tiles_along(attrs, x[2])}}};
  if (is_transposed(attrs)) {
    out.push_back({dtype, transposed_shape(x)});
    out.push_back({wide, {x[2], x[0], tiles_along(attrs, x[1])}});
  }
  return out;
}

TensorTypes block_types(const Attrs& attrs, std::span<const TensorType> in) {
  DType dtype = narrow_dtype(attrs), wide = wide_of(in[0].dtype);
  GlobalShape blocks{tiles_along(attrs, in[0].shape[0]), tiles_along(attrs, in[0].shape[1])};
  TensorTypes out{{dtype, in[0].shape}, {wide, blocks}};
  if (is_transposed(attrs)) {
    out.push_back({dtype, transposed_shape(in[0].shape)});
    out.push_back({wide, transposed_shape(blocks)});
  }
  return out;
}

// A product and a comparison an element.
constexpr double kQuantizeFlops = 2;

const Attrs kPlain{{"dtype", "e4m3"}}, kTurned{{"dtype", "e4m3"}, {"transposed", 1}};
const Attrs kTiles{{"dtype", "e4m3"}, {"tile", 2}}, kTilesTurned{{"dtype", "e5m2"}, {"tile", 2}, {"transposed", 1}};

}  // namespace

const OpDef absmax{
    .name = "absmax",
    .contract = "amax = the largest |x|; NaN where one of x is.",
    .operands = "x[*] -> amax[]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, GlobalShape{}}};
    },
    .wide = {0},
    .rows = {"*"},
    .without_letter = kPartialMax,
    .cost = [](const Attrs&, auto in,
               auto) { return Cost{.flops = {static_cast<double>(in[0].shape.count())}, .read = in[0].bytes()}; },
    .recompute = Recompute::never,
    .examples = {{.name = "small", .inputs = {f64({4, 6})}}},
};

const OpDef quantize_activation{
    .name = "quantize_activation",
    .contract = "q = fp8(x·largest/amax); scale = amax/largest; qt[i b s] = q[b s i].",
    .operands = "x[b s i], amax[] -> q[b s i], scale[], qt?[i b s]",
    .attrs = {"dtype", "transposed"},
    .shape = whole_types,
    .rows = {"b", "s", "i"},
    .without_letter = kReplicated,
    .cost = streaming_cost(kQuantizeFlops),
    .recompute = Recompute::with_input,
    .examples = {{.name = "plain", .inputs = {f64({4, 6, 8}), f64({})}, .attrs = kPlain},
                 {.name = "transposed", .inputs = {f64({4, 6, 8}), f64({})}, .attrs = kTurned}},
};

const OpDef quantize_weight{
    .name = "quantize_weight",
    .contract = "q = fp8(w·largest/amax); scale = amax/largest; qt[i o] = q[o i].",
    .operands = "w[o i], amax[] -> q[o i], scale[], qt?[i o]",
    .attrs = {"dtype", "transposed"},
    .shape = whole_types,
    .rows = {"o", "i"},
    .without_letter = kReplicated,
    .cost = streaming_cost(kQuantizeFlops),
    .recompute = Recompute::with_input,
    .examples = {{.name = "plain", .inputs = {f64({6, 8}), f64({})}, .attrs = kPlain},
                 {.name = "transposed", .inputs = {f64({6, 8}), f64({})}, .attrs = kTurned}},
};

const OpDef quantize_tiles{
    .name = "quantize_tiles",
    .contract =
        "amax of each `tile` neighbours along i; q = fp8(x·largest/amax); scales = amax/largest; qt and its scales "
        "the same of xᵀ[i b s], with neighbours along s.",
    .operands = "x[b s i] -> q[b s i], scales[b s k], qt?[i b s], transposed_scales?[i b n]",
    .attrs = {"dtype", "tile", "transposed"},
    .shape = tile_types,
    .rows = {"b", "x:S(s) -> q:S(s) scales:S(s) qt:S(s) transposed_scales:S(n)",
             "x:S(i) -> q:S(i) scales:S(k) qt:S(i) transposed_scales:S(i)"},
    .cost = streaming_cost(kQuantizeFlops),
    .recompute = Recompute::with_input,
    .examples = {{.name = "plain", .inputs = {f64({4, 8, 8})}, .attrs = kTiles},
                 {.name = "ragged", .inputs = {f64({4, 8, 7})}, .attrs = kTiles},
                 {.name = "transposed", .inputs = {f64({4, 8, 8})}, .attrs = kTilesTurned}},
};

const OpDef quantize_blocks{
    .name = "quantize_blocks",
    .contract =
        "amax of each block of tile × tile; q = fp8(w·largest/amax); scales = amax/largest; qt and its scales "
        "transposed.",
    .operands = "w[o i] -> q[o i], scales[p k], qt?[i o], transposed_scales?[k p]",
    .attrs = {"dtype", "tile", "transposed"},
    .shape = block_types,
    .rows = {"w:S(o) -> q:S(o) scales:S(p) qt:S(o) transposed_scales:S(p)",
             "w:S(i) -> q:S(i) scales:S(k) qt:S(i) transposed_scales:S(k)"},
    .cost = streaming_cost(kQuantizeFlops),
    .recompute = Recompute::with_input,
    .examples = {{.name = "plain", .inputs = {f64({8, 12})}, .attrs = kTiles},
                 {.name = "ragged", .inputs = {f64({7, 9})}, .attrs = kTiles},
                 {.name = "transposed", .inputs = {f64({8, 12})}, .attrs = kTilesTurned}},
};

}  // namespace sextant::ops
