#include <algorithm>
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "ops/transfer.h"
#include "targets/copy_runs.h"
#include "targets/cuda/adafactor_sizes.h"
#include "targets/cuda/attention_sizes.h"
#include "targets/cuda/cuda_target.h"
#include "targets/cuda/document_batch_sizes.h"
#include "targets/cuda/embedding_sizes.h"
#include "targets/cuda/expert_sizes.h"
#include "targets/cuda/fp8_sizes.h"
#include "targets/cuda/gemm_check_sizes.h"
#include "targets/cuda/gemm_sizes.h"
#include "targets/cuda/head_loss_sizes.h"
#include "targets/cuda/message_sizes.h"
#include "targets/cuda/orthogonalize_sizes.h"
#include "targets/cuda/row_sum_sizes.h"
#include "targets/cuda/statistics_sizes.h"
#include "targets/cuda/update_sizes.h"
#include "targets/token_groups.h"

namespace sextant::cuda {

namespace {

int64_t bytes_of(const LocalType& type) {
  return type.shape.count() * size_of(type.dtype);
}

Bytes attention(const KernelQuery& query) {
  AttentionShape shape = attention_shape(query.attrs, query.in);
  Bytes masked = uses_library_attention(query.attrs, shape) ? attention_library_scratch(shape) : Bytes{0};
  if (!uses_ragged_batch(query.attrs, shape)) return masked;
  return std::max(masked, Bytes{DocumentBatchSizes(shape, DocumentBatchSizes::Pass::forward).bytes});
}

Bytes attention_backward(const KernelQuery& query) {
  AttentionShape shape = attention_backward_shape(query.attrs, query.in);
  bool library = uses_library_attention(query.attrs, shape);
  Bytes masked = library ? attention_library_backward_scratch(shape, query.determinism) : attention_dots(shape);
  if (!uses_ragged_batch(query.attrs, shape)) return masked;
  return std::max(masked, Bytes{DocumentBatchSizes(shape, DocumentBatchSizes::Pass::backward).bytes});
}

// Σ dy·y of each row: as many as there are log-sum-exps.
Bytes ring_step_backward(const KernelQuery& query) {
  return {query.in[3].shape.count() * int64_t{sizeof(float)}};
}

Bytes embedding_gradient(const KernelQuery& query) {
  return {embedding_gradient_workspace(query.in[1].shape.count(), query.out[0].shape.last())};
}

Bytes gemm(const KernelQuery&) {
  return {kGemmWorkspace};
}

// Scales in the library's order, of blocks or of tiles of b.
Bytes fp8_with_blocks(const KernelQuery& query) {
  return {tile_scale_bytes(query.in[1].shape) + block_scale_bytes(query.in[3].shape) + kGemmWorkspace};
}
Bytes fp8_with_tiles(const KernelQuery& query) {
  return {tile_scale_bytes(query.in[1].shape) + tile_scale_bytes(query.in[3].shape) + kGemmWorkspace};
}

// Of the checks of these products.
Bytes check_gemm(const KernelQuery& query) {
  return {device_check_bytes(check_sizes_of_linear(query).bytes())};
}

Bytes check_weight_gemm(const KernelQuery& query) {
  return {device_check_bytes(check_sizes_of_weight_gradient(query).bytes())};
}

Bytes check_fp8_gemm(const KernelQuery& query) {
  Fp8GemmSizes sizes = fp8_gemm_sizes(query.attrs, query.in[0].shape, query.in[2].shape, query.out[0].shape);
  return {device_check_bytes(GemmCheckSizes(sizes.m, sizes.n, sizes.k).bytes())};
}

Bytes check_head_loss(const KernelQuery& query) {
  HeadLossSizes sizes(query.in[0].dtype, query.in[0].shape, query.in[1].shape);
  return {device_check_bytes(check_bytes_of_head_loss(sizes.chunk, sizes.vocabulary, sizes.hidden))};
}

Bytes column_sums(const KernelQuery& query) {
  return {column_sums_workspace(query.in[0].shape.rows(), query.in[0].shape.last())};
}

Bytes gemm_and_column_sums(const KernelQuery& query) {
  return std::max(gemm(query), column_sums(query));
}

Bytes head_loss(const KernelQuery& query) {
  HeadLossSizes sizes(query.in[0].dtype, query.in[0].shape, query.in[1].shape);
  return {sizes.loss_bytes() + sizes.logit_bytes() + kGemmWorkspace};
}

template <int64_t kSums>
Bytes norm_gradient(const KernelQuery& query) {
  return {norm_gradient_workspace(kSums, query.in[0].shape.rows(), query.in[0].shape.last())};
}

Bytes qk_norm_gradient(const KernelQuery& query) {
  if (query.in.size() == 2) return {};  // heads have no weights
  return {qk_norm_gradient_workspace(query.in[0].shape.rows(), query.attrs.integer("head_dim"))};
}

Bytes qk_norm_wide_gradient(const KernelQuery& query) {
  return {qk_norm_wide_gradient_workspace(query.in[0].shape.rows(), query.in[2].shape[0] + query.in[3].shape[0])};
}

Bytes change_layout(const KernelQuery& query) {
  std::optional<Transfer> transfer = transfer_of(query.attrs);
  int64_t ranks = query.attrs.integer_or("ranks", 1), packed = query.attrs.integer_or("packed", 0);
  if (ranks == 1) return {0};
  if (transfer == Transfer::all_gather) return {packed ? ranks * bytes_of(query.in[0]) : 0};
  if (transfer == Transfer::reduce_scatter) return {packed ? ranks * bytes_of(query.out[0]) : 0};
  if (transfer == Transfer::all_to_all)
    return {2 * padded_part(ranks * query.attrs.integer("part") * size_of(query.in[0].dtype))};
  return {0};
}

Bytes tensor_statistics(const KernelQuery&) {
  return {kStatisticsBytes};
}

Bytes largest_logit(const KernelQuery&) {
  return {kLargestLogitBytes};
}

Bytes scalar_sum(const KernelQuery&) {
  return {kScalarSumBytes};
}

Bytes square_partials(const KernelQuery& query) {
  return {square_partial_bytes(query.in[0].shape.count())};
}

Bytes exact_partials(const KernelQuery& query) {
  return {exact_partial_bytes(query.in[0].shape.count())};
}
Bytes exact_bins(const KernelQuery&) {
  return {kExactBinBytes};
}

Bytes orthogonalize(const KernelQuery& query) {
  DType dtype = orthogonalize_dtype(query.attrs);
  return {OrthogonalizeSizes(query.attrs.integers("packed"), query.in[0].shape.last(), size_of(dtype)).bytes()};
}

// Programs have attention in its place.
Bytes sink_attention(const KernelQuery& query) {
  std::vector<LocalType> in(query.in.begin(), query.in.end());
  in.erase(in.begin() + 1);
  return attention({query.attrs, in, query.out, query.threads, query.determinism});
}

// Σ dy·y of each row: as many as there are log-sum-exps.
Bytes sink_dots(const KernelQuery& query) {
  return {query.in[2].shape.count() * int64_t{sizeof(float)}};
}

// The slots of experts, which input kExperts names, in their order.
template <int kExperts>
Bytes slots_by_expert(const KernelQuery& query) {
  return {SlotOrderSizes(query.in[kExperts].shape.count(), query.attrs.integer("experts")).end};
}

// Of rows: the bias of this rank, whose gradient is the first output, may be that of some experts.
template <int kExperts>
Bytes rows_by_expert(const KernelQuery& query) {
  int64_t held = query.out[0].shape.count() / query.in[0].shape.last();
  return {SlotOrderSizes(query.in[kExperts].shape.count(), held).end};
}

// kWeight: where an op's operands have the weight.
enum class ExpertWeight : uint8_t { input, output };

template <ExpertWeight kWeight>
int64_t slot_order(const KernelQuery& query) {
  bool gradient = kWeight == ExpertWeight::output;
  int64_t inputs = query.in[gradient ? 1 : 0].shape.last();
  int64_t outputs = gradient ? query.in[0].shape.last() : query.out[0].shape.last();
  int64_t elements = gradient ? query.out[0].shape.count() : query.in[1].shape.count();
  int64_t experts = local_experts(elements, inputs, outputs);
  if (query.attrs.has("in_order")) return tile_count_bytes(experts);
  return SlotOrderSizes(query.in[2].shape.count(), experts).end;
}

Bytes sorted_slots(const KernelQuery& query) {
  int64_t experts = query.attrs.integer("experts");
  return {tile_count_bytes(experts) + slot_count_bytes(query.in[0].shape.count(), experts)};
}

Bytes experts_to_slots(const KernelQuery& query) {
  return {slot_order<ExpertWeight::input>(query)};
}

// Rows gathered for tensor cores, in the order of experts: of the weight's inputs, or of the operand kOfTokens where
// the other one is in that order.
template <int kOfTokens>
Bytes experts_of_slots(const KernelQuery& query) {
  const LocalType& rows = query.in[query.attrs.has("in_order") ? kOfTokens : 1];
  int64_t gathered =
      rows.dtype == DType::bf16 ? query.in[2].shape.count() * rows.shape.last() * size_of(DType::bf16) : 0;
  return {slot_order<ExpertWeight::output>(query) + gathered};
}

// The rows of all slots, before those of a token are added up.
Bytes experts_to_tokens(const KernelQuery& query) {
  return {slot_order<ExpertWeight::input>(query) +
          query.in[2].shape.count() * query.out[0].shape.last() * size_of(query.out[0].dtype)};
}

// The length of every queue.
Bytes queue_lengths(const KernelQuery& query) {
  const LocalShape& groups = query.out[0].shape;
  return {groups[0] * groups[1] * query.attrs.integer("blocks") * int64_t{sizeof(int32_t)}};
}

// Counts of every queue.
Bytes queue_counts(const KernelQuery& query) {
  const LocalShape& groups = query.out[0].shape;
  return {groups[0] * groups[1] * query.attrs.integer("blocks") * int64_t{sizeof(QueueCounts)}};
}

// A number for every slot or row of the second operand: its copy, or its place.
Bytes numbers_of_rows(const KernelQuery& query) {
  return {query.in[1].shape.count() * int64_t{sizeof(int32_t)}};
}
// The first row of every copy.
Bytes rows_of_copies(const KernelQuery& query) {
  return {query.out[0].shape.rows() * int64_t{sizeof(int32_t)}};
}

// The row of every slot.
Bytes slot_places(const KernelQuery& query) {
  TokenGroups groups(query.attrs, query.in[1].shape);
  return {groups.count * groups.tokens() * query.attrs.integer("top_k") * int64_t{sizeof(int32_t)}};
}

Bytes load_sums(const KernelQuery& query) {
  const LocalShape& logits = query.in[0].shape;
  return {2 * ceil_div(logits.rows(), kLoadTokens) * logits.last() * int64_t{sizeof(float)}};
}

Bytes sequence_load_sums(const KernelQuery& query) {
  const LocalShape& logits = query.in[0].shape;
  return {2 * logits[0] * ceil_div(logits[1], kLoadTokens) * logits.last() * int64_t{sizeof(float)}};
}

Bytes token_block_sums(const KernelQuery& query) {
  return {ceil_div(query.in[0].shape.rows(), kLoadTokens) * int64_t{sizeof(float)}};
}

// dy is narrowed to the type of the other operand first.
Bytes wide_gradient(const KernelQuery& query) {
  bool narrow = query.in[1].dtype != DType::f32;
  return {kGemmWorkspace + (narrow ? narrowed_bytes(query.in[0].shape.count(), size_of(query.in[1].dtype)) : 0)};
}

Bytes adafactor_sums(const KernelQuery& query) {
  return {AdafactorSums(query.attrs, query.in[1].shape).bytes()};
}

template <int kInput, int kSums>
Bytes sums_of_rows(const KernelQuery& query) {
  return {kSums * row_sum_bytes(query.in[kInput].shape[0])};
}

Bytes adamw_step(const KernelQuery&) {
  return {kAdamWStepBytes};
}

}  // namespace

}  // namespace sextant::cuda

