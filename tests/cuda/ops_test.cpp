// Every CUDA kernel against the CPU's in double, on the examples of its definition and on shapes that cross its tiles,
// in f32, bf16 and f16 (inputs are rounded before both): results, in place, accumulate, and the same bits twice.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/fp8.h"
#include "cuda/device_runner.h"
#include "ops/shapes.h"
#include "targets/cuda/fp8_sizes.h"

namespace sextant {
namespace {

struct Case {
  const OpDef* def;
  Example example;
};

Attrs heads(int64_t q, int64_t kv, int64_t dim) {
  return {{"heads", q}, {"kv_heads", kv}, {"head_dim", dim}};
}

Attrs rope_attrs(int64_t q, int64_t kv, int64_t dim) {
  Attrs attrs = heads(q, kv, dim);
  attrs.set("theta", 10000.0);
  return attrs;
}

// Both norms, forward and backward, over rows of one width.
void add_norms(std::vector<Case>& cases, int64_t rows, int64_t width) {
  TensorType x = f64({1, rows, width}), w = f64({width}), r = f64({1, rows});
  Attrs eps{{"eps", 1e-5}};
  std::string name = fmt::format("{}x{}", rows, width);
  cases.push_back({&ops::rms_norm, {name, {x, w}, eps}});
  cases.push_back({&ops::add_rms_norm, {name, {x, x, w}, eps}});
  cases.push_back({&ops::rms_norm_backward, {name, {x, x, w, r}, {}}});
  cases.push_back({&ops::rms_norm_backward, {name + "_plus", {x, x, w, r, x}, {}}});
  cases.push_back({&ops::layer_norm, {name, {x, w, w}, eps}});
  cases.push_back({&ops::add_layer_norm, {name, {x, x, w, w}, eps}});
  cases.push_back({&ops::layer_norm_backward, {name, {x, x, w, r, r}, {}}});
  cases.push_back({&ops::layer_norm_backward, {name + "_plus", {x, x, w, r, r, x}, {}}});
  cases.push_back({&ops::layer_norm, {name + "_no_bias", {x, w}, eps}});
  cases.push_back({&ops::layer_norm_backward, {name + "_no_bias", {x, x, w, r, r}, {{"bias", 0}}}});
}

// A width for each way in which norms share out a row (norm.cuh), in both types.
void add_norm_cases(std::vector<Case>& cases) {
  for (auto [rows, width] : std::vector<std::pair<int64_t, int64_t>>{{300, 768},
                                                                     {2200, 256},
                                                                     {700, 512},
                                                                     {257, 1600},
                                                                     {64, 2048},
                                                                     {40, 3072},
                                                                     {9, 4096},
                                                                     {5, 1003},
                                                                     {6, 8192},
                                                                     {3, 16384},
                                                                     {3, 20000}})
    add_norms(cases, rows, width);
}

void add_streaming_cases(std::vector<Case>& cases) {
  for (int64_t n : {int64_t{16411}, int64_t{40960}}) {
    TensorType x = f64({3, n});
    std::string name = fmt::format("of_{}", 3 * n);
    cases.push_back({&ops::accumulate, {name, {x, x}, {}}});
    cases.push_back({&ops::add, {name, {x, x}, {}}});
    cases.push_back({&ops::scale, {name, {x}, {{"factor", 0.22}}}});
    cases.push_back({&ops::gelu, {name, {x}, {}}});
    cases.push_back({&ops::gelu_backward, {name, {x, x}, {}}});
    cases.push_back({&ops::gelu_erf, {name, {x}, {}}});
    cases.push_back({&ops::gelu_erf_backward, {name, {x, x}, {}}});
    cases.push_back({&ops::relu, {name, {x}, {}}});
    cases.push_back({&ops::relu_backward, {name, {x, x}, {}}});
    cases.push_back({&ops::swish, {name, {x}, {{"beta", 1.702}}}});
    cases.push_back({&ops::swish_backward, {name, {x, x}, {{"beta", 1.702}}}});
    cases.push_back({&ops::squared_relu, {name, {x}, {}}});
    cases.push_back({&ops::squared_relu_backward, {name, {x, x}, {}}});
    cases.push_back({&ops::sum_squares, {name, {x}, {}}});
    cases.push_back({&ops::exact_sum, {name, {x}, {{"terms", 8}}}});
    cases.push_back({&ops::exact_squares, {name, {x}, {{"dtype", std::string("f32")}}}});
  }
  for (int64_t f : {int64_t{131}, int64_t{1408}}) {
    std::string name = fmt::format("width_{}", f);
    Attrs attrs{{"dropout", 0.3}, {"site", 7}};
    cases.push_back({&ops::dropout, {name, {f64({3, 173, f}), i64({3})}, attrs, int64_t{1} << 50}});
    cases.push_back({&ops::swiglu, {name, {f64({3, 173, 2 * f})}, {}}});
    cases.push_back({&ops::swiglu_backward, {name, {f64({3, 173, f}), f64({3, 173, 2 * f})}, {}}});
    cases.push_back({&ops::geglu, {name, {f64({3, 173, 2 * f})}, {}}});
    cases.push_back({&ops::geglu_backward, {name, {f64({3, 173, f}), f64({3, 173, 2 * f})}, {}}});
    cases.push_back({&ops::linear_bias_gradient, {name, {f64({3, 411, f})}, {}}});
    cases.push_back({&ops::take_position, {name, {f64({5, 130, f}), i32({})}, {}, 130}});
    Attrs experts{{"experts", 6}}, clamping{{"limit", 0.7}, {"alpha", 1.702}};
    TensorType slots = f64({3, 2 * 173, f}), chosen = i32({3, 173, 2}), weights = f64({3, 173, 2}), bias = f64({6 * f});
    TensorType rows = f64({3, 173, f}), pairs = f64({3, 2 * 173, 2 * f});
    cases.push_back({&ops::row_bias, {name, {rows, f64({f})}, {}}});
    cases.push_back({&ops::expert_up_bias, {name, {slots, bias, chosen}, experts, 6}});
    cases.push_back({&ops::expert_up_bias_gradient, {name, {slots, chosen}, experts, 6}});
    cases.push_back({&ops::expert_down_bias, {name, {rows, bias, weights, chosen}, experts, 6}});
    cases.push_back({&ops::expert_down_bias_gradient, {name, {rows, bias, weights, chosen}, experts, 6}});
    cases.push_back({&ops::weighted_clamped_swiglu, {name, {pairs, weights}, clamping}});
    cases.push_back({&ops::weighted_clamped_swiglu_backward, {name, {slots, pairs, weights}, clamping}});
    Attrs in_blocks{{"experts", 6}, {"blocks", 2}};
    TensorType sent = f64({1, 3, 346, f}), sent_to = i32({1, 3, 346}), sent_weights = f64({1, 3, 346});
    cases.push_back({&ops::expert_rows_bias, {name, {sent, bias, sent_to}, in_blocks, 6}});
    cases.push_back({&ops::expert_rows_bias_gradient, {name, {sent, sent_to}, in_blocks, 6}});
    cases.push_back({&ops::expert_rows_weighted_bias, {name, {sent, bias, sent_weights, sent_to}, in_blocks, 6}});
    cases.push_back(
        {&ops::expert_rows_weighted_bias_gradient, {name, {sent, bias, sent_weights, sent_to}, in_blocks, 6}});
    Attrs of_copies{{"capacity", 120}, {"copies", 90}, {"experts", 6}};
    TensorType copies = f64({1, 3, 270, f}), copied = f64({1, 3, 360, f}), copied_to = i32({1, 3, 360});
    cases.push_back({&ops::copies_to_rows, {name, {copies, copied_to}, of_copies, 40}});
    cases.push_back({&ops::rows_to_copies, {name, {copied, copied_to}, of_copies, 40}});
  }
  for (int64_t round : {0, 1, 2}) {
    Attrs map{{"batch", 1},  {"positions", 173}, {"blocks", 3},    {"capacity", 120}, {"copies", 60},
              {"most", 346}, {"tokens", 60},     {"round", round}, {"rounds", 3},     {"experts_per_block", 2}};
    cases.push_back({&ops::copies_map, {fmt::format("round_{}", round), {i32({3, 173, 2})}, map, 6}});
    map.set("tokens", int64_t{173});
    map.set("round", int64_t{0});
    map.set("copies", 40 + 30 * round);
    cases.push_back({&ops::copies_map, {fmt::format("copies_{}", 40 + 30 * round), {i32({3, 173, 2})}, map, 6}});
    Attrs drop{{"capacity", 20 + 30 * round}, {"experts", 6}}, by_weight = drop;
    by_weight.set("by_weight", int64_t{1});
    TensorTypes slots{f64({3, 173, 2}), i32({3, 173, 2})};
    cases.push_back({&ops::drop_slots, {fmt::format("first_{}", 20 + 30 * round), slots, drop, 6}});
    cases.push_back({&ops::drop_slots, {fmt::format("best_{}", 20 + 30 * round), slots, by_weight, 6}});
  }
  cases.push_back({&ops::add_squares, {"many", TensorTypes(1000, f64({})), {}}});
  cases.push_back({&ops::clip_scale, {"many", TensorTypes(1000, f64({})), {{"clip", 1.0}}}});
}

void add_position_cases(std::vector<Case>& cases) {
  Attrs llama = rope_attrs(32, 8, 64), inverse = rope_attrs(12, 12, 64);
  inverse.set("inverse", int64_t{1});
  cases.push_back({&ops::rope, {"gpt", {f64({2, 130, 36 * 64})}, rope_attrs(12, 12, 64)}});
  cases.push_back({&ops::rope, {"inverse", {f64({2, 130, 36 * 64})}, inverse}});
  cases.push_back({&ops::rope, {"late", {f64({2, 40, 48 * 64}), i32({})}, llama, 100000}});
  cases.push_back({&ops::rope, {"odd", {f64({2, 130, 10 * 12}), i32({})}, rope_attrs(6, 2, 12), 1000}});
  for (int64_t front : {int64_t{16}, int64_t{6}}) {
    Attrs partial = rope_attrs(12, 4, 64);
    partial.set("rotary_dim", front);
    cases.push_back({&ops::rope, {fmt::format("front_{}", front), {f64({2, 130, 20 * 64})}, partial}});
  }
  for (int64_t dim : {int64_t{7}, int64_t{64}, int64_t{128}, int64_t{130}, int64_t{256}}) {
    Attrs attrs = heads(6, 2, dim);
    attrs.set("eps", 1e-6);
    TensorType qkv = f64({3, 173, 10 * dim}), w = f64({dim});
    cases.push_back({&ops::qk_norm, {fmt::format("dim_{}", dim), {qkv, w, w}, attrs}});
    cases.push_back({&ops::qk_norm_backward, {fmt::format("dim_{}", dim), {qkv, qkv, w, w}, attrs}});
  }
  for (int64_t dim : {int64_t{7}, int64_t{64}, int64_t{128}}) {
    std::string name = fmt::format("dim_{}", dim);
    Attrs attrs = heads(6, 2, dim);
    TensorType qkv = f64({3, 173, 10 * dim}), squares = f64({3, 173, 2}), wq = f64({6 * dim}), wk = f64({2 * dim});
    cases.push_back({&ops::qk_squares, {name, {qkv}, attrs}});
    cases.push_back({&ops::qk_squares_backward, {name, {squares, qkv}, attrs}});
    attrs.set("eps", 9.0);  // squares are drawn like everything else
    cases.push_back({&ops::qk_norm_wide, {name, {qkv, wq, wk, squares}, attrs}});
    cases.push_back({&ops::qk_norm_wide_backward, {name, {qkv, qkv, wq, wk, squares}, attrs}});
  }
  cases.push_back(
      {&ops::position_embedding, {"offset", {f64({3, 130, 64}), f64({200, 64}), i32({})}, {{"offset", 2}}, 61}});
  cases.push_back(
      {&ops::position_embedding_backward, {"offset", {f64({3, 130, 64}), f64({200, 64})}, {{"offset", 2}}}});
  for (int64_t h : {int64_t{70}, int64_t{256}}) {
    std::string name = fmt::format("width_{}", h);
    cases.push_back({&ops::position_embedding, {name, {f64({3, 130, h}), f64({200, h}), i32({})}, {}, 71}});
    cases.push_back({&ops::position_embedding_backward, {name, {f64({3, 130, h}), f64({900, h})}, {}}});
  }
  Attrs copies = heads(16, 2, 8);
  copies.set("copies", int64_t{4});
  cases.push_back({&ops::repeat_kv, {"wide", {f64({128, 64}), f64({32, 64})}, copies}});
  cases.push_back({&ops::repeat_kv_backward, {"wide", {f64({192, 64}), f64({128, 64}), f64({32, 64})}, copies}});
  cases.push_back({&ops::repeat_kv_bias, {"many", {f64({128}), f64({32})}, copies}});
  cases.push_back({&ops::repeat_kv_bias_backward, {"many", {f64({192}), f64({128}), f64({32})}, copies}});
}

void add_vocabulary_cases(std::vector<Case>& cases) {
  for (int64_t h : {int64_t{130}, int64_t{768}}) {
    std::string name = fmt::format("width_{}", h);
    cases.push_back({&ops::embedding, {name, {i32({5, 1000}), f64({700, h})}, {}, 700}});
    for (int64_t below : {3, 700})  // few tokens, each very often; and many
      cases.push_back(
          {&ops::embedding_backward,
           {fmt::format("{}_of_{}", name, below), {f64({5, 1000, h}), i32({5, 1000}), f64({700, h})}, {}, below}});
  }
  cases.push_back(
      {&ops::embedding_backward, {"three_digits", {f64({1, 4000, 8}), i32({1, 4000}), f64({300000, 8})}, {}, 300000}});
  for (double z_loss : {0.0, 0.001}) {
    Attrs attrs{{"z_loss", z_loss}};
    TensorType x = f64({3, 173, 64}), w = f64({1003, 64}), targets = i32({3, 173});
    std::string name = z_loss == 0 ? "many" : "many_z";
    cases.push_back({&ops::head_loss, {name, {x, w, targets}, attrs, 1003}});
    cases.push_back({&ops::head_loss_backward, {name, {x, w, targets, f64({})}, attrs, 1003}});
  }
}

// Tokens, experts, experts per token, widths: over several blocks of slots and tiles, with experts that get none, and
// sizes for tensor cores and for the plain kernels.
void add_expert_cases(std::vector<Case>& cases) {
  struct Sizes {
    int64_t tokens, experts, top_k, inputs, outputs, used;
  };
  for (const Sizes& s : {Sizes{700, 8, 2, 72, 136, 8},
                         {300, 64, 8, 256, 128, 64},
                         {513, 6, 3, 44, 51, 4},
                         {1, 4, 2, 64, 64, 4},
                         {400, 4, 1, 128, 264, 1},
                         {2000, 5, 2, 320, 576, 4}}) {
    std::string name = fmt::format("{}x{}of{}_{}_{}", s.tokens, s.top_k, s.experts, s.inputs, s.outputs);
    Attrs attrs{{"experts", s.experts}};
    TensorType experts = i32({1, s.tokens, s.top_k}), w = f64({s.experts * s.outputs, s.inputs});
    TensorType x = f64({1, s.tokens, s.inputs}), y = f64({1, s.tokens, s.outputs});
    TensorType xs = f64({1, s.tokens * s.top_k, s.inputs}), ys = f64({1, s.tokens * s.top_k, s.outputs});
    cases.push_back({&ops::expert_up, {name, {x, w, experts}, attrs, s.used}});
    cases.push_back({&ops::expert_up_input_gradient, {name, {ys, w, experts}, attrs, s.used}});
    cases.push_back({&ops::expert_up_weight_gradient, {name, {ys, x, experts}, attrs, s.used}});
    Attrs narrow = attrs;
    narrow.set("narrow_gradient", int64_t{1});
    cases.push_back({&ops::expert_up_weight_gradient, {name + "_narrow", {ys, x, experts}, narrow, s.used}});
    cases.push_back({&ops::expert_down, {name, {xs, w, experts}, attrs, s.used}});
    cases.push_back({&ops::expert_down_input_gradient, {name, {y, w, experts}, attrs, s.used}});
    cases.push_back({&ops::expert_down_weight_gradient, {name, {y, xs, experts}, attrs, s.used}});
    TensorType logits = f64({1, s.tokens, s.experts});
    Attrs routing{{"top_k", s.top_k}};
    if (s.top_k > 1) routing.set("normalise", int64_t{1});  // of a single one the weight is 1, whatever its logit
    cases.push_back({&ops::route, {name, {logits}, routing}});
    cases.push_back({&ops::route_backward, {name, {f64({1, s.tokens, s.top_k}), logits, experts}, routing, s.used}});
    cases.push_back({&ops::expert_load, {name, {logits, experts}, {}, s.used}});
    cases.push_back({&ops::expert_load_backward, {name, {f64({s.experts}), logits}, {}}});
    TensorType gate_up = f64({1, s.tokens * s.top_k, 2 * s.outputs}), weights = f64({1, s.tokens, s.top_k});
    cases.push_back({&ops::weighted_swiglu, {name, {gate_up, weights}, {}}});
    cases.push_back({&ops::weighted_swiglu_backward, {name, {ys, gate_up, weights}, {}}});
    cases.push_back({&ops::row_gate_backward, {name, {y, y, f64({1, s.tokens, 1})}, {}}});
    cases.push_back({&ops::linear_wide_input_gradient, {name, {logits, f64({s.experts, s.inputs})}, {}}});
    cases.push_back({&ops::linear_wide_weight_gradient, {name, {logits, x}, {}}});
  }
}

// Products of fp8 operands: sizes for whole tiles of the units and others, and sequences that end within a tile of
// scales.
void add_fp8_cases(std::vector<Case>& cases) {
  auto e4m3 = [](GlobalShape shape) { return TensorType{DType::e4m3, std::move(shape)}; };
  auto e5m2 = [](GlobalShape shape) { return TensorType{DType::e5m2, std::move(shape)}; };
  struct Sizes {
    int64_t sequences, length, in, out;
  };
  for (auto [b, s, i, o] : {Sizes{2, 64, 256, 128}, {1, 16, 16, 16}, {3, 80, 176, 208}, {2, 128, 256, 512}}) {
    std::string name = fmt::format("{}x{}_{}_{}", b, s, i, o);
    TensorType one = f64({}), bias = f64({o});
    cases.push_back({&ops::fp8_linear, {name, {e4m3({b, s, i}), one, e4m3({o, i}), one}, {}}});
    cases.push_back({&ops::fp8_linear, {name + "_bias", {e4m3({b, s, i}), one, e4m3({o, i}), one, bias}, {}}});
    cases.push_back({&ops::fp8_linear_input_gradient, {name, {e5m2({b, s, o}), one, e4m3({i, o}), one}, {}}});
    cases.push_back({&ops::fp8_linear_weight_gradient, {name, {e5m2({o, b, s}), one, e4m3({i, b, s}), one}, {}}});
    Attrs tile{{"tile", 128}};
    int64_t k = ceil_div(i, int64_t{128}), p = ceil_div(o, int64_t{128}), n = ceil_div(s, int64_t{128});
    TensorTypes forward{e4m3({b, s, i}), f64({b, s, k}), e4m3({o, i}), f64({p, k})};
    cases.push_back({&ops::fp8_block_linear, {name, forward, tile}});
    forward.push_back(bias);
    cases.push_back({&ops::fp8_block_linear, {name + "_bias", forward, tile}});
    cases.push_back({&ops::fp8_block_linear_input_gradient,
                     {name, {e4m3({b, s, o}), f64({b, s, p}), e4m3({i, o}), f64({k, p})}, tile}});
    cases.push_back({&ops::fp8_block_linear_weight_gradient,
                     {name, {e4m3({o, b, s}), f64({o, b, n}), e4m3({i, b, s}), f64({i, b, n})}, tile}});
  }
}

// Sequences of several tiles of keys, and queries of several warps: some tiles are seen whole, some in part, some not
// at all.
void add_logit_cases(std::vector<Case>& cases) {
  struct Sizes {
    int64_t length, heads, kv_heads, dim;
  };
  for (auto [length, heads, kv_heads, dim] :
       {Sizes{300, 4, 2, 64}, {530, 2, 1, 128}, {257, 3, 3, 40}, {200, 2, 2, 192}}) {
    std::string name = fmt::format("{}_{}_{}", length, heads, dim);
    TensorType qkv = f64({2, length, (heads + 2 * kv_heads) * dim});
    Attrs whole{{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}};
    Attrs window = whole, alibi = whole, chunk = whole;
    window.set("window", 90);
    alibi.set("alibi", 1);
    chunk.set("chunk", 128);
    cases.push_back({&ops::attention_logits, {name, {qkv}, whole}});
    cases.push_back({&ops::attention_logits, {name + "_window", {qkv}, window}});
    cases.push_back({&ops::attention_logits, {name + "_alibi", {qkv}, alibi}});
    TensorType begins{DType::i32, {2, length}};
    cases.push_back({&ops::attention_logits, {name + "_documents", {qkv, begins}, chunk, length}});
  }
}

// Statistics of more elements than one block takes, whole pieces and others.
void add_statistics_cases(std::vector<Case>& cases) {
  for (GlobalShape shape : {GlobalShape{3, 4096, 8}, GlobalShape{3, 4097, 3}}) {
    std::string name = shape[1] % 2 == 0 ? "many" : "odd";
    Attrs range{{"zero_below", 0.1}, {"largest", 0.5}};
    cases.push_back({&ops::tensor_statistics, {name, {f64(shape)}, range}});
    cases.push_back({&ops::rounding_statistics, {name, {f64(shape), {DType::e4m3, shape}}, {}}});
    cases.push_back({&ops::change_statistics, {name, {f64(shape), f64(shape)}, {}}});
  }
}

// Statistics, too, read a tensor in fp8, behind the one that it was made from.
bool multiplies_fp8(const Case& c) {
  return !c.example.inputs.empty() && is_fp8(c.example.inputs.front().dtype);
}

// Examples of products in fp8 are small, for meshes of the CPU; the device takes multiples of its units.
bool has_sizes_of_units(const Case& c) {
  if (!multiplies_fp8(c)) return true;
  auto local = [](const TensorType& type) {
    auto dims = type.shape.dims();
    return LocalShape(std::vector<int64_t>(dims.begin(), dims.end()));
  };
  TensorType out = infer_types(*c.def, c.example.attrs, c.example.inputs)[0];
  return c.example.attrs.integer_or("tile", cuda::kFp8Tile) == cuda::kFp8Tile &&
         cuda::fp8_gemm_sizes(c.example.attrs, local(c.example.inputs[0]), local(c.example.inputs[2]), local(out))
             .taken();
}

bool runs_here(const OpDef& def) {
  const CudaKernel& kernel = cuda_kernel(def);
  return cpu_kernel(def).run && (kernel.launch || kernel.launch_all || kernel.prepare);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases, runnable;
  for (const OpDef* def : all_ops())
    for (const Example& example : def->examples) cases.push_back({def, example});
  add_norm_cases(cases);
  add_streaming_cases(cases);
  add_position_cases(cases);
  add_vocabulary_cases(cases);
  add_expert_cases(cases);
  add_fp8_cases(cases);
  add_logit_cases(cases);
  add_statistics_cases(cases);
  for (Case& c : cases)
    if (runs_here(*c.def) && has_sizes_of_units(c)) runnable.push_back(std::move(c));
  return runnable;
}

KernelRun run_of(const Case& c, DType real) {
  KernelRun run{.def = *c.def,
                .attrs = c.example.attrs,
                .types = c.example.inputs,
                .inputs = draw_inputs(*c.def, c.example),
                .real = real};
  run.inputs = rounded_inputs(run);
  return run;
}

// Units of fp8 keep fewer bits of their sums than f32 has.
double tolerance(const Case& c, DType real) {
  if (multiplies_fp8(c)) return real == DType::bf16 && c.example.inputs.size() > 4 ? 4e-3 : 1e-3;
  return real == DType::f32 ? 1e-5 : real == DType::f16 ? 3e-3 : 1e-2;
}

// fp8 stands beside bf16 alone, and weights are rounded at random to bf16 alone.
std::vector<DType> types_of_case(const Case& c) {
  if (multiplies_fp8(c) || c.example.attrs.has("round_weight")) return {DType::f32, DType::bf16};
  return {DType::f32, DType::bf16, DType::f16};
}

class CudaOps : public OnDevice, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && multiplies_fp8(GetParam()) && device().capability() / 10 != 9)
      GTEST_SKIP() << "products in fp8 are written for Hopper";
  }
};

