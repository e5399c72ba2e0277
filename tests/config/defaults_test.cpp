// The default of every key, written here by hand: docs/config.md is generated, and would go along with a change that
// nobody meant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "models/architecture_data.h"
#include "models/models.h"
#include "ops/muon.h"
#include "optim/optimizer.h"

namespace sextant {
namespace {

// Values of a run that does not give the key. In angle brackets: no value, and what holds instead, as docs/config.md
// states it.
const std::map<std::string_view, std::string_view>& defaults() {
  static const std::map<std::string_view, std::string_view> table{
      {"name", "<the file's name without `.toml`>"},
      {"device", "\"auto\""},

      {"model.preset", "<none>"},
      {"model.from", "<none>"},
      {"model.architecture", "<the preset's>"},
      {"model.layers", "<the preset's>"},
      {"model.hidden", "<the preset's>"},
      {"model.heads", "<the preset's>"},
      {"model.kv_heads", "<the preset's, else the architecture's, else `heads`>"},
      {"model.head_dim", "<the preset's, else `hidden` / `heads`>"},
      {"model.ffn", "<the preset's, else the architecture's multiple of `hidden`>"},
      {"model.vocab", "<the preset's, else the tokenizer's>"},
      {"model.max_seq", "<the preset's, else `batch.seq`>"},
      {"model.norm_eps", "<the preset's, else 1e-05>"},
      {"model.rope_theta", "<the preset's, else 10000>"},
      {"model.rope_scaling.type", "<the preset's, else llama3>"},
      {"model.rope_scaling.factor", "<the preset's, else no scaling>"},
      {"model.rope_scaling.low_freq_factor", "<the preset's, else 1>"},
      {"model.rope_scaling.high_freq_factor", "<the preset's, else 4>"},
      {"model.rope_scaling.beta_fast", "<the preset's, else 32>"},
      {"model.rope_scaling.beta_slow", "<the preset's, else 1>"},
      {"model.rope_scaling.attention_factor", "<the preset's, else 0.1·ln(`factor`) + 1>"},
      {"model.rope_scaling.mscale_all_dim", "<the preset's, else 0>"},
      {"model.rope_scaling.original_max_positions", "<the preset's, else 8192>"},
      {"model.rotary_fraction", "<the preset's, else the architecture's, else 1>"},
      {"model.activation", "<the preset's, else the architecture's>"},
      {"model.norm_placement", "<the preset's, else pre>"},
      {"model.embedding_width", "<the preset's, else 0>"},
      {"model.qkv_bias", "<the preset's, else false>"},
      {"model.out_bias", "<the preset's, else false>"},
      {"model.mlp_bias", "<the preset's, else false>"},
      {"model.qk_norm", "<the preset's, else false>"},
      {"model.window", "<the preset's, else 0>"},
      {"model.full_attention_first", "<the preset's, else 0>"},
      {"model.full_attention_every", "<the preset's, else 0>"},
      {"model.attention_chunk", "<the preset's, else the architecture's, else 0>"},
      {"model.temperature_positions", "<the preset's, else the architecture's, else 0>"},
      {"model.temperature_strength", "<the preset's, else 0.1>"},
      {"model.inverse_layer_scaling", "<the preset's, else false>"},
      {"model.parallel_residual", "<the preset's, else the architecture's>"},
      {"model.no_rope_every", "<the preset's, else the architecture's, else 0>"},
      {"model.embedding_multiplier", "<the preset's, else 1>"},
      {"model.attention_multiplier", "<the preset's, else 0>"},
      {"model.residual_multiplier", "<the preset's, else 1>"},
      {"model.logits_scaling", "<the preset's, else 1>"},
      {"model.latent.q_rank", "<the preset's, else the architecture's>"},
      {"model.latent.kv_rank", "<the preset's, else the architecture's>"},
      {"model.latent.rope_dim", "<the preset's, else the architecture's>"},
      {"model.latent.value_dim", "<the preset's, else the architecture's>"},
      {"model.experts.count", "<the preset's, else the architecture's>"},
      {"model.experts.per_token", "<the preset's, else the architecture's>"},
      {"model.experts.ffn", "<the preset's, else `ffn`>"},
      {"model.experts.normalise", "<the preset's, else the architecture's>"},
      {"model.experts.balance_loss", "<the preset's, else the architecture's>"},
      {"model.experts.balance_scope", "<the preset's, else the architecture's>"},
      {"model.experts.z_loss", "<the preset's, else 0>"},
      {"model.experts.every", "<the preset's, else 1>"},
      {"model.experts.dense_first", "<the preset's, else the architecture's>"},
      {"model.experts.shared_ffn", "<the preset's, else `ffn`>"},
      {"model.experts.score", "<the preset's, else the architecture's>"},
      {"model.experts.groups", "<the preset's, else the architecture's>"},
      {"model.experts.keep_groups", "<the preset's, else the architecture's>"},
      {"model.experts.group_top", "<the preset's, else the architecture's>"},
      {"model.experts.scale", "<the preset's, else the architecture's>"},
      {"model.experts.correction_bias", "<the preset's, else the architecture's>"},
      {"model.experts.bias_update_speed", "<the preset's, else the architecture's>"},
      {"model.experts.forced_balance", "<false>"},
      {"model.experts.drop_above", "<0>"},
      {"model.experts.drop_policy", "<\"probs\">"},
      {"model.mtp.depths", "<0>"},
      {"model.mtp.loss_weight", "0.3"},
      {"model.tied_head", "<the preset's, else the architecture's>"},
      {"model.init_std", "<0.02>"},
      {"model.other_tokenizer", "false"},
      {"model.dropout", "<none>"},
      {"model.hidden_dropout", "<`dropout`, else that of `from`, else 0>"},
      {"model.attention_dropout", "<`dropout`, else that of `from`, else 0>"},
      {"model.embedding_dropout", "<`dropout`, else that of `from`, else 0>"},

      {"mesh.dp", "1"},
      {"mesh.tp", "1"},
      {"mesh.pp", "1"},
      {"mesh.cp", "1"},
      {"mesh.ep", "1"},
      {"mesh.etp", "0"},
      {"mesh.expert_capacity", "0"},
      {"mesh.expert_dispatch", "\"auto\""},
      {"mesh.zero", "0"},
      {"mesh.zero_ranks", "0"},
      {"mesh.context", "\"ring\""},
      {"mesh.ring_order", "\"auto\""},
      {"mesh.overlap", "true"},
      {"mesh.bucket_mb", "8"},
      {"mesh.sequence_parallel", "false"},

      {"pipeline.schedule", "\"1f1b\""},
      {"pipeline.chunks", "1"},
      {"pipeline.file", "\"\""},
      {"pipeline.layers", "\"\""},
      {"pipeline.deferred_gradients", "\"all\""},

      {"data.train", "[\"stories\"]"},
      {"data.weights", "[]"},
      {"data.validation", "[]"},
      {"data.validation_fraction", "0.05"},
      {"data.validation_split", "\"documents\""},
      {"data.format", "\"auto\""},
      {"data.text_key", "\"text\""},
      {"data.on_error", "\"stop\""},
      {"data.tokenizer", "\"\""},
      {"data.tokenizer_vocab", "4096"},
      {"data.stories_bytes", "4000000"},
      {"data.mask_documents", "false"},
      {"data.end_of_text", "<the tokenizer's>"},
      {"data.cache", "\".cache\""},

      {"batch.sequences", "8"},
      {"batch.microbatch", "1"},
      {"batch.seq", "1024"},

      {"optimizer.name", "\"adamw\""},
      {"optimizer.lr", "0.0003"},
      {"optimizer.beta1", "<the optimizer's own>"},
      {"optimizer.beta2", "<the optimizer's own>"},
      {"optimizer.eps", "<the optimizer's own>"},
      {"optimizer.weight_decay", "<the optimizer's own>"},
      {"optimizer.state", "<the optimizer's own>"},
      {"optimizer.momentum", "<the optimizer's own>"},
      {"optimizer.nesterov", "<the optimizer's own>"},
      {"optimizer.beta2_decay", "<the optimizer's own>"},
      {"optimizer.update_clip", "<the optimizer's own>"},
      {"optimizer.min_rms", "<the optimizer's own>"},
      {"optimizer.ns_steps", "<the optimizer's own>"},
      {"optimizer.adjust_lr", "<the optimizer's own>"},
      {"optimizer.adamw_lr_ratio", "<the optimizer's own>"},
      {"optimizer.min_lr", "0"},
      {"optimizer.clip", "1"},
      {"optimizer.schedule", "\"cosine\""},
      {"optimizer.warmup", "0"},
      {"optimizer.decay", "0"},
      {"optimizer.z_loss", "0"},

      {"train.steps", "100"},
      {"train.seed", "1"},
      {"train.threads", "0"},
      {"train.recompute", "\"none\""},
      {"train.expert_gradients", "\"f32\""},
      {"train.master_weights", "\"f32\""},
      {"train.loss_scale.initial", "<65536 where `train.precision` is fp16, else 0>"},
      {"train.loss_scale.growth_interval", "2000"},
      {"train.loss_scale.growth_factor", "2"},
      {"train.loss_scale.backoff", "0.5"},
      {"train.loss_scale.minimum", "1"},
      {"train.precision", "\"auto\""},
      {"train.fp8_skip", "0"},
      {"train.deterministic", "false"},
      {"train.reproducible", "\"none\""},
      {"train.timeout_s", "0"},
      {"train.non_finite_steps", "3"},
      {"train.spike.action", "\"none\""},
      {"train.spike.window", "100"},
      {"train.spike.threshold", "10"},
      {"train.spike.most_skips", "10"},
      {"train.spike.rewind_steps", "100"},
      {"train.spike.skip_steps", "200"},
      {"train.spike.most_rewinds", "10"},
      {"train.spike.rate_factor", "0.5"},
      {"train.spike.rate_steps", "100"},
      {"train.check_replicas_every", "100"},
      {"train.check_gemms", "0"},
      {"train.check_collectives", "0"},
      {"train.check_microbatch_every", "0"},
      {"train.check_memory", "<true on the CPU, false on a GPU>"},
      {"train.log_every", "10"},
      {"train.eval_every", "100"},
      {"train.eval_sequences", "64"},

      {"offload.optimizer", "false"},
      {"offload.weights", "false"},
      {"offload.working_weights", "false"},
      {"offload.activations", "\"none\""},
      {"offload.to", "\"host\""},
      {"offload.path", "\"\""},

      {"checkpoint.every", "0"},
      {"checkpoint.at_end", "true"},
      {"checkpoint.keep", "3"},
      {"checkpoint.keep_every", "0"},
      {"checkpoint.keep_best", "0"},
      {"checkpoint.dtype", "\"f32\""},
      {"checkpoint.accept_changed", "[]"},
      {"checkpoint.background", "true"},
      {"checkpoint.local_every", "0"},
      {"checkpoint.local_dir", "\"/dev/shm\""},
      {"checkpoint.replication", "true"},
      {"checkpoint.replication_jump", "0"},
      {"checkpoint.resume", "\"auto\""},

      {"log.on_event", "\"\""},
      {"log.tensor_stats_every", "0"},
      {"log.tensor_stats_format", "\"auto\""},
      {"log.grad_noise_scale", "false"},
      {"log.profile_every", "0"},
      {"log.tensorboard", "false"},
      {"log.prometheus", "\"\""},
  };
  return table;
}

std::string default_of(const Key& key) {
  return key.unset.empty() ? toml_text(key.get(RunConfig{})) : fmt::format("<{}>", key.unset);
}

TEST(Defaults, AreTheOnesWrittenHere) {
  for (const Key& key : schema()) {
    auto found = defaults().find(key.name);
    ASSERT_NE(found, defaults().end()) << key.name << " is not in the table of this test: add it, with its default "
                                       << default_of(key);
    EXPECT_EQ(default_of(key), found->second)
        << key.name
        << ": a changed default changes every run that does not set it. If that is meant, change the table too.";
  }
}

// Values of an optimizer where the config gives none, as a loaded config has them.
TEST(Defaults, OfOptimizers) {
  const std::map<std::string_view, std::string_view> written{
      {"adamw", "beta1=0.9 beta2=0.95 eps=1e-08 weight_decay=0.1 state=\"f32\""},
      {"sgd", "weight_decay=0 momentum=0.9 nesterov=false"},
      {"lion", "beta1=0.9 beta2=0.99 weight_decay=0.1"},
      {"adafactor", "eps=1.1920928955078125e-07 weight_decay=0 beta2_decay=-0.8 update_clip=1 min_rms=0.001"},
      {"muon",
       "beta1=0.9 beta2=0.95 eps=1e-08 weight_decay=0.1 momentum=0.95 nesterov=true ns_steps=5 adjust_lr=\"original\" "
       "adamw_lr_ratio=1"}};
  for (const OptimizerDef* def : all_optimizers()) {
    std::vector<std::string> overrides{"model.preset=gpt2", fmt::format("optimizer.name={}", def->name)};
    RunConfig run = load_config("", overrides);
    std::string found;
    for (const Key& key : schema()) {
      std::string_view name = key.name.substr(key.name.find('.') + 1);
      if (key.unset != "the optimizer's own" || std::holds_alternative<std::monostate>(key.get(run))) continue;
      found += fmt::format("{}{}={}", found.empty() ? "" : " ", name, toml_text(key.get(run)));
    }
    ASSERT_TRUE(written.contains(def->name)) << def->name << " is not in the table of this test: " << found;
    EXPECT_EQ(found, written.at(def->name));
  }
}

// Every word of the key means something to the op, of a matrix of 8 rows and 2 columns and of its transpose.
TEST(Defaults, AdjustmentsOfMuonsLearningRate) {
  const std::map<std::string_view, std::pair<double, double>> written{
      {"original", {2, 1}},
      {"match_rms_adamw", {0.2 * std::sqrt(8), 0.2 * std::sqrt(8)}},
      {"spectral_unclamped", {2, 0.5}}};
  std::vector<std::string_view> words = words_of(*find_key("optimizer.adjust_lr"));
  EXPECT_EQ(words.size(), written.size());
  for (std::string_view word : words) {
    Attrs attrs{{"adjust", std::string(word)}};
    EXPECT_DOUBLE_EQ(muon_factor(attrs, 8, 2), written.at(word).first) << word;
    EXPECT_DOUBLE_EQ(muon_factor(attrs, 2, 8), written.at(word).second) << word;
  }
}

TEST(Defaults, ASettingThatTheOptimizerDoesNotReadIsRefused) {
  std::vector<std::string> overrides{"model.preset=gpt2", "optimizer.name=sgd", "optimizer.beta1=0.8"};
  try {
    load_config("", overrides);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "command line: optimizer.beta1=0.8: sgd does not read beta1; expected one of its settings: "
                 "weight_decay, momentum, nesterov");
  }
}

ModelSpec resolved(std::vector<std::string> overrides) {
  for (const char* size : {"model.layers=2", "model.hidden=512", "model.heads=8"}) overrides.emplace_back(size);
  return resolve_model(load_config("", overrides));
}

// By name, how a field of ModelSpec is set from tests/fixtures/architectures.
const auto& setters() {
  using json = nlohmann::json;
  static const std::map<std::string, void (*)(ModelSpec&, const json&)> table{
      {"kv_heads", [](ModelSpec& spec, const json& value) { spec.kv_heads = value; }},
      {"ffn", [](ModelSpec& spec, const json& value) { spec.ffn = value; }},
      {"norm_eps", [](ModelSpec& spec, const json& value) { spec.norm_eps = value; }},
      {"rotary_fraction", [](ModelSpec& spec, const json& value) { spec.rotary_fraction = value; }},
      {"activation", [](ModelSpec& spec,
                        const json& value) { spec.activation = value_of_word<Activation>(value.get<std::string>()); }},
      {"parallel_residual", [](ModelSpec& spec, const json& value) { spec.parallel_residual = value; }},
      {"no_rope_every", [](ModelSpec& spec, const json& value) { spec.no_rope_every = value; }},
      {"experts",
       [](ModelSpec& spec, const json& value) {
         spec.experts = ExpertsSpec{.count = value["count"],
                                    .per_token = value["per_token"],
                                    .ffn = value["ffn"],
                                    .normalise = value["normalise"],
                                    .balance_loss = value["balance_loss"],
                                    .every = 1,
                                    .dense_layers = {},
                                    .dense_first = value.value("dense_first", int64_t{0}),
                                    .shared_ffn = value.value("shared_ffn", int64_t{0}),
                                    .score = *value_of_word<ExpertScore>(value.value("score", "softmax")),
                                    .groups = value.value("groups", int64_t{1}),
                                    .keep_groups = value.value("keep_groups", int64_t{1}),
                                    .group_top = value.value("group_top", int64_t{1}),
                                    .scale = value.value("scale", 1.0),
                                    .correction_bias = value.value("correction_bias", false),
                                    .bias_update_speed = value.value("bias_update_speed", 0.0),
                                    .swiglu_limit = value.value("swiglu_limit", 0.0)};
       }},
      {"head_dim", [](ModelSpec& spec, const json& value) { spec.head_dim = value; }},
      {"latent",
       [](ModelSpec& spec, const json& value) {
         spec.latent = LatentSpec{.q_rank = value["q_rank"],
                                  .kv_rank = value["kv_rank"],
                                  .rope_dim = value["rope_dim"],
                                  .value_dim = value["value_dim"]};
       }},
      {"tied_head", [](ModelSpec& spec, const json& value) { spec.tied_head = value; }},
      {"biases_of_attention", [](ModelSpec& spec, const json& value) { spec.qkv_bias = spec.out_bias = value; }},
      {"qk_norm", [](ModelSpec& spec, const json& value) { spec.qk_norm = value; }},
      {"attention_chunk", [](ModelSpec& spec, const json& value) { spec.attention_chunk = value; }},
      {"temperature_positions", [](ModelSpec& spec, const json& value) { spec.temperature_positions = value; }},
      {"window", [](ModelSpec& spec, const json& value) { spec.window = value; }},
      {"full_attention_every", [](ModelSpec& spec, const json& value) { spec.full_attention_every = value; }},
  };
  return table;
}

// The values of "the preset's, else …" where there is no preset.
TEST(Defaults, OfModelFieldsByArchitecture) {
  ModelSpec plain{.layers = 2,
                  .hidden = 512,
                  .heads = 8,
                  .kv_heads = 8,
                  .head_dim = 64,
                  .ffn = 2048,
                  .vocab = 0,
                  .max_seq = 96,
                  .norm_eps = 1e-5,
                  .rope_theta = 10000,
                  .rope_scaling = {},
                  .rotary_fraction = 1,
                  .activation = {},
                  .norm_placement = NormPlacement::pre,
                  .embedding_width = 0,
                  .qkv_bias = false,
                  .out_bias = false,
                  .mlp_bias = false,
                  .qk_norm = false,
                  .window = 0,
                  .full_attention_first = 0,
                  .full_attention_every = 0,
                  .attention_chunk = 0,
                  .temperature_positions = 0,
                  .temperature_strength = 0.1,
                  .inverse_layer_scaling = false,
                  .parallel_residual = false,
                  .no_rope_every = 0,
                  .embedding_multiplier = 1,
                  .attention_multiplier = 0,
                  .residual_multiplier = 1,
                  .logits_scaling = 1,
                  .latent = {},
                  .experts = {},
                  .tied_head = true,
                  .init_std = 0.02,
                  .bos_token = {},
                  .eos_tokens = {}};
  for (const ModelDef* def : all_models()) {
    ModelSpec expected = plain;
    expected.architecture = def->name;
    nlohmann::json differs = architecture_data(def->name)["defaults"];
    for (const auto& [field, value] : differs.items()) {
      ASSERT_TRUE(setters().contains(field)) << field;
      setters().at(field)(expected, value);
    }
    ModelSpec spec = resolved({fmt::format("model.architecture={}", def->name), "batch.seq=96"});
    EXPECT_EQ(spec.kv_heads, expected.kv_heads) << def->name;
    EXPECT_EQ(spec.ffn, expected.ffn) << def->name;
    EXPECT_EQ(spec.tied_head, expected.tied_head) << def->name;
    EXPECT_EQ(spec.rotary_fraction, expected.rotary_fraction) << def->name;
    EXPECT_TRUE(spec == expected) << def->name;
  }
  // Beside a preset another architecture brings its own activation, or none.
  EXPECT_EQ(resolved({"model.preset=gpt2", "model.architecture=opt"}).activation, Activation::relu);
  EXPECT_EQ(resolved({"model.preset=gpt2", "model.architecture=llama"}).activation, std::nullopt);
  ModelSpec stretched = resolved({"model.architecture=llama", "model.rope_scaling.factor=2"});
  EXPECT_EQ(stretched.rope_scaling,
            (RopeScaling{.factor = 2, .original_max_positions = 8192, .low_freq_factor = 1, .high_freq_factor = 4}));
}

TEST(Defaults, EveryKeyOfTheTableIsThere) {
  for (const auto& [name, text] : defaults())
    EXPECT_NE(find_key(name), nullptr) << name << " is no longer a key: remove it here";
}

}  // namespace
}  // namespace sextant
