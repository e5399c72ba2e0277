// Code that DeepSeek's models share: the keys of config.json about layers with experts and, in V2 and V3, about latent
// attention, and the names of their tensors.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "models/hf_tensors.h"
#include "models/hf_type.h"
#include "models/model_def.h"

namespace sextant {

// q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim, with the defaults of transformers; sets
// head_dim too.
void read_latent(HfReader& reader, ModelSpec& spec);
void write_latent(const ModelSpec& spec, nlohmann::json& out);

// num_experts_per_tok, n_routed_experts, n_shared_experts, moe_intermediate_size and first_k_dense_replace. What is
// absent is as `otherwise`, of which shared_ffn is a multiple of ffn.
ExpertsSpec read_deepseek_experts(HfReader& reader, const ExpertsSpec& otherwise);
void write_deepseek_experts(const ModelSpec& spec, nlohmann::json& out);
// V2 and V3: routed_scaling_factor, n_group and topk_group.
void write_groups_and_scale(const ModelSpec& spec, nlohmann::json& out);

std::vector<HfName> deepseek_expert_names();  // and those that most types share
std::vector<HfName> deepseek_names();         // V2 and V3: and those of latent attention
// That the shared experts are some of the width of the others.
void check_deepseek(const ModelSpec& spec, std::vector<SpecProblem>& problems);

// The MLP or the experts of a layer.
void add_deepseek_mlp(HfTensors& tensors, const ModelSpec& spec, int64_t layer);
// Of V2 and V3.
std::vector<HfTensor> deepseek_tensors(const ModelSpec& spec);

}  // namespace sextant