TEST_P(CudaOps, AgreeWithTheCpu) {
  for (DType real : types_of_case(GetParam())) {
    KernelRun run = run_of(GetParam(), real);
    std::vector<Numbers> here = run_cuda_kernel(run, device());
    EXPECT_EQ(run_cuda_kernel(run, device()), here) << name_of(real) << ": not the same bits twice";
    run.real = DType::f64;
    std::vector<Numbers> exact = run_kernel(run);
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LT(relative_error(here[i], exact[i]), tolerance(GetParam(), real)) << name_of(real) << " output " << i;
  }
}

// The guards behind every buffer are looked at by the runner. Repeatable runs may plan more scratch: this is the least.
TEST_P(CudaOps, StayInTheScratchOfAFastTarget) {
  for (DType real : types_of_case(GetParam())) {
    KernelRun run = run_of(GetParam(), real);
    run_cuda_kernel(run, fast_device());
    if (GetParam().def->accumulate == Accumulate::unsupported) continue;
    run.attrs.set("accumulate", int64_t{1});
    run.first_output = run_cuda_kernel(run_of(GetParam(), real), device())[0];
    run_cuda_kernel(run, fast_device());
  }
}

TEST_P(CudaOps, InPlaceAgreesWithOutOfPlace) {
  for (DType real : types_of_case(GetParam()))
    for (const Alias& alias : GetParam().def->alias) {
      KernelRun run = run_of(GetParam(), real);
      if (alias.rule != Alias::Rule::may || static_cast<size_t>(alias.input) >= run.inputs.size()) continue;
      std::vector<Numbers> apart = run_cuda_kernel(run, device());
      run.over_input = alias.input;
      EXPECT_EQ(run_cuda_kernel(run, device()), apart) << name_of(real) << " over input " << alias.input;
    }
}

