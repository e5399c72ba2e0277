#include <algorithm>
#include <optional>

#include "comm/collectives.h"
#include "ops/attention_widths.h"
#include "ops/ops.h"
#include "ops/transfer.h"
#include "targets/copy_runs.h"
#include "targets/cpu/attention_sizes.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cpu/expert_sizes.h"
#include "targets/cpu/fp8_sizes.h"
#include "targets/cpu/gemm_sizes.h"
#include "targets/cpu/head_loss_sizes.h"
#include "targets/cpu/message_sizes.h"
#include "targets/cpu/orthogonalize_sizes.h"
#include "targets/cpu/rope_sizes.h"
#include "targets/cpu/task_sizes.h"
#include "targets/gemm_check_sizes.h"
#include "targets/local_heads.h"
#include "targets/token_groups.h"

namespace sextant::cpu {

namespace {

int64_t bytes_of(const LocalType& type) {
  return type.shape.count() * size_of(type.dtype);
}

// Scratch of one task for each thread.
template <int64_t (*kOfThread)(int64_t dim)>
Bytes attention(const KernelQuery& query) {
  return {query.threads * kOfThread(std::max(query.attrs.integer("head_dim"), value_dim_of(query.attrs)))};
}

// y = x·wᵀ and dx = dy·w: n is the output's width, k the input's.
Bytes gemm(const KernelQuery& query) {
  return {multiply_workspace(query.out[0].shape.last(), query.in[0].shape.last(), query.threads)};
}

// c = a·bᵀ of fp8 operands, each followed by its scales.
Bytes fp8_product(const KernelQuery& query) {
  Fp8ProductSizes sizes = fp8_product_sizes(query.in[0].shape.count(), query.in[2].shape.count(),
                                            query.out[0].shape.last(), query.out[0].dtype);
  return {sizes.bytes(query.threads)};
}

// dw = dyᵀ·x.
Bytes weight_gemm(const KernelQuery& query) {
  return {multiply_workspace(query.in[1].shape.last(), query.in[0].shape.rows(), query.threads)};
}

// Of the checks of these products.
Bytes check_gemm(const KernelQuery& query) {
  return {check_sizes_of_linear(query).bytes()};
}

Bytes check_weight_gemm(const KernelQuery& query) {
  return {check_sizes_of_weight_gradient(query).bytes()};
}

Bytes check_fp8_product(const KernelQuery& query) {
  Fp8ProductSizes sizes = fp8_product_sizes(query.in[0].shape.count(), query.in[2].shape.count(),
                                            query.out[0].shape.last(), query.out[0].dtype);
  return {GemmCheckSizes(sizes.m, sizes.n, sizes.k).bytes()};
}

// `kSums` sums over rows, a partial one for every block of them.
template <int kSums>
Bytes row_sums(const KernelQuery& query) {
  const LocalType& x = query.in[0];
  return {kSums * row_blocks(x.shape.rows()).count() * x.shape.last() * size_of(x.dtype)};
}

Bytes head_sums(const KernelQuery& query) {
  if (query.in.size() == 2) return {};  // heads have no weights
  const LocalType& x = query.in[0];
  return {2 * row_blocks(x.shape.rows()).count() * query.attrs.integer("head_dim") * size_of(x.dtype)};
}

// For every block of rows the sums of dwq and dwk, one behind the other, as wide as the weights.
Bytes wide_head_sums(const KernelQuery& query) {
  const LocalType& x = query.in[0];
  return {row_blocks(x.shape.rows()).count() * (query.in[2].shape[0] + query.in[3].shape[0]) * size_of(x.dtype)};
}

Bytes weight_gemm_and_row_sums(const KernelQuery& query) {
  return std::max(weight_gemm(query), row_sums<1>(query));
}

Bytes head_loss(const KernelQuery& query) {
  HeadLossSizes sizes(query.in[0].shape, query.in[1].shape);
  return {sizes.loss_bytes() + sizes.logit_bytes(query.in[0].dtype) + sizes.gemm_bytes(query.threads)};
}

Bytes check_head_loss(const KernelQuery& query) {
  HeadLossSizes sizes(query.in[0].shape, query.in[1].shape);
  return {check_bytes_of_head_loss(sizes.chunk, sizes.vocabulary, sizes.hidden)};
}

Bytes rope_table(const KernelQuery& query) {
  return {RopeTable(query.attrs, query.in[0].shape).bytes()};
}

Bytes task_sums(const KernelQuery& query) {
  return {ceil_div(query.in[0].shape.count(), kElementsPerTask) * int64_t{sizeof(double)}};
}

// As many numbers as the op writes, for every task.
Bytes task_numbers(const KernelQuery& query) {
  return {query.out[0].shape.count() * task_sums(query).n};
}

// A number for every sequence and head, and scores for every thread.
Bytes attention_logits(const KernelQuery& query) {
  LocalHeads heads = local_heads(query.attrs, query.in[0].shape[2]);
  return {logit_bytes(query.in[0].shape[0] * heads.q) + attention<attend_scratch>(query).n};
}

// Three bins for each task.
Bytes task_bins(const KernelQuery& query) {
  return {3 * task_sums(query).n};
}

// `kSums` sums of doubles for every row (the first dim) of input `kInput`.
template <int kInput, int kSums>
Bytes sums_of_rows(const KernelQuery& query) {
  return {kSums * query.in[kInput].shape[0] * int64_t{sizeof(double)}};
}

Bytes orthogonalize(const KernelQuery& query) {
  const LocalType& x = query.in[0];
  return {OrthogonalizeSizes(query.attrs.integers("packed"), x.shape.last(), size_of(x.dtype), query.threads).bytes()};
}

Bytes change_layout(const KernelQuery& query) {
  std::optional<Transfer> transfer = transfer_of(query.attrs);
  int64_t ranks = query.attrs.integer_or("ranks", 1), packed = query.attrs.integer_or("packed", 0);
  const LocalType &in = query.in[0], &out = query.out[0];
  if (transfer == Transfer::all_gather) return {packed ? ranks * bytes_of(in) : 0};
  if (transfer == Transfer::reduce_scatter) return {padded_part(bytes_of(out)) + (packed ? ranks * bytes_of(out) : 0)};
  if (transfer == Transfer::all_reduce || transfer == Transfer::all_reduce_max)
    return {all_reduce_scratch(out.shape.count(), out.dtype, static_cast<int>(ranks))};
  if (transfer == Transfer::all_to_all)
    return {2 * padded_part(ranks * query.attrs.integer("part") * size_of(in.dtype))};
  return {0};
}

// The packed elements, then the scratch of the collective.
Bytes bucket(const KernelQuery& query) {
  DType dtype = query.in[0].dtype;
  int64_t count = 0;
  for (const LocalType& type : query.in) count += type.shape.count();
  return {padded_part(count * size_of(dtype)) +
          all_reduce_scratch(count, dtype, static_cast<int>(query.attrs.integer("ranks")))};
}

Bytes expert_linear(const KernelQuery& query) {
  int64_t inputs = query.in[0].shape.last(), outputs = query.out[0].shape.last();
  ExpertRowsScratch scratch({.top_k = query.attrs.has("blocks") ? 1 : query.in[2].shape.last(),
                             .experts = local_experts(query.in[1].shape.count(), inputs, outputs),
                             .inputs = inputs,
                             .outputs = outputs,
                             .element = size_of(query.in[0].dtype)});
  return {query.threads * scratch.bytes()};
}

Bytes expert_weight_gradient(const KernelQuery& query) {
  int64_t outputs = query.in[0].shape.last(), inputs = query.in[1].shape.last();
  ExpertGradientScratch scratch({.slots = query.in[2].shape.count(),
                                 .experts = local_experts(query.out[0].shape.count(), inputs, outputs),
                                 .outputs = outputs,
                                 .inputs = inputs,
                                 .element = size_of(query.in[0].dtype)});
  return {scratch.shared() + query.threads * scratch.of_thread()};
}

Bytes check_expert_linear(const KernelQuery& query) {
  return {query.threads * GemmCheckSizes(kExpertTile, query.out[0].shape.last(), query.in[0].shape.last()).bytes()};
}

Bytes check_expert_weight_gradient(const KernelQuery& query) {
  return {query.threads * GemmCheckSizes(query.in[0].shape.last(), query.in[1].shape.last(), kGradientTile).bytes()};
}

// Rows by expert, where `kExperts` tells theirs, for the gradient of a bias.
template <size_t kExperts>
Bytes rows_by_expert(const KernelQuery& query) {
  int64_t held = query.out[0].shape.count() / query.in[0].shape.last();
  return {ExpertOrderScratch(query.in[kExperts].shape.count(), held).end};
}

// The length of every queue.
Bytes queue_lengths(const KernelQuery& query) {
  const LocalShape& groups = query.out[0].shape;
  return {groups[0] * groups[1] * query.attrs.integer("blocks") * int64_t{sizeof(int64_t)}};
}

// Counts of every queue: in all, and of one round.
Bytes queue_counts(const KernelQuery& query) {
  const LocalShape& groups = query.out[0].shape;
  return {2 * groups[0] * groups[1] * query.attrs.integer("blocks") * int64_t{sizeof(QueueCounts)}};
}

// The row of every slot.
Bytes slot_places(const KernelQuery& query) {
  TokenGroups groups(query.attrs, query.in[1].shape);
  return {groups.count * groups.tokens() * query.attrs.integer("top_k") * int64_t{sizeof(int32_t)}};
}

// All slots, by expert.
Bytes slots_in_order(const KernelQuery& query) {
  return {query.in[1].shape.count() * int64_t{sizeof(int32_t)}};
}

// The scores of one token, and what experts are chosen by, for each thread.
Bytes token_scores(const KernelQuery& query) {
  return {query.threads * 2 * query.in[0].shape.last() * size_of(query.in[0].dtype)};
}

Bytes load_sums(const KernelQuery& query) {
  const LocalType& logits = query.in[0];
  return {2 * row_blocks(logits.shape.rows()).count() * logits.shape.last() * size_of(logits.dtype)};
}

// A number for each block of tokens.
Bytes token_block_sums(const KernelQuery& query) {
  const LocalType& logits = query.in[0];
  return {row_blocks(logits.shape.rows()).count() * size_of(logits.dtype)};
}

// The scores of one token for each thread.
Bytes token_shares(const KernelQuery& query) {
  return {query.threads * query.in[0].shape.last() * size_of(query.in[0].dtype)};
}

Bytes stage_sum(const KernelQuery& query) {
  auto stages = static_cast<int>(query.attrs.integers("stages").size());
  return {all_reduce_scratch(query.out[0].shape.count(), query.out[0].dtype, stages)};
}

}  // namespace

}  // namespace sextant::cpu

