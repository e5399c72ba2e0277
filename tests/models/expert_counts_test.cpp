// Parameters of published models with experts, counted from their config.json by hand: sums over matrices, written from
// the papers and not from the graphs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "architecture_data.h"
#include "models/model.h"
#include "models/presets.h"

namespace sextant {
namespace {

using nlohmann::json;

struct Counts {
  int64_t total = 0, active = 0;
  void add(int64_t parameters) { total += parameters, active += parameters; }
};

// A gated MLP, or an expert.
int64_t gated(int64_t hidden, int64_t width) {
  return 3 * hidden * width;
}

int64_t grouped_attention(const json& file) {
  int64_t hidden = file["hidden_size"], heads = file["num_attention_heads"], kv_heads = file["num_key_value_heads"];
  int64_t head = file.value("head_dim", hidden / heads);
  return hidden * head * (2 * heads + 2 * kv_heads);
}

int64_t latent_attention(const json& file) {
  int64_t hidden = file["hidden_size"], heads = file["num_attention_heads"], rank = file["kv_lora_rank"];
  int64_t own = file["qk_nope_head_dim"], turned = file["qk_rope_head_dim"], values = file["v_head_dim"];
  int64_t queries = heads * (own + turned) * hidden;
  if (!file["q_lora_rank"].is_null()) {
    int64_t q_rank = file["q_lora_rank"];
    queries = hidden * q_rank + q_rank + q_rank * heads * (own + turned);
  }
  return queries + hidden * (rank + turned) + rank + rank * heads * (own + values) + heads * values * hidden;
}

// `attention` and `others` are those of one layer; others are norms beside the two and biases.
Counts counted(const json& file, int64_t attention, int64_t others) {
  std::string type = file["model_type"];
  int64_t hidden = file["hidden_size"], layers = file["num_hidden_layers"], vocab = file["vocab_size"];
  bool deepseek = file.contains("n_routed_experts");
  int64_t experts = file[deepseek                       ? "n_routed_experts"
                         : file.contains("num_experts") ? "num_experts"
                                                        : "num_local_experts"];
  int64_t width = file.value("moe_intermediate_size", file["intermediate_size"].get<int64_t>());
  int64_t per_token = file["num_experts_per_tok"], dense = file.value("first_k_dense_replace", 0);
  int64_t shared = deepseek ? file["n_shared_experts"].get<int64_t>() * width : 0;
  if (type == "qwen2_moe") shared = file["shared_expert_intermediate_size"];
  if (type == "llama4_text") shared = width;
  int64_t every = file.value("interleave_moe_layer_step", 1);
  Counts counts;
  counts.add(2 * vocab * hidden + hidden);
  for (int64_t layer = 0; layer < layers; ++layer) {
    counts.add(attention + 2 * hidden + others);
    if (layer < dense || (layer + 1) % every != 0) {
      counts.add(gated(hidden, file.value("intermediate_size_mlp", file["intermediate_size"].get<int64_t>())));
      continue;
    }
    counts.add(experts * hidden + gated(hidden, shared) + (type == "qwen2_moe" ? hidden : 0));
    int64_t one = gated(hidden, width) + (type == "gpt_oss" ? 2 * width + hidden : 0);
    counts.total += experts * one, counts.active += per_token * one;
  }
  return counts;
}

// Beside two norms, the weights of matrices and of experts.
int64_t small_parameters(const json& file) {
  std::string type = file["model_type"];
  int64_t hidden = file["hidden_size"], heads = file["num_attention_heads"], kv_heads = file["num_key_value_heads"];
  int64_t head = file.value("head_dim", hidden / heads);
  if (type == "qwen3_moe") return 2 * head;  // norms of heads
  if (type == "glm4_moe")                    // biases of q, k and v, norms of heads
    return (heads + 2 * kv_heads) * head + (file["use_qk_norm"].get<bool>() ? 2 * head : 0);
  if (type == "olmoe") return (heads + kv_heads) * head;          // norms of q and k as a whole
  if (type == "qwen2_moe") return (heads + 2 * kv_heads) * head;  // biases of q, k and v
  if (type == "gpt_oss")                                          // biases of attention and of the router, sinks
    return (heads + 2 * kv_heads) * head + hidden + file["num_local_experts"].get<int64_t>() + heads;
  return 0;
}

TEST(ExpertCounts, AreSumsOverMatrices) {
  int compared = 0;
  for (const char* architecture : {"mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "deepseek_moe", "deepseek_v2",
                                   "deepseek_v3", "gpt_oss", "llama4", "glm4_moe"}) {
    json released = architecture_data(architecture)["released"];
    for (const auto& [name, whole] : released.items()) {
      const json& file = whole.contains("text_config") ? whole["text_config"] : whole;
      Counts counts = counted(file, file.contains("kv_lora_rank") ? latent_attention(file) : grouped_attention(file),
                              small_parameters(file));
      Graph graph = build_model(find_preset(name)->spec, {.seq = 1}, single_rank_mesh());
      EXPECT_EQ(parameter_count(graph), counts.total) << name;
      ActiveParameters active = active_parameters(graph);
      EXPECT_EQ(active.all, counts.active) << name;
      EXPECT_EQ(active.without_embedding,
                counts.active - file["vocab_size"].get<int64_t>() * file["hidden_size"].get<int64_t>())
          << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 20);
}

// Elements of the released files, in which correction biases are parameters too; recalled, not looked up.
TEST(ExpertCounts, AreThoseOfReleasedFiles) {
  struct Published {
    const char* preset;
    int64_t elements, layers_with_bias, experts;
  };
  for (const Published& p :
       {Published{"kimi-k2", 1'026'408'232'448, 60, 384}, Published{"moonlight-16b-a3b", 15'960'110'208, 26, 64},
        Published{"qwen3-coder-480b-a35b", 480'154'875'392, 0, 0}}) {
    Graph graph = build_model(find_preset(p.preset)->spec, {.seq = 1}, single_rank_mesh());
    EXPECT_EQ(parameter_count(graph) + p.layers_with_bias * p.experts, p.elements) << p.preset;
  }
}

}  // namespace
}  // namespace sextant
