// What DeepSeek-V2 and V3 share: the keys of config.json about latent attention and about layers with experts, and the
// names of their tensors.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "models/hf_type.h"
#include "models/model_def.h"

namespace sextant {

// q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim, with the defaults of transformers; sets
// head_dim too.
void read_latent(HfReader& reader, ModelSpec& spec);
void write_latent(const ModelSpec& spec, nlohmann::json& out);

// num_experts_per_tok, n_routed_experts, n_shared_experts, moe_intermediate_size, first_k_dense_replace and
// routed_scaling_factor. What is absent is as `otherwise`, of which shared_ffn is a multiple of ffn.
ExpertsSpec read_deepseek_experts(HfReader& reader, const ExpertsSpec& otherwise);
void write_deepseek_experts(const ModelSpec& spec, nlohmann::json& out);

std::vector<HfName> deepseek_names();
// That the shared experts are some of the width of the others.
void check_deepseek(const ModelSpec& spec, std::vector<SpecProblem>& problems);

std::vector<HfTensor> deepseek_tensors(const ModelSpec& spec);

}  // namespace sextant
