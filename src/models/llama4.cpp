// Llama 4: experts of which each token goes through one, weighted at its input by the sigmoid of its logit, beside a
// shared one; some layers may have an MLP. Every fourth layer has no RoPE and sees all tokens, with queries that grow
// with the position; in the others a token sees those of its chunk, RoPE turns neighbours, and heads of q and k may be
// normed behind it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::llama4 {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{
    .count = "num_local_experts", .width = "intermediate_size", .every = "interleave_moe_layer_step"};

constexpr int64_t kChunk = 8192, kTemperaturePositions = 8192;

ExpertsSpec default_experts() {
  return {.count = 16, .per_token = 1, .normalise = false, .balance_loss = 0.001, .score = ExpertScore::sigmoid};
}

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Rope rope = rope_of(m, use);
  rope.interleaved = true;
  return decoder(m, use, mesh,
                 {.rope = rope,
                  .qk_norm = m.qk_norm ? QkNorm::unit : QkNorm::none,
                  .routing_weight_on = ExpertMlp::WeightOn::input});
}

std::vector<int64_t> moe_layers_of(const ModelSpec& spec) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    if (layer_has_experts(spec, layer)) layers.push_back(layer);
  return layers;
}

// moe_layers goes before interleave_moe_layer_step; layers that the model does not have count for nothing.
void read_moe_layers(HfReader& reader, ModelSpec& spec) {
  if (!reader.has("moe_layers")) return;
  std::vector<int64_t> listed = reader.integers("moe_layers");
  std::sort(listed.begin(), listed.end());
  std::erase_if(listed, [&](int64_t layer) { return layer < 0 || layer >= spec.layers; });
  int64_t layers = std::min(spec.layers, kMaxLayers);
  if (listed.empty()) {
    reader.complain("moe_layers", "no layer of the model has experts", "numbers of layers, the first being 0");
    return;
  }
  for (int64_t every : {spec.experts->every, listed.front() + 1}) {
    if (every < 1) continue;  // reported with the spec's problems
    spec.experts->every = every;
    if (moe_layers_of(spec) == listed) return;
  }
  spec.experts->every = 1;
  for (int64_t layer = 0; layer < layers; ++layer)
    if (!std::binary_search(listed.begin(), listed.end(), layer)) spec.experts->dense_layers.push_back(layer);
}

std::vector<std::string> layer_types_of_rope(const ModelSpec& spec) {
  std::vector<std::string> types;
  for (int64_t layer = 1; layer <= std::min(spec.layers, kMaxLayers); ++layer)
    types.emplace_back(spec.no_rope_every > 0 && layer % spec.no_rope_every == 0 ? "full_attention"
                                                                                 : "chunked_attention");
  return types;
}

void read_attention(HfReader& reader, ModelSpec& spec) {
  // In released files the list is empty: the interval counts.
  if (reader.has("no_rope_layers") && reader.integers("no_rope_layers").empty())
    spec.no_rope_every = reader.integer("no_rope_layer_interval", 4);
  else
    read_no_rope_layers(reader, spec);
  if (reader.has("layer_types") && reader.texts("layer_types") != layer_types_of_rope(spec))
    reader.complain("layer_types", "other layers with chunked_attention than those with RoPE",
                    "chunked_attention for layers with RoPE and full_attention for the others, or no such key");
  spec.attention_chunk = reader.integer("attention_chunk_size", kChunk);
  if (reader.names("attention_chunk_size") && !reader.has("attention_chunk_size"))
    reader.complain("attention_chunk_size", "is null, and layers with RoPE have chunked attention",
                    "a number above 0: transformers cannot compute such a model either");
  // Older files hold a number here.
  bool grows = reader.has_integer("attn_temperature_tuning") ? reader.integer("attn_temperature_tuning") != 0
                                                             : reader.flag("attn_temperature_tuning", true);
  if (grows) {
    spec.temperature_positions = reader.integer("floor_scale", kTemperaturePositions);
    spec.temperature_strength = reader.number("attn_scale", 0.1);
    if (spec.temperature_positions < 1)
      reader.complain("floor_scale", fmt::format("got {}", spec.temperature_positions), "an integer of at least 1");
  }
  spec.qk_norm = reader.flag("use_qk_norm", true);
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec =
      read_common(reader, {.max_seq = 131072, .kv_heads = 8, .head_dim = 128, .norm_eps = 1e-5, .rope_theta = 500000});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::no_key);
  read_attention(reader, spec);
  ExpertsSpec otherwise = default_experts();
  otherwise.ffn = spec.ffn;
  spec.experts = read_experts(reader, kKeys, otherwise);
  spec.experts->shared_ffn = spec.experts->ffn;
  spec.ffn = reader.integer("intermediate_size_mlp", 16384);
  read_moe_layers(reader, spec);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::no_key);
  write_no_rope_layers(spec, out);
  out["layer_types"] = layer_types_of_rope(spec);
  out["attention_chunk_size"] = spec.attention_chunk;
  out["attn_temperature_tuning"] = spec.temperature_positions > 0;
  if (spec.temperature_positions > 0) {
    out["floor_scale"] = spec.temperature_positions;
    out["attn_scale"] = spec.temperature_strength;
  }
  out["use_qk_norm"] = spec.qk_norm;
  write_experts(spec, kKeys, out);
  out["intermediate_size_mlp"] = spec.ffn;
  out["moe_layers"] = moe_layers_of(spec);
}

