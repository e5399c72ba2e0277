// SoftwareProfile: facts about the software that runs a Program, where it differs from ours: which attention kernel,
// what is fused, what overlaps, what travels in which type. Read from machines/software.toml, each with its source; no
// fitted numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant {

enum class AttentionKernel : uint8_t {
  fused,    // scores stay on the chip; its rate stands in the machine's attention table under `attention_table`
  unfused,  // scores are written and read: two GEMMs, scaling, mask, softmax, dropout
};

enum class Elementwise : uint8_t {
  fused,     // one kernel per op of ours, each operand once through memory
  compiled,  // torch.compile or XLA: fused, but norms and losses take a second pass
  jit,       // Megatron's fused bias-gelu, bias-dropout-add; norms and rotary apart
  eager,     // one kernel per arithmetic operation
};

// How many copies of a token travel to its experts.
enum class TokenCopies : uint8_t {
  each_expert,  // an all-to-all of permuted tokens
  each_rank,    // one for each rank that holds some of them
  each_node,    // one for each node, which passes it on to its ranks (DeepEP, HybridEP)
};

// How the GEMMs of experts are issued.
enum class ExpertGemms : uint8_t {
  grouped,  // all in one kernel
  streams,  // one for each expert, a few at a time beside each other (Transformer Engine: four)
  loop,     // one for each expert, one after the other
};

enum class Kernels : uint8_t {
  ours,    // planned for exactly as our executor runs them (targets/cuda)
  theirs,  // what is known of them
};

// Operand formats of the GEMMs in the blocks. Scaled formats of 8 or 4 bits: operands are quantised first, in kernels
// of their own.
enum class Products : uint8_t {
  as_held,      // as the Program holds its operands
  fp8_delayed,  // a scale for each tensor, from steps before
  fp8_current,  // a scale for each tensor, from the tensor itself
  fp8_blocks,   // a scale for each block of 128 (DeepSeek)
  mxfp8,        // a scale for each 32 elements
  nvfp4,        // 4 bits, a scale for each 16 elements
};

std::optional<Products> products_named(std::string_view name);  // as profiles are written: "mxfp8"

struct SoftwareProfile {
  std::string name;  // "megatron-2021"
  std::string about;
  std::string source;  // where its facts are written
  Kernels kernels = Kernels::theirs;
  Products products = Products::as_held;
  AttentionKernel attention = AttentionKernel::fused;
  std::string attention_table = "cudnn";
  Elementwise elementwise = Elementwise::fused;
  bool backward_without_window =
      false;  // attention's backward goes over all keys up to a query's own, whatever its window
  std::vector<std::string> eager_ops;  // are eager, whatever the others are
  bool repacks_attention = false;  // queries, keys and values are copied out of their batch for fused attention, and
                                   // its output back into one
  bool dropout = false;
  bool separate_mask = false;      // unfused attention masks and casts its scores in kernels of their own
  bool embedding_gemm = false;     // tokens are looked up by multiplying rows that are one at the token, else zero
  bool keeps_logits = false;       // of all tokens, so that no part of the vocabulary is multiplied twice
  bool loss_in_f32 = false;        // logits are held and read in f32
  bool loss_eager = false;         // and every step of the softmax passes over them
  bool holds_last_logits = false;  // those of a microbatch, in f32, until the next one has made its own
  int gradient_wire_bytes = 4;     // per element, on the wire
  int weight_wire_bytes = 2;
  int gradient_bytes = 4;      // per element, in memory
  int accumulation_bytes = 0;  // per element and microbatch, that adding a gradient to its sum moves; 0: the GEMM adds
  bool holds_gradients = false;  // their memory is there through the whole step, even of a single microbatch
  bool keeps_activation_outputs =
      false;  // of silu, before it is multiplied: eager code keeps what every product was made of
  bool keeps_gathered =
      false;  // inputs of GEMMs that were split along the sequence are kept whole for backward, not gathered again
  int optimizer_bytes = 12;             // per parameter: master copy and moments
  int update_bytes = 0;                 // per parameter that a rank updates: what the update makes and frees again
  double bucket_bytes = 0;              // gradients and weights travel in messages of at least this much
  double buffer_bytes = 0;              // of messages, taken once and held
  bool counts_without_context = false;  // the memory that its runs report is its allocator's, not the device's
  double headroom_bytes =
      0;  // that must stay free: with less, its allocator frees and asks again in every step, or gives up
  bool zero_all_reduces = false;  // with ZeRO, gradients are summed on every rank, and not only where they are needed
  bool zero_coalesces = false;    // with ZeRO, all gradients travel in one call, and all weights
  bool zero_waits = false;        // with ZeRO, reductions are waited for, whatever is overlapped without
  bool zero_broadcasts =
      false;  // ZeRO deals whole tensors to ranks, and each rank broadcasts its own in turn; waited for
  bool overlap_gradients = true;         // reductions beside backward
  bool overlap_gathers = true;           // weights of the next block gathered beside this one
  bool overlap_pipeline = true;          // messages between stages beside compute
  bool overlap_tensor = false;           // collectives of tensor parallelism cut up beside GEMMs
  bool overlap_tensor_backward = false;  // whole, beside the GEMM before them, where that makes nothing they read
  bool overlap_experts = false;          // tokens on their way to experts and back, beside another microbatch
  TokenCopies token_copies = TokenCopies::each_expert;
  ExpertGemms expert_gemms = ExpertGemms::grouped;
  bool repeats_experts = false;  // experts, and the messages to and from them, are computed again in backward
  bool experts_whole = false;    // when a run does not say: no tensor parallelism inside an expert
  double expert_rate = 1;        // of GEMMs of experts, against one GEMM of such a shape
  double expert_passes = 1;      // over the rows of tokens where they are brought together by expert, against ours
  double expert_host_s = 0;  // of the host for a layer's experts in each direction: routing, permutation, a GEMM each
  double expert_gemm_host_s = 0;       // of the host for one expert's GEMM, where each is issued
  double expert_wait_s = 0;            // lost each time that the host must learn how many tokens go where
  bool expert_counts_on_host = false;  // forward: the host issues no expert's work before the device has routed
  double host_s_per_kernel = 0;        // the host issues no faster than this; 0: graphs or far ahead
  bool launches_wait = false;          // the host waits for every kernel before it issues the next
  std::optional<double> far_bytes_per_s_per_node;  // what the source says of its network
  bool far_is_reached = false;  // and that is what collectives reached, by a measurement or by the time of runs
  double far_latency_s =
      0;  // of a hop between nodes of a collective in a call of its own, where it is known to be more than the tables'
  std::vector<std::string> matches;     // sources of published runs that ran on it, by their beginning
  std::vector<std::string> searched;    // what those runs were found best of, as limits of a layout: "zero=0,1"
  std::string recompute = "none";       // when a row does not say
  int interleaved_chunks = 0;           // of a rank, when a row with interleaved chunks does not say; 0: not known
  bool sequence_parallel = false;       // when a row with tensor parallelism does not say
  bool selective_is_attention = false;  // its selective recompute is of attention, not of cheap ops
  bool selective_is_half = false;       // or of every second GEMM or block
  bool recompute_attention = false;     // attention's scores are computed again in backward
};

// Our own executors.
SoftwareProfile own_profile();

}  // namespace sextant