namespace sextant {

const KernelTable& cpu_kernel_needs() {
  static const KernelTable table{
      {&ops::absmax, {cpu::task_sums}},
      {&ops::adafactor_direction, {cpu::sums_of_rows<0, 1>}},
      {&ops::adafactor_sums, {cpu::sums_of_rows<1, 1>}},
      {&ops::adafactor_vector, {cpu::sums_of_rows<1, 2>}},
      // Weights with their low halves, as on a GPU whose update is done on the host, and narrow gradients; moments.
      {&ops::adamw, {.bf16_inputs = 0b0011}},
      {&ops::adamw_rounded, {.bf16_inputs = 0b1100}},
      {&ops::all_reduce_bucket, {.workspace = cpu::bucket, .elements = Elements::any}},
      {&ops::attention, {cpu::attention<cpu::attend_scratch>}},
      {&ops::attention_backward, {cpu::attention<cpu::attend_backward_scratch>}},
      {&ops::attention_cached, {cpu::attention<cpu::attend_scratch>}},
      {&ops::attention_logits, {cpu::attention_logits}},
      {&ops::attention_step, {cpu::attention<cpu::ring_step_scratch>}},
      {&ops::attention_step_backward, {cpu::attention<cpu::ring_step_backward_scratch>}},
      {&ops::change_statistics, {cpu::task_numbers}},
      {&ops::combine, {cpu::slot_places}},
      {&ops::copies_map, {cpu::queue_counts}},
      {&ops::dispatch_map, {cpu::queue_lengths}},
      {&ops::dispatch_weights_backward, {cpu::slot_places}},
      {&ops::drop_slots, {cpu::slots_in_order}},
      {&ops::exact_squares, {cpu::task_bins}},
      {&ops::expert_down, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_down_input_gradient, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_down_weight_gradient,
       {cpu::expert_weight_gradient, Grouping::alone, cpu::check_expert_weight_gradient}},
      {&ops::expert_load, {cpu::load_sums}},
      {&ops::expert_rows, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_rows_bias_gradient, {cpu::rows_by_expert<1>}},
      {&ops::expert_rows_input_gradient, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_rows_weight_gradient,
       {cpu::expert_weight_gradient, Grouping::alone, cpu::check_expert_weight_gradient}},
      {&ops::expert_rows_weighted_bias_gradient, {cpu::rows_by_expert<3>}},
      {&ops::expert_up, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_up_input_gradient, {cpu::expert_linear, Grouping::alone, cpu::check_expert_linear}},
      {&ops::expert_up_weight_gradient,
       {cpu::expert_weight_gradient, Grouping::alone, cpu::check_expert_weight_gradient}},
      {&ops::fp8_block_linear, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::fp8_block_linear_input_gradient, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::fp8_block_linear_weight_gradient, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::fp8_linear, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::fp8_linear_input_gradient, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::fp8_linear_weight_gradient, {cpu::fp8_product, Grouping::alone, cpu::check_fp8_product}},
      {&ops::head_loss, {cpu::head_loss, Grouping::alone, cpu::check_head_loss}},
      {&ops::head_loss_backward, {cpu::head_loss, Grouping::alone, cpu::check_head_loss}},
      {&ops::head_lse, {cpu::head_loss, Grouping::alone, cpu::check_head_loss}},
      {&ops::join_columns, {.elements = Elements::any}},
      {&ops::join_qkv, {.elements = Elements::any}},
      {&ops::kv_of, {.elements = Elements::any}},
      {&ops::layer_norm_backward, {cpu::row_sums<2>}},
      {&ops::linear, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_bias_gradient, {cpu::row_sums<1>}},
      {&ops::linear_gelu, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_gelu_gradient, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_gradients, {cpu::weight_gemm_and_row_sums, Grouping::alone, cpu::check_weight_gemm}},
      {&ops::linear_input_gradient, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_weight_gradient, {cpu::weight_gemm, Grouping::alone, cpu::check_weight_gemm}},
      {&ops::linear_wide, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_wide_input_gradient, {cpu::gemm, Grouping::alone, cpu::check_gemm}},
      {&ops::linear_wide_weight_gradient, {cpu::weight_gemm, Grouping::alone, cpu::check_weight_gemm}},
      {&ops::orthogonalize, {cpu::orthogonalize}},
      {&ops::qk_norm_backward, {cpu::head_sums}},
      {&ops::qk_norm_wide_backward, {cpu::wide_head_sums}},
      {&ops::recv, {.elements = Elements::any}},
      {&ops::redistribute, {.workspace = cpu::change_layout, .elements = Elements::any}},
      {&ops::ring_shift, {.elements = Elements::any}},
      {&ops::rms_norm_backward, {cpu::row_sums<1>}},
      {&ops::rope, {cpu::rope_table}},
      {&ops::rounding_statistics, {cpu::task_numbers}},
      {&ops::route, {cpu::token_scores}},
      {&ops::router_z_loss, {cpu::token_block_sums}},
      {&ops::send, {.elements = Elements::any}},
      {&ops::sequence_load, {cpu::token_shares}},
      {&ops::sink_attention, {cpu::attention<cpu::attend_scratch>}},
      {&ops::split_columns, {.elements = Elements::any}},
      {&ops::sum_squares, {cpu::task_sums}},
      {&ops::sum_stages, {.workspace = cpu::stage_sum, .elements = Elements::any}},
      {&ops::tensor_statistics, {cpu::task_numbers}},
  };
  return table;
}

}  // namespace sextant