// gate_proj, up_proj and down_proj below HF, at gate_up and down below OWN.
void add_mlp(HfTensors& t, std::string_view hf, std::string_view own, int64_t width, int64_t hidden) {
  std::string gate_up = fmt::format("{}.gate_up.weight", own);
  t.add(fmt::format("{}.gate_proj.weight", hf), gate_up, 0, width);
  t.add(fmt::format("{}.up_proj.weight", hf), gate_up, width, width);
  t.add(fmt::format("{}.down_proj.weight", hf), fmt::format("{}.down.weight", own), hidden);
}

// A matrix of [inputs, rows] for each expert in one tensor; rows of gate_up_proj are gate and then up, as ours are.
void add_stack(HfTensors& t, std::string_view hf, std::string_view own, int64_t rows, int64_t experts) {
  for (int64_t e = 0; e < experts; ++e) {
    t.add(fmt::format("feed_forward.experts.{}", hf), fmt::format("mlp.experts.{}.weight", own), e * rows, rows);
    t.last().order = HfTensor::Order::transposed;
    t.last().slice = e, t.last().slices = experts;
  }
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    if (!layer_has_experts(m, layer)) {
      add_mlp(t, "feed_forward", "mlp", m.ffn, m.hidden);
      continue;
    }
    t.add("feed_forward.router.weight", "mlp.router.weight", m.experts->count);
    add_stack(t, "gate_up_proj", "gate_up", 2 * m.experts->ffn, m.experts->count);
    add_stack(t, "down_proj", "down", m.hidden, m.experts->count);
    add_mlp(t, "feed_forward.shared_expert", "mlp.shared", m.experts->shared_ffn, m.hidden);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_biases(spec, problems);
  if (spec.attention_chunk == 0)
    problems.push_back({{"attention_chunk"},
                        "llama4 has layers with chunked attention, and their size is not given",
                        "a number above 0"});
  if (!spec.experts) return;
  if (spec.experts->every > spec.layers)
    problems.push_back(
        {{"experts.every", "layers"},
         fmt::format("experts.every {} gives none of {} layers experts", spec.experts->every, spec.layers),
         fmt::format("an integer from 1 to {}", spec.layers)});
  if (spec.experts->shared_ffn != spec.experts->ffn)
    problems.push_back(
        {{"experts.shared_ffn", "experts.ffn"},
         fmt::format("a shared width of {}", spec.experts->shared_ffn),
         fmt::format("{}, as experts.ffn: llama4 has a shared expert as wide as the others", spec.experts->ffn)});
  if (spec.experts->score != ExpertScore::sigmoid)
    problems.push_back({{"experts.score"}, "llama4 scores experts by sigmoid", "sigmoid"});
  if (spec.experts->normalise)
    problems.push_back({{"experts.normalise"}, "llama4 takes the weights of a token's experts as they are", "false"});
}

std::vector<HfName> names() {
  std::vector<HfName> names = expert_names(kKeys);
  names.insert(names.end(), {{"experts.shared_ffn", kKeys.width},
                             {"ffn", "intermediate_size_mlp"},
                             {"qk_norm", "use_qk_norm"},
                             {"attention_chunk", "attention_chunk_size"},
                             {"temperature_positions", "floor_scale"},
                             {"temperature_strength", "attn_scale"},
                             {"no_rope_every", "no_rope_layer_interval"}});
  return common_names_but(std::move(names));
}

std::vector<Preset> llama4_presets() {
  auto llama4 = [](const PresetRow& row, int64_t experts, int64_t every) {
    ExpertsSpec of_row = default_experts();
    of_row.count = experts;
    of_row.every = every;
    of_row.ffn = of_row.shared_ffn = 8192;
    return preset_of(row, {.vocab = 202048,
                           .norm_eps = 1e-5,
                           .rope_theta = 500000,
                           .attention_chunk = kChunk,
                           .temperature_positions = kTemperaturePositions,
                           .no_rope_every = 4,
                           .experts = of_row,
                           .tied_head = false,
                           .bos_token = 200000,
                           .eos_tokens = {200001, 200007, 200008}});
  };
  Preset scout = llama4({"llama4-scout", "Meta Llama 4 Scout 17B-16E", 48, 5120, 40, 8, 16384, 128}, 16, 1);
  scout.spec.max_seq = 10485760;
  scout.spec.qk_norm = true;
  scout.spec.rope_scaling = RopeScaling{.type = RopeType::llama3,
                                        .factor = 16,
                                        .original_max_positions = 8192,
                                        .low_freq_factor = 1,
                                        .high_freq_factor = 1};
  Preset maverick = llama4({"llama4-maverick", "Meta Llama 4 Maverick 17B-128E", 48, 5120, 40, 8, 16384, 128}, 128, 2);
  maverick.spec.max_seq = 1048576;
  return {scout, maverick};
}

}  // namespace

extern const ModelDef model{
    .name = "llama4",
    .about = "Llama 4",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "qk_norm", "attention_chunk", "temperature_positions",
                "no_rope_every", "experts.ffn", "experts.normalise", "experts.every", "experts.shared_ffn",
                "experts.score"},
    .defaults = {.qk_norm = true,
                 .attention_chunk = kChunk,
                 .temperature_positions = kTemperaturePositions,
                 .no_rope_every = 4,
                 .experts = default_experts(),
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "llama4_text",
                  .class_name = "Llama4ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .hf_wrapper = HfWrapper{.model_type = "llama4",
                            .section = "text_config",
                            .prefix = "language_model.",
                            .unread = {"vision_model.", "multi_modal_projector."}},
    .presets = llama4_presets,
};

}  // namespace sextant::llama4