TEST_P(CudaOps, AccumulateAddsOntoTheFirstOutput) {
  if (GetParam().def->accumulate == Accumulate::unsupported) return;
  if (GetParam().example.attrs.has("narrow_gradient")) return;  // nothing is added to such a one
  for (DType real : types_of_case(GetParam())) {
    KernelRun run = run_of(GetParam(), real);
    std::vector<Numbers> fresh = run_cuda_kernel(run, device());
    run.attrs.set("accumulate", int64_t{1});
    run.first_output = fresh[0];
    for (double& x : run.first_output) x = 1 - 2 * x;
    std::vector<Numbers> added = run_cuda_kernel(run, device());
    for (double& x : fresh[0]) x = 1 - x;
    // Sums are f32, but of what is of a microbatch alone.
    bool wide = !GetParam().def->wide.empty() || multiplies_fp8(GetParam());
    double limit = real != DType::f32 && !wide ? tolerance(GetParam(), real) : 1e-5;
    for (size_t i = 0; i < fresh.size(); ++i)
      EXPECT_LT(relative_error(added[i], fresh[i]), limit) << name_of(real) << " output " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaOps, testing::ValuesIn(all_cases()), [](const auto& info) {
  return fmt::format("{}_{}_{}", info.param.def->name, info.param.example.name, info.index);
});

}  // namespace
}  // namespace sextant
