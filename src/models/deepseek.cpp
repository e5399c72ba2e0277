#include "models/deepseek.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

constexpr ExpertKeys kDeepseekKeys{.count = "n_routed_experts", .width = "moe_intermediate_size"};

int64_t own_part_of_key(const ModelSpec& spec) {
  return spec.head_dim - spec.latent->rope_dim;
}

}  // namespace

void read_latent(HfReader& reader, ModelSpec& spec) {
  LatentSpec latent;
  // Lite's files name it as null: there are no narrow rows of queries.
  bool no_rank = reader.names("q_lora_rank") && !reader.has("q_lora_rank");
  latent.q_rank = no_rank ? 0 : reader.integer("q_lora_rank", latent.q_rank);
  latent.kv_rank = reader.integer("kv_lora_rank", latent.kv_rank);
  latent.rope_dim = reader.integer("qk_rope_head_dim", latent.rope_dim);
  latent.value_dim = reader.integer("v_head_dim", latent.value_dim);
  spec.head_dim = reader.integer("qk_nope_head_dim", 128) + latent.rope_dim;
  spec.latent = latent;
}

void write_latent(const ModelSpec& spec, nlohmann::json& out) {
  const LatentSpec& latent = *spec.latent;
  out["q_lora_rank"] = latent.q_rank > 0 ? nlohmann::json(latent.q_rank) : nlohmann::json();
  out["kv_lora_rank"] = latent.kv_rank;
  out["qk_nope_head_dim"] = own_part_of_key(spec);
  out["qk_rope_head_dim"] = latent.rope_dim;
  out["v_head_dim"] = latent.value_dim;
  out["head_dim"] = latent.rope_dim;  // what transformers means by it here
}

ExpertsSpec read_deepseek_experts(HfReader& reader, const ExpertsSpec& otherwise) {
  ExpertsSpec experts = read_experts(reader, kDeepseekKeys, otherwise);
  experts.dense_first = reader.integer("first_k_dense_replace", experts.dense_first);
  int64_t shared = reader.integer("n_shared_experts", otherwise.shared_ffn / otherwise.ffn);
  if (shared < 1 || shared > kMaxExperts)
    reader.complain("n_shared_experts", fmt::format("got {}", shared),
                    fmt::format("an integer from 1 to {}", kMaxExperts));
  else if (experts.ffn >= 0 && experts.ffn <= kMaxFfn)  // else reported with the spec's problems
    experts.shared_ffn = shared * experts.ffn;
  if (int64_t every = reader.integer("moe_layer_freq", 1); every != 1)
    reader.complain("moe_layer_freq",
                    fmt::format("{} is not supported: all layers behind the first have experts", every), "1");
  return experts;
}

void write_deepseek_experts(const ModelSpec& spec, nlohmann::json& out) {
  const ExpertsSpec& experts = *spec.experts;
  write_experts(spec, kDeepseekKeys, out);
  out["first_k_dense_replace"] = experts.dense_first;
  out["n_shared_experts"] = experts.shared_ffn / experts.ffn;
}

void write_groups_and_scale(const ModelSpec& spec, nlohmann::json& out) {
  const ExpertsSpec& experts = *spec.experts;
  out["routed_scaling_factor"] = experts.scale;
  out["n_group"] = experts.groups;
  out["topk_group"] = experts.keep_groups;
}

std::vector<HfName> deepseek_expert_names() {
  std::vector<HfName> names = common_names_but(expert_names(kDeepseekKeys));
  names.push_back({"experts.shared_ffn", "n_shared_experts"});
  names.push_back({"experts.dense_first", "first_k_dense_replace"});
  return names;
}

