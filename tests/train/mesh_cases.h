// The meshes on which training is held to one rank's, and what all of those runs share.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

namespace sextant {

struct MeshCase {
  const char* name;
  std::vector<std::string> settings;
};

inline void PrintTo(const MeshCase& mesh, std::ostream* out) {
  *out << mesh.name;
}

// Of a run that does not say otherwise.
inline constexpr int kMeshSteps = 6;

// AdamW divides by the root of the second moment: where a gradient is all but zero, its rounding error would become a
// step of full size. An eps well above that error keeps the comparison about the arithmetic.
inline std::vector<std::string> common_settings() {
  return {"optimizer.eps=1e-6",
          "optimizer.lr=1e-3",
          "model.layers=4",
          "batch.sequences=8",
          "batch.microbatch=1",
          "batch.seq=32",
          fmt::format("train.steps={}", kMeshSteps),
          fmt::format("train.eval_every={}", kMeshSteps),
          "train.eval_sequences=2",
          "optimizer.schedule=constant",
          "train.timeout_s=60",
          "train.check_replicas_every=1"};
}

inline std::vector<MeshCase> meshes() {
  return {
      {"dp2", {"mesh.dp=2"}},
      {"dp4", {"mesh.dp=4"}},
      {"tp2", {"mesh.tp=2"}},
      {"tp4", {"mesh.tp=4"}},
      {"dp2_tp2", {"mesh.dp=2", "mesh.tp=2"}},
      {"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"tp4_sp", {"mesh.tp=4", "mesh.sequence_parallel=true"}},
      {"zero1_dp2", {"mesh.dp=2", "mesh.zero=1"}},
      {"zero1_dp4", {"mesh.dp=4", "mesh.zero=1"}},
      {"zero2_dp2", {"mesh.dp=2", "mesh.zero=2"}},
      {"zero3_dp2", {"mesh.dp=2", "mesh.zero=3"}},
      {"zero3_dp4", {"mesh.dp=4", "mesh.zero=3"}},
      {"zero3_dp2_tp2_sp", {"mesh.dp=2", "mesh.zero=3", "mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"hsdp_zero3_dp4", {"mesh.dp=4", "mesh.zero=3", "mesh.zero_ranks=2"}},
      {"hsdp_zero1_dp4", {"mesh.dp=4", "mesh.zero=1", "mesh.zero_ranks=2"}},
      {"pp2_gpipe", {"mesh.pp=2", "pipeline.schedule=gpipe"}},
      {"pp2_1f1b", {"mesh.pp=2"}},
      {"pp4_1f1b", {"mesh.pp=4"}},
      {"pp2_interleaved", {"mesh.pp=2", "pipeline.schedule=interleaved", "pipeline.chunks=2"}},
      {"pp2_breadth_first", {"mesh.pp=2", "pipeline.schedule=breadth-first", "pipeline.chunks=2"}},
      {"pp2_zb_h1", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
      {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
      {"combined", {"pipeline.schedule=combined-1f1b"}},
      {"tp2_combined", {"mesh.tp=2", "pipeline.schedule=combined-1f1b"}},
      {"dp2_tp2_sp_zero3_combined",
       {"mesh.dp=2", "mesh.tp=2", "mesh.sequence_parallel=true", "mesh.zero=3", "pipeline.schedule=combined-1f1b"}},
      {"pp2_combined_full", {"mesh.pp=2", "pipeline.schedule=combined-1f1b", "train.recompute=full"}},
      {"pp2_dualpipev", {"mesh.pp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_tp2_dualpipev", {"mesh.pp=2", "mesh.tp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_cp2_dualpipev", {"mesh.pp=2", "mesh.cp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_dp2_zero3_dualpipev",
       {"mesh.pp=2", "mesh.dp=2", "mesh.zero=3", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_dualpipe", {"mesh.pp=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp4_dualpipe", {"mesh.pp=4", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_tp2_sp_dualpipe",
       {"mesh.pp=2", "mesh.tp=2", "mesh.sequence_parallel=true", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_cp2_full_dualpipe",
       {"mesh.pp=2", "mesh.cp=2", "train.recompute=full", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp4_zero1_dualpipe", {"mesh.pp=4", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_dp2_zero1_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_dp2_zero2_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.zero=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_dp2_zero3_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.zero=3", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_uneven", {"mesh.pp=2", "pipeline.layers='1,3'"}},
      {"pp3_ends_alone", {"mesh.pp=3", "pipeline.layers='0,4,0'"}},
      {"dp2_tp2_pp2", {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}},
      {"dp2_pp2_zero3_full", {"mesh.dp=2", "mesh.pp=2", "mesh.zero=3", "train.recompute=full"}},
      {"cp2", {"mesh.cp=2"}},
      {"cp4", {"mesh.cp=4"}},
      {"cp2_tp2_dp2", {"mesh.cp=2", "mesh.tp=2", "mesh.dp=2"}},
      {"cp2_tp2_sp", {"mesh.cp=2", "mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"pp2_cp2_zero3", {"mesh.pp=2", "mesh.cp=2", "mesh.zero=3"}},
      {"pp2_cp2_zero3_full", {"mesh.pp=2", "mesh.cp=2", "mesh.zero=3", "train.recompute=full"}},
      {"cp2_ulysses", {"mesh.cp=2", "mesh.context=ulysses"}},
      {"cp2_tp2_ulysses", {"mesh.cp=2", "mesh.tp=2", "mesh.context=ulysses"}},
      {"cp4_ulysses", {"mesh.cp=4", "mesh.context=ulysses"}},
      {"cp2_ulysses_zero3", {"mesh.cp=2", "mesh.context=ulysses", "mesh.zero=3"}},
  };
}

// For a model with experts, which lie on the ranks in their own way.
inline std::vector<MeshCase> expert_meshes() {
  return {
      {"dp2_ep2", {"mesh.dp=2", "mesh.ep=2"}},
      {"dp4_ep2", {"mesh.dp=4", "mesh.ep=2"}},
      {"dp4_ep4", {"mesh.dp=4", "mesh.ep=4"}},
      {"dp4_ep4_full", {"mesh.dp=4", "mesh.ep=4", "train.recompute=full"}},
      {"dp2_tp2_ep2", {"mesh.dp=2", "mesh.tp=2", "mesh.ep=2"}},
      {"dp2_tp2_ep2_sp", {"mesh.dp=2", "mesh.tp=2", "mesh.ep=2", "mesh.sequence_parallel=true"}},
      {"tp2_etp1", {"mesh.tp=2", "mesh.etp=1"}},
      {"tp2_etp1_ep2", {"mesh.tp=2", "mesh.etp=1", "mesh.ep=2"}},
      {"tp4_etp1_ep2", {"mesh.tp=4", "mesh.etp=1", "mesh.ep=2"}},
      {"tp4_etp1_ep4_sp", {"mesh.tp=4", "mesh.etp=1", "mesh.ep=4", "mesh.sequence_parallel=true"}},
      {"tp4_etp2_ep2", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2"}},
      {"dp2_tp2_etp1_ep4", {"mesh.dp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=4"}},
      {"dp4_tp2_etp2_ep4", {"mesh.dp=4", "mesh.tp=2", "mesh.etp=2", "mesh.ep=4"}},
      {"cp2_ep2", {"mesh.cp=2", "mesh.ep=2"}},
      {"cp4_ep4", {"mesh.cp=4", "mesh.ep=4"}},
      {"cp4_ep4_ulysses", {"mesh.cp=4", "mesh.ep=4", "mesh.context=ulysses"}},
      {"cp2_dp2_ep4", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=4"}},
      {"cp2_dp2_ep2", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=2"}},
      {"cp2_tp2_etp1_ep4", {"mesh.cp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=4"}},
      {"zero1_dp4_ep2", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=1"}},
      {"zero2_dp4_ep2", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=2"}},
      {"zero3_dp4_ep2", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=3"}},
      {"zero3_dp4_ep4", {"mesh.dp=4", "mesh.ep=4", "mesh.zero=3"}},
      {"zero3_dp4_tp2_etp2_ep2", {"mesh.dp=4", "mesh.tp=2", "mesh.etp=2", "mesh.ep=2", "mesh.zero=3"}},
      {"hsdp_zero3_dp4_ep2", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=3", "mesh.zero_ranks=2"}},
      {"pp2_dp2_ep2", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2"}},
      {"pp2_dp2_ep2_zbv", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
      {"dp2_ep2_combined", {"mesh.dp=2", "mesh.ep=2", "pipeline.schedule=combined-1f1b"}},
      {"pp2_dp2_ep2_combined", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=combined-1f1b"}},
      {"tp4_etp2_ep2_combined", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2", "pipeline.schedule=combined-1f1b"}},
      {"pp2_dp2_ep2_dualpipev",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_tp4_etp2_ep2_dualpipev",
       {"mesh.pp=2", "mesh.tp=4", "mesh.etp=2", "mesh.ep=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_tp2_etp1_ep2_sp_dualpipev",
       {"mesh.pp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.sequence_parallel=true",
        "pipeline.schedule=dualpipev", "pipeline.chunks=2"}},
      {"pp2_dp2_ep2_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_dp2_ep2_zero1_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_tp4_etp2_ep2_dualpipe",
       {"mesh.pp=2", "mesh.tp=4", "mesh.etp=2", "mesh.ep=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_tp2_etp1_ep2_sp_dualpipe",
       {"mesh.pp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.sequence_parallel=true",
        "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
      {"pp2_dp2_ep2_cheap_zbv",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=zbv", "pipeline.chunks=2",
        "pipeline.deferred_gradients=cheap"}},
      {"pp2_dp2_ep2_cheap_dualpipev",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2",
        "pipeline.deferred_gradients=cheap"}},
      {"pp2_dp2_ep2_zero1_full_cheap_dualpipe",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=1", "train.recompute=full", "pipeline.schedule=dualpipe",
        "pipeline.chunks=2", "pipeline.deferred_gradients=cheap"}},
      {"pp2_cp2_zero3_ep2_full", {"mesh.pp=2", "mesh.cp=2", "mesh.ep=2", "mesh.zero=3", "train.recompute=full"}},
  };
}

// The three ways of tokens to experts, where sizes alone would decide for another.
inline std::vector<MeshCase> dispatch_meshes() {
  const std::string rows = "mesh.expert_dispatch=rows", tokens = "mesh.expert_dispatch=tokens",
                    gather = "mesh.expert_dispatch=gather";
  return {
      {"dp2_ep2_rows", {"mesh.dp=2", "mesh.ep=2", rows}},
      {"tp4_etp2_ep2_rows", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2", rows}},
      {"cp2_dp2_ep2_zero2_rows", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=2", rows}},
      {"dp4_ep4_gather", {"mesh.dp=4", "mesh.ep=4", gather}},
      {"dp2_tp2_etp1_ep4_gather", {"mesh.dp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=4", gather}},
      {"zero3_dp4_ep4_gather", {"mesh.dp=4", "mesh.ep=4", "mesh.zero=3", gather}},
      {"dp2_ep2_tokens", {"mesh.dp=2", "mesh.ep=2", tokens}},
      {"dp4_ep4_tokens", {"mesh.dp=4", "mesh.ep=4", tokens}},
      {"dp4_ep2_full_tokens", {"mesh.dp=4", "mesh.ep=2", "train.recompute=full", tokens}},
      {"dp2_tp2_ep2_sp_tokens", {"mesh.dp=2", "mesh.tp=2", "mesh.ep=2", "mesh.sequence_parallel=true", tokens}},
      {"tp2_etp1_ep2_tokens", {"mesh.tp=2", "mesh.etp=1", "mesh.ep=2", tokens}},
      {"tp4_etp2_ep2_tokens", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2", tokens}},
      {"cp2_ep2_tokens", {"mesh.cp=2", "mesh.ep=2", tokens}},
      {"zero2_dp4_ep2_tokens", {"mesh.dp=4", "mesh.ep=2", "mesh.zero=2", tokens}},
      {"zero3_dp4_tp2_etp2_ep2_tokens", {"mesh.dp=4", "mesh.tp=2", "mesh.etp=2", "mesh.ep=2", "mesh.zero=3", tokens}},
      {"pp2_dp2_ep2_tokens", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", tokens}},
      {"pp2_dp2_ep2_dualpipev_tokens",
       {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2", tokens}},
      {"dp2_ep2_combined_tokens", {"mesh.dp=2", "mesh.ep=2", "pipeline.schedule=combined-1f1b", tokens}},
  };
}

}  // namespace sextant
