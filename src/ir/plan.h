// Plan: the choices that turn a Graph into a Program. Passes read their slice of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "describe/choice.h"
#include "ir/graph.h"

namespace sextant {

enum class RecomputeMode : uint8_t { none, norms, selective, latent, alternate, full };

struct RecomputeChoice : Choice<RecomputeMode> {
  bool is_searched = true;  // by searches and fits, in this order: each keeps less than the one before
  bool needs_latent_attention = false;
};

inline constexpr RecomputeChoice kRecomputeModes[] = {
    {{RecomputeMode::none, "none", "all that backward reads is saved"}},
    {{RecomputeMode::norms, "norms", "norms"}},
    {{RecomputeMode::selective, "selective", "all cheap ops: norms and activations"}},
    {{RecomputeMode::latent, "latent", "these and the up-projections of latent attention"}, true, true},
    {{RecomputeMode::alternate, "alternate", "every second block"}, false},
    {{RecomputeMode::full, "full", "every block: only its input is saved"}},
};
constexpr const auto& choices_of(RecomputeMode) {
  return kRecomputeModes;
}

// Which weight gradients wait for the W of their microbatch, where a schedule has W. The others are computed in its B.
enum class DeferredGradients : uint8_t { all, cheap };

inline constexpr Choice<DeferredGradients> kDeferredGradients[] = {
    {DeferredGradients::all, "all", "all of them"},
    {DeferredGradients::cheap, "cheap", "all but those of experts and of the up-projections of latent attention"},
};
constexpr const auto& choices_of(DeferredGradients) {
  return kDeferredGradients;
}

enum class ContextMode : uint8_t { ring, ulysses };

inline constexpr Choice<ContextMode> kContextModes[] = {
    {ContextMode::ring, "ring", "keys and values are passed around"},
    {ContextMode::ulysses, "ulysses", "sequences are exchanged for heads"},
};
constexpr const auto& choices_of(ContextMode) {
  return kContextModes;
}

// Which positions of a sequence the ranks of a ring have. A Program's is one of the last two.
enum class RingOrder : uint8_t { automatic, zigzag, striped };

inline constexpr Choice<RingOrder> kRingOrders[] = {
    {RingOrder::automatic, "auto",
     "`striped` with `data.mask_documents`, but not with experts or `train.precision = \"fp8-block\"`"},
    {RingOrder::zigzag, "zigzag", "an early and a late piece of every sequence"},
    {RingOrder::striped, "striped", "every cp-th position, so that work is even inside every document"},
};
constexpr const auto& choices_of(RingOrder) {
  return kRingOrders;
}

// How tokens get to the ranks of their experts.
enum class ExpertDispatch : uint8_t { automatic, rows, tokens, gather };

inline constexpr Choice<ExpertDispatch> kExpertDispatches[] = {
    {ExpertDispatch::automatic, "auto", "the one that sends least"},
    {ExpertDispatch::rows, "rows", "all-to-all, a copy for each expert of a token"},
    {ExpertDispatch::tokens, "tokens", "all-to-all, a copy for each rank that holds some of them"},
    {ExpertDispatch::gather, "gather", "all-gather of all tokens, and reduce-scatter of what experts give"},
};
constexpr const auto& choices_of(ExpertDispatch) {
  return kExpertDispatches;
}

// How a model's values lie on the mesh, beyond what the axes' sizes say.
struct Parallel {
  bool sequence = false;  // tensor-parallel ranks share norms and residuals along the sequence
  ContextMode context = ContextMode::ring;
  RingOrder ring_order = RingOrder::zigzag;
  // ZeRO over the data axes of each parameter that have AxisDef::zero_shards (the others are outside: HSDP). 1:
  // optimizer state is sharded; 2: gradients too; 3: weights too, gathered where they are used.
  int zero = 0;
  // Rows that a group of tokens has for a block of experts (ops/dispatch.cpp), in units of the balanced load; 0: the
  // most that any routing asks for.
  double expert_capacity = 0;
  // How often rows go to those experts; no more often than any routing needs. What then finds no row is counted, and
  // the step's update is skipped.
  int64_t expert_rounds = 1;
  ExpertDispatch expert_dispatch = ExpertDispatch::automatic;
};

// Tensors that are kept in the host's memory, or in a file, instead of the device's memory (passes/offload.h).
struct Offload {
  bool optimizer = false;              // optimizer state; the update runs on host cores
  bool weights = false;                // the bits of master weights that only the update reads
  bool working_weights = false;        // weights of blocks as forward and backward read them (passes/stream_weights.h)
  bool activations = false;            // what blocks save for backward
  MemorySpace to = MemorySpace::host;  // where the first two are kept: host or nvme; the others always on the host
};

struct Plan {
  RecomputeMode recompute = RecomputeMode::none;
  DeferredGradients deferred = DeferredGradients::all;
  int zero = 0;           // as in Parallel
  int microbatches = 1;   // per step and rank
  bool overlap = true;    // messages travel while ranks compute
  Bytes bucket{8 << 20};  // of gradients that are reduced in one message
  Offload offload = {};
  // Where gradients are summed exactly (ops/exact_sum.cpp): the parts of which all ranks together make one use of a
  // weight in a step. The same on every mesh that is to give the same bits. 0: sums are rounded.
  int64_t exact_parts = 0;
};

struct LocalType {
  DType dtype;
  LocalShape shape;
};
using LocalTypes = std::vector<LocalType>;

// Properties that the passes must know of the machine that will run the Program.
struct Target {
  std::string name;  // "cpu"
  int threads = 1;
  int64_t alignment = 64;                         // of every buffer, in bytes
  std::vector<std::string_view> fusions = {};     // those of passes/fuse that it has kernels for
  std::vector<DType> computes_in = {DType::f32};  // what weights and activations may be, the best first
  bool fp8 = false;                               // has kernels for products of fp8 operands
  // Formats of products (ops/fp8_recipe.h) without kernels, in which Programs are made to be priced alone (kPricedIn).
  std::vector<std::string_view> priced_formats = {};
  // Scratch of one op's kernel, from the local types of its operands.
  std::function<Bytes(const Op&, const LocalTypes& in, const LocalTypes& out)> workspace;
  // Whether the kernel of an op can check its matrix products while it runs; null: none can.
  std::function<bool(const OpDef&)> can_check = nullptr;
  // Whether it checks what ranks send each other, and what they compute twice.
  bool checks_between_ranks = false;
  // The same of an op that runs on host cores; on a CPU these are the device's.
  std::function<Bytes(const Op&, const LocalTypes& in, const LocalTypes& out)> host_workspace = workspace;
  // Whether ops of this kind that stand side by side are done at once: their scratch then lives side by side too.
  std::function<bool(const OpDef&)> done_together = [](const OpDef&) { return false; };
};

}  // namespace sextant