std::vector<HfName> deepseek_names() {
  std::vector<HfName> names = deepseek_expert_names();
  std::vector<HfName> own{{"latent.q_rank", "q_lora_rank"},
                          {"latent.kv_rank", "kv_lora_rank"},
                          {"latent.rope_dim", "qk_rope_head_dim"},
                          {"latent.value_dim", "v_head_dim"},
                          {"head_dim", "qk_nope_head_dim"},
                          {"experts.groups", "n_group"},
                          {"experts.keep_groups", "topk_group"},
                          {"experts.group_top", "n_group"},
                          {"experts.scale", "routed_scaling_factor"},
                          {"mtp.depths", "num_nextn_predict_layers"},
                          {"rope_scaling.mscale_all_dim", "rope_scaling.mscale_all_dim"}};
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

namespace {

// Adds the tensors that a multi-token prediction module has outside its decoder layer, whose tensors follow them.
void add_mtp_module(HfTensors& t, const ModelSpec& m, int64_t layer) {
  std::string hf = fmt::format("model.layers.{}.", layer);
  t.begin(hf, "");
  t.add("embed_tokens.weight", "embed.weight", m.vocab);
  t.last().copy = true;
  t.add("shared_head.head.weight", m.tied_head ? "embed.weight" : "head.weight", m.vocab);
  t.last().copy = true;
  t.begin(std::move(hf), fmt::format("mtp.{}.", layer - m.layers));
  t.add("enorm.weight", "enorm.weight", m.hidden);
  t.add("hnorm.weight", "hnorm.weight", m.hidden);
  t.add("eh_proj.weight", "eh_proj.weight", m.hidden);
  t.add("shared_head.norm.weight", "norm.weight", m.hidden);
}

}  // namespace

void check_deepseek(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (!spec.experts || spec.experts->ffn < 1) return;
  const ExpertsSpec& experts = *spec.experts;
  if (experts.shared_ffn < 1 || experts.shared_ffn % experts.ffn != 0)
    problems.push_back({{"experts.shared_ffn", "experts.ffn"},
                        fmt::format("a shared width of {} is not that of whole experts", experts.shared_ffn),
                        fmt::format("a multiple of experts.ffn {}", experts.ffn)});
}

void add_deepseek_mlp(HfTensors& t, const ModelSpec& m, int64_t layer) {
  if (!layer_has_experts(m, layer)) {
    t.add_gated_mlp(m);
    return;
  }
  t.add("mlp.gate.weight", "mlp.router.weight", m.experts->count);
  if (m.experts->correction_bias) t.add("mlp.gate.e_score_correction_bias", "mlp.router.correction", m.experts->count);
  t.add_experts("mlp.experts", m, {});
  int64_t shared = m.experts->shared_ffn;
  t.add("mlp.shared_experts.gate_proj.weight", "mlp.shared.gate_up.weight", 0, shared);
  t.add("mlp.shared_experts.up_proj.weight", "mlp.shared.gate_up.weight", shared, shared);
  t.add("mlp.shared_experts.down_proj.weight", "mlp.shared.down.weight", m.hidden);
}

std::vector<HfTensor> deepseek_tensors(const ModelSpec& m) {
  HfTensors t;
  const LatentSpec& latent = *m.latent;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int64_t layer = 0; layer < m.layers + m.mtp_depths; ++layer) {
    t.begin_layer("model.layers", layer);
    if (layer >= m.layers) add_mtp_module(t, m, layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    int64_t q_width = m.heads * m.head_dim;
    if (latent.q_rank > 0) {
      t.add("self_attn.q_a_proj.weight", "attn.q_a.weight", latent.q_rank);
      t.add("self_attn.q_a_layernorm.weight", "attn.q_a_norm.weight", latent.q_rank);
      t.add("self_attn.q_b_proj.weight", "attn.q_b.weight", q_width);
    } else {
      t.add("self_attn.q_proj.weight", "attn.q.weight", q_width);
    }
    t.add("self_attn.kv_a_proj_with_mqa.weight", "attn.kv_a.weight", latent.kv_rank + latent.rope_dim);
    t.add("self_attn.kv_a_layernorm.weight", "attn.kv_a_norm.weight", latent.kv_rank);
    t.add("self_attn.kv_b_proj.weight", "attn.kv_b.weight", m.heads * (own_part_of_key(m) + latent.value_dim));
    t.add("self_attn.o_proj.weight", "attn.out.weight", m.hidden);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    add_deepseek_mlp(t, m, layer);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace sextant