namespace sextant {

const KernelTable& cuda_kernel_needs() {
  static const KernelTable table{
      {&ops::absmax, {nullptr, Grouping::together}},
      {&ops::adafactor_direction, {cuda::sums_of_rows<0, 1>}},
      {&ops::adafactor_sums, {cuda::adafactor_sums}},
      {&ops::adafactor_vector, {cuda::sums_of_rows<1, 2>}},
      {&ops::adamw, {cuda::adamw_step, Grouping::together}},
      {&ops::add_exact_squares, {cuda::exact_bins}},
      {&ops::add_squares, {cuda::scalar_sum}},
      {&ops::attention, {cuda::attention}},
      {&ops::attention_backward, {cuda::attention_backward}},
      {&ops::attention_logits, {cuda::largest_logit}},
      {&ops::attention_step_backward, {cuda::ring_step_backward}},
      {&ops::change_statistics, {cuda::tensor_statistics, Grouping::together}},
      {&ops::clip_scale, {cuda::scalar_sum}},
      {&ops::combine, {cuda::slot_places}},
      {&ops::copies_map, {cuda::queue_counts}},
      {&ops::copies_to_rows, {cuda::numbers_of_rows}},
      {&ops::rows_to_copies, {cuda::rows_of_copies}},
      {&ops::dispatch_map, {cuda::queue_lengths}},
      {&ops::dispatch_weights_backward, {cuda::slot_places}},
      {&ops::drop_slots, {cuda::numbers_of_rows}},
      {&ops::duplicate, {nullptr, Grouping::together}},
      {&ops::embedding_backward, {cuda::embedding_gradient}},
      {&ops::exact_squares, {cuda::exact_partials}},
      {&ops::expert_down, {cuda::experts_to_tokens}},
      {&ops::expert_down_input_gradient, {cuda::experts_to_slots}},
      {&ops::expert_down_weight_gradient, {cuda::experts_of_slots<0>}},
      {&ops::expert_down_bias_gradient, {cuda::slots_by_expert<3>}},
      {&ops::expert_up_bias_gradient, {cuda::slots_by_expert<1>}},
      {&ops::sink_attention, {cuda::sink_attention}},
      {&ops::sinks_gradient, {cuda::sink_dots}},
      {&ops::expert_load, {cuda::load_sums}},
      {&ops::expert_rows, {cuda::experts_to_slots}},
      {&ops::expert_rows_bias_gradient, {cuda::rows_by_expert<1>}},
      {&ops::expert_rows_weighted_bias_gradient, {cuda::rows_by_expert<3>}},
      {&ops::expert_rows_input_gradient, {cuda::experts_to_slots}},
      {&ops::expert_rows_weight_gradient, {cuda::experts_of_slots<1>}},
      {&ops::expert_up, {cuda::experts_to_slots}},
      {&ops::expert_up_input_gradient, {cuda::experts_to_tokens}},
      {&ops::expert_up_weight_gradient, {cuda::experts_of_slots<1>}},
      {&ops::fp8_block_linear, {cuda::fp8_with_blocks, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::fp8_block_linear_input_gradient, {cuda::fp8_with_blocks, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::fp8_block_linear_weight_gradient, {cuda::fp8_with_tiles, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::fp8_linear, {cuda::gemm, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::fp8_linear_input_gradient, {cuda::gemm, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::fp8_linear_weight_gradient, {cuda::gemm, Grouping::alone, cuda::check_fp8_gemm}},
      {&ops::slot_order, {cuda::sorted_slots}},
      {&ops::head_loss, {cuda::head_loss, Grouping::alone, cuda::check_head_loss}},
      {&ops::head_loss_backward, {cuda::head_loss, Grouping::alone, cuda::check_head_loss}},
      {&ops::head_lse, {cuda::head_loss, Grouping::alone, cuda::check_head_loss}},
      {&ops::layer_norm_backward, {cuda::norm_gradient<2>}},
      {&ops::linear, {cuda::gemm, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_bias_gradient, {cuda::column_sums}},
      {&ops::linear_gelu, {cuda::gemm, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_gelu_gradient, {cuda::gemm, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_gradients, {cuda::gemm_and_column_sums, Grouping::alone, cuda::check_weight_gemm}},
      {&ops::linear_input_gradient, {cuda::gemm, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_weight_gradient, {cuda::gemm, Grouping::alone, cuda::check_weight_gemm}},
      {&ops::linear_wide, {cuda::gemm, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_wide_input_gradient, {cuda::wide_gradient, Grouping::alone, cuda::check_gemm}},
      {&ops::linear_wide_weight_gradient, {cuda::wide_gradient, Grouping::alone, cuda::check_weight_gemm}},
      {&ops::orthogonalize, {cuda::orthogonalize}},
      {&ops::qk_norm_backward, {cuda::qk_norm_gradient}},
      {&ops::qk_norm_wide_backward, {cuda::qk_norm_wide_gradient}},
      {&ops::redistribute, {cuda::change_layout}},
      {&ops::rms_norm_backward, {cuda::norm_gradient<1>}},
      {&ops::rounding_statistics, {cuda::tensor_statistics, Grouping::together}},
      {&ops::router_z_loss, {cuda::token_block_sums}},
      {&ops::sequence_load, {cuda::sequence_load_sums}},
      {&ops::sum_squares, {cuda::square_partials, Grouping::together}},
      {&ops::tensor_statistics, {cuda::tensor_statistics, Grouping::together}},
  };
  return table;
}

}  // namespace sextant
