#include "models/model_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

#include "models/architectures.h"
#include "models/field_row.h"
#include "models/models.h"

namespace sextant {

namespace {

bool has_rope(const ModelSpec& spec) {
  return model_of(spec).positions == Positions::rotary;
}

bool has_rope_type(const ModelSpec& spec, std::initializer_list<RopeType> types) {
  return spec.rope_scaling && std::ranges::count(types, spec.rope_scaling->type) > 0;
}

std::string rope_type_text(const ModelSpec& spec) {
  return spec.rope_scaling ? std::string(word_of(spec.rope_scaling->type)) : "none";
}

bool has_grouped_experts(const ModelSpec& spec) {
  return spec.experts && spec.experts->keep_groups < spec.experts->groups;
}

// "layers 0, 2, 3": those for which it holds.
template <class Holds>
std::string layers_with(const ModelSpec& spec, const Holds& holds) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    if (holds(layer)) layers.push_back(layer);
  if (static_cast<int64_t>(layers.size()) == spec.layers) return "all layers";
  return layers.empty() ? "no layer" : fmt::format("layers {}", fmt::join(layers, ", "));
}

std::string layers_with_experts(const ModelSpec& spec) {
  if (!spec.experts) return "unused";
  return layers_with(spec, [&](int64_t layer) { return layer_has_experts(spec, layer); });
}

bool some_layer_has_window(const ModelSpec& spec) {
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    if (window_of_layer(spec, layer) > 0) return true;
  return false;
}

std::string layers_with_window(const ModelSpec& spec) {
  auto has_window = [&](int64_t layer) { return window_of_layer(spec, layer) > 0; };
  return fmt::format("(a window in {})", layers_with(spec, has_window));
}

std::string activation_text(const ModelSpec& spec) {
  return model_of(spec).takes("activation") ? std::string(word_of(activation_of(spec))) : "unused";
}

std::string no_rope_every_text(const ModelSpec& spec) {
  return field_row::text_of(spec.no_rope_every > spec.layers ? 0 : spec.no_rope_every);
}

std::string attention_multiplier_text(const ModelSpec& spec) {
  double own = 1 / std::sqrt(static_cast<double>(spec.head_dim));
  return field_row::text_of(spec.attention_multiplier == 0 ? own : spec.attention_multiplier);
}

constexpr std::span<const ChoiceText> kRopeTypesByNumbers = std::span(kTextsOf<kRopeTypes>).first(4);
static_assert(kRopeTypes[3].by_numbers && !kRopeTypes[4].by_numbers && std::size(kRopeTypes) == 5);

constexpr std::string_view kOfHeadDim[] = {"hidden", "heads"};

constexpr ModelPart kParts[] = {
    {.name = "rope_scaling",
     .lacking = "does not scale its RoPE",
     .of_rope = true,
     .is_used = [](const ModelSpec& spec) { return spec.rope_scaling.has_value(); }},
    {.name = "latent",
     .lacking = "has no latent attention",
     .is_used = [](const ModelSpec& spec) { return spec.latent.has_value(); }},
};

constexpr ModelField kModelFields[] = {
    field<&ModelSpec::architecture>(
        {.name = "architecture",
         .setting = {.choices = kArchitectures},
         .help = "The family of the model; `sextant list models` lists them with the options and defaults of each.",
         .unset = "the preset's"}),
    field<&ModelSpec::layers>({.name = "layers",
                               .setting = {.range = from_to(1, kMaxLayers)},
                               .help = "Transformer blocks.",
                               .unset = "the preset's"}),
    field<&ModelSpec::hidden>({.name = "hidden",
                               .setting = {.range = from_to(1, kMaxHidden)},
                               .help = "Width of the residual stream.",
                               .unset = "the preset's"}),
    field<&ModelSpec::heads>({.name = "heads",
                              .setting = {.range = from_to(1, kMaxHeads)},
                              .help = "Query heads; must divide `hidden`.",
                              .unset = "the preset's"}),
    field<&ModelSpec::kv_heads>({.name = "kv_heads",
                                 .setting = {.range = from_to(1, kMaxHeads)},
                                 .help = "Key and value heads; must divide `heads`. Fewer than `heads` in "
                                         "architectures with grouped-query attention only.",
                                 .unset = "the preset's, else the architecture's, else `heads`"}),
    field<&ModelSpec::head_dim>({.name = "head_dim",
                                 .setting = {.range = from_to(1, kMaxHidden)},
                                 .help = "Width of a head; even where RoPE turns all of it. Other than the default in "
                                         "architectures with grouped-query attention only.",
                                 .unset = "the preset's, else `hidden` / `heads`",
                                 .follows_from = kOfHeadDim}),
    field<&ModelSpec::ffn>({.name = "ffn",
                            .setting = {.range = from_to(1, kMaxFfn)},
                            .help = "Width of the MLP; some architectures support only 4 `hidden`.",
                            .unset = "the preset's, else the architecture's multiple of `hidden`"}),
    field<&ModelSpec::vocab>({.name = "vocab",
                              .setting = {.range = from_to(0, kMaxVocab)},
                              .help = "Rows of the embedding. 0 = as many as the tokenizer has tokens.",
                              .unset = "the preset's, else the tokenizer's"}),
    field<&ModelSpec::max_seq>({.name = "max_seq",
                                .beside_weights = BesideWeights::free,
                                .setting = {.range = from_to(1, kMaxSeq)},
                                .help = "Positions the model may see.",
                                .unset = "the preset's, else `batch.seq`"}),
    field<&ModelSpec::norm_eps>({.name = "norm_eps",
                                 .beside_weights = BesideWeights::free,
                                 .setting = {.range = above(0)},
                                 .help = "Added to the variance in every norm.",
                                 .unset = "the preset's, else 1e-05"}),
    field<&ModelSpec::rope_theta>({.name = "rope_theta",
                                   .beside_weights = BesideWeights::free,
                                   .setting = {.range = above(0)},
                                   .help = "Base of the rotary frequencies, in architectures with RoPE.",
                                   .unset = "the preset's, else 10000",
                                   .counts = has_rope}),
    field<&RopeScaling::type>(
        {.name = "rope_scaling.type",
         .beside_weights = BesideWeights::free,
         .setting = {.choices = kRopeTypesByNumbers},
         .help =
             "How rotary frequencies are changed, in the words of Hugging Face's `rope_type`; an option of some "
             "architectures. `longrope` comes with a directory (`model.from`) only, for it has a number per frequency.",
         .unset = "the preset's, else llama3",
         .text = rope_type_text}),
    field<&RopeScaling::factor>({.name = "rope_scaling.factor",
                                 .beside_weights = BesideWeights::free,
                                 .setting = {.range = at_least(1)},
                                 .help = "How much rotary frequencies are divided by: all of them (`linear`), or the "
                                         "low ones (`llama3`, `yarn`). 1 = no scaling.",
                                 .unset = "the preset's, else no scaling"}),
    field<&RopeScaling::low_freq_factor>(
        {.name = "rope_scaling.low_freq_factor",
         .beside_weights = BesideWeights::free,
         .setting = {.range = above(0)},
         .help = "With `llama3`: wavelengths longer than `original_max_positions` / this are stretched fully.",
         .unset = "the preset's, else 1",
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::llama3}); }}),
    field<&RopeScaling::high_freq_factor>(
        {.name = "rope_scaling.high_freq_factor",
         .beside_weights = BesideWeights::free,
         .setting = {.range = above(0)},
         .help = "With `llama3`: wavelengths shorter than `original_max_positions` / this are left alone.",
         .unset = "the preset's, else 4",
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::llama3}); }}),
    field<&RopeScaling::beta_fast>(
        {.name = "rope_scaling.beta_fast",
         .beside_weights = BesideWeights::free,
         .setting = {.range = above(0)},
         .help = "With `yarn`: frequencies that turn at least so often over `original_max_positions` are left alone.",
         .unset = "the preset's, else 32",
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::yarn}); }}),
    field<&RopeScaling::beta_slow>(
        {.name = "rope_scaling.beta_slow",
         .beside_weights = BesideWeights::free,
         .setting = {.range = above(0)},
         .help = "With `yarn`: frequencies that turn no more often than this are divided fully.",
         .unset = "the preset's, else 1",
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::yarn}); }}),
    field<&RopeScaling::attention_factor>({.name = "rope_scaling.attention_factor",
                                           .beside_weights = BesideWeights::free,
                                           .setting = {.range = above(0)},
                                           .help = "With `yarn`: what cosines and sines are multiplied by.",
                                           .unset = "the preset's, else 0.1·ln(`factor`) + 1",
                                           .counts =
                                               [](const ModelSpec& s) {
                                                 return has_rope_type(s, {RopeType::yarn, RopeType::longrope});
                                               }}),
    field<&RopeScaling::mscale_all_dim>(
        {.name = "rope_scaling.mscale_all_dim",
         .beside_weights = BesideWeights::free,
         .setting = {.range = at_least(0)},
         .help = "The scores of attention are multiplied by (0.1·this·ln(`factor`) + 1)², as in DeepSeek's models; an "
                 "option of some architectures.",
         .unset = "the preset's, else 0",
         .lacking = "does not scale attention's scores by its RoPE",
         .of_rope = true,
         .counts = [](const ModelSpec& s) { return s.rope_scaling && s.rope_scaling->mscale_all_dim != 0; }}),
    field<&RopeScaling::original_max_positions>(
        {.name = "rope_scaling.original_max_positions",
         .beside_weights = BesideWeights::free,
         .setting = {.range = from_to(1, kMaxSeq)},
         .help = "Positions the model saw before it was stretched.",
         .unset = "the preset's, else 8192",
         .counts =
             [](const ModelSpec& s) {
               return has_rope_type(s, {RopeType::llama3, RopeType::yarn, RopeType::longrope});
             }}),
    field<&RopeScaling::truncate>({.name = "rope_scaling.truncate",
                                   .beside_weights = BesideWeights::free,
                                   .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::yarn}); }}),
    field<&RopeScaling::short_factor>(
        {.name = "rope_scaling.short_factor",
         .beside_weights = BesideWeights::free,
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::longrope}); }}),
    field<&RopeScaling::long_factor>(
        {.name = "rope_scaling.long_factor",
         .beside_weights = BesideWeights::free,
         .counts = [](const ModelSpec& s) { return has_rope_type(s, {RopeType::longrope}); }}),
    field<&ModelSpec::rotary_fraction>(
        {.name = "rotary_fraction",
         .setting = {.range = above_to(0, 1)},
         .help = "The part of each head that RoPE turns; an option of some architectures.",
         .unset = "the preset's, else the architecture's, else 1",
         .lacking = "turns whole heads",
         .of_rope = true,
         .counts = [](const ModelSpec& s) { return has_rope(s) && !s.latent; }}),
    field<&ModelSpec::activation>(
        {.name = "activation",
         .help = "The function inside an MLP without a gate; an option of some architectures.",
         .unset = "the preset's, else the architecture's",
         .lacking = "has no choice of activation",
         .text = activation_text}),
    field<&ModelSpec::norm_placement>({.name = "norm_placement",
                                       .help = "Where the norms of a block stand; an option of some architectures.",
                                       .unset = "the preset's, else pre",
                                       .lacking = "has no choice of where norms stand"}),
    field<&ModelSpec::embedding_width>({.name = "embedding_width",
                                        .setting = {.range = from_to(0, kMaxHidden)},
                                        .help = "Width of the embedding and of the head where it is not `hidden`: "
                                                "matrices project to `hidden` and back, as in OPT-350M; an "
                                                "option of some architectures. 0 = `hidden`.",
                                        .unset = "the preset's, else 0",
                                        .lacking = "has embeddings as wide as hidden"}),
    field<&ModelSpec::qkv_bias>(
        {.name = "qkv_bias",
         .help = "Whether q, k and v have biases, as in Qwen 2; an option of some architectures.",
         .unset = "the preset's, else false",
         .lacking = "has no option of biases"}),
    field<&ModelSpec::out_bias>({.name = "out_bias",
                                 .help = "Whether the output of attention has a bias (with `qkv_bias` this is Hugging "
                                         "Face's `attention_bias`); an option of some architectures.",
                                 .unset = "the preset's, else false",
                                 .lacking = "has no option of a bias of attention's output"}),
    field<&ModelSpec::mlp_bias>({.name = "mlp_bias",
                                 .help = "Whether the MLP has biases; an option of some architectures.",
                                 .unset = "the preset's, else false",
                                 .lacking = "has no option of biases of the MLP"}),
    field<&ModelSpec::qk_norm>(
        {.name = "qk_norm",
         .help =
             "Whether every head of q and k goes through an RMSNorm, as in Qwen 3; an option of some architectures.",
         .unset = "the preset's, else false",
         .lacking = "has no norm of heads"}),
    field<&ModelSpec::window>({.name = "window",
                               .setting = {.range = from_to(0, kMaxSeq)},
                               .help = "How many tokens a token of the model sees, itself among them, as in Mistral 7B "
                                       "v0.1; an option of some architectures. "
                                       "0 = all.",
                               .unset = "the preset's, else 0",
                               .lacking = "has no window",
                               .counts = [](const ModelSpec& s) { return s.window > 0 && some_layer_has_window(s); }}),
    field<&ModelSpec::full_attention_first>(
        {.name = "full_attention_first",
         .setting = {.range = from_to(0, kMaxLayers)},
         .help =
             "Of a model with a `window`: how many layers in front see all tokens, as Qwen 2's `max_window_layers`.",
         .unset = "the preset's, else 0",
         .lacking = "has no window",
         .compared_as = "full_attention_every"}),
    field<&ModelSpec::full_attention_every>(
        {.name = "full_attention_every",
         .setting = {.range = from_to(0, kMaxLayers)},
         .help =
             "Of a model with a `window`: every so many layers one sees all tokens, as in Gemma 2 (2). 0 = none does.",
         .unset = "the preset's, else 0",
         .lacking = "has no window",
         .is_used = [](const ModelSpec& s) { return s.full_attention_every > 0 || !s.full_attention_layers.empty(); },
         .text = layers_with_window}),
    field<&ModelSpec::full_attention_layers>({.name = "full_attention_layers", .compared_as = "full_attention_every"}),
    field<&ModelSpec::attention_chunk>(
        {.name = "attention_chunk",
         .setting = {.range = from_to(0, kMaxSeq)},
         .help = "In layers with RoPE sequences are cut into chunks of so many positions, and a token sees those of "
                 "its own chunk "
                 "(`attention_chunk_size`), as in Llama 4; an option of some architectures. 0 = all.",
         .unset = "the preset's, else the architecture's, else 0",
         .lacking = "has no chunks of attention"}),
    field<&ModelSpec::temperature_positions>(
        {.name = "temperature_positions",
         .setting = {.range = from_to(0, kMaxSeq)},
         .help = "In layers without RoPE queries are multiplied by 1 + `temperature_strength`·ln(1 + s) behind s times "
                 "so many positions "
                 "(`floor_scale`), as in Llama 4; an option of some architectures. 0 = never.",
         .unset = "the preset's, else the architecture's, else 0",
         .lacking = "has no temperature of attention"}),
    field<&ModelSpec::temperature_strength>({.name = "temperature_strength",
                                             .setting = {.range = above(0)},
                                             .help = "Of that (`attn_scale`).",
                                             .unset = "the preset's, else 0.1",
                                             .lacking = "has no temperature of attention",
                                             .option = "temperature_positions",
                                             .counts = [](const ModelSpec& s) { return s.temperature_positions > 0; }}),
    field<&ModelSpec::inverse_layer_scaling>(
        {.name = "inverse_layer_scaling",
         .help = "Whether the scores of attention are divided by the number of their layer, from 1, as GPT-2's "
                 "`scale_attn_by_inverse_layer_idx`; an option of some architectures.",
         .unset = "the preset's, else false",
         .lacking = "does not scale by layers"}),
    field<&ModelSpec::parallel_residual>({.name = "parallel_residual",
                                          .help = "Whether attention and MLP of a block read the same input and are "
                                                  "added together, as GPT-NeoX's `use_parallel_residual`; an "
                                                  "option of some architectures.",
                                          .unset = "the preset's, else the architecture's",
                                          .lacking = "has no choice of parallel residuals"}),
    field<&ModelSpec::no_rope_every>(
        {.name = "no_rope_every",
         .setting = {.range = from_to(0, kMaxLayers)},
         .help =
             "Every so many layers one has no RoPE, as in SmolLM3; an option of some architectures. 0 = all have it.",
         .unset = "the preset's, else the architecture's, else 0",
         .lacking = "has RoPE in all layers",
         .of_rope = true,
         .text = no_rope_every_text}),
    field<&ModelSpec::embedding_multiplier>(
        {.name = "embedding_multiplier",
         .setting = {.range = above(0)},
         .help = "What embeddings are multiplied by, as in Granite; an option of some architectures.",
         .unset = "the preset's, else 1",
         .lacking = "has no multiplier of embeddings"}),
    field<&ModelSpec::attention_multiplier>({.name = "attention_multiplier",
                                             .setting = {.range = at_least(0)},
                                             .help = "What the scores of attention are multiplied by, as in Granite; "
                                                     "an option of some architectures. 0 = 1 / sqrt(`head_dim`).",
                                             .unset = "the preset's, else 0",
                                             .lacking = "has no multiplier of attention",
                                             .text = attention_multiplier_text}),
    field<&ModelSpec::residual_multiplier>({.name = "residual_multiplier",
                                            .setting = {.range = above(0)},
                                            .help = "What attention and MLP are multiplied by before they are added, "
                                                    "as in Granite; an option of some architectures.",
                                            .unset = "the preset's, else 1",
                                            .lacking = "has no multiplier of residuals"}),
    field<&ModelSpec::logits_scaling>(
        {.name = "logits_scaling",
         .setting = {.range = above(0)},
         .help = "What logits are divided by, as in Granite; an option of some architectures.",
         .unset = "the preset's, else 1",
         .lacking = "has no scaling of logits"}),
    field<&LatentSpec::q_rank>({.name = "latent.q_rank",
                                .setting = {.range = from_to(0, kMaxHidden)},
                                .help = "In architectures with latent attention: width of the narrow rows that queries "
                                        "are made from (`q_lora_rank`). 0 = queries come "
                                        "from the whole rows, as in DeepSeek-V2-Lite.",
                                .unset = "the preset's, else the architecture's"}),
    field<&LatentSpec::kv_rank>(
        {.name = "latent.kv_rank",
         .setting = {.range = from_to(1, kMaxHidden)},
         .help = "Width of the narrow rows that keys and values are made from (`kv_lora_rank`).",
         .unset = "the preset's, else the architecture's"}),
    field<&LatentSpec::rope_dim>({.name = "latent.rope_dim",
                                  .setting = {.range = from_to(2, kMaxHidden)},
                                  .help = "How many of the `head_dim` elements of queries and keys RoPE turns: the "
                                          "last ones, which all heads of keys share "
                                          "(`qk_rope_head_dim`; `head_dim` is that and `qk_nope_head_dim`).",
                                  .unset = "the preset's, else the architecture's"}),
    field<&LatentSpec::value_dim>({.name = "latent.value_dim",
                                   .setting = {.range = from_to(1, kMaxHidden)},
                                   .help = "Width of a head of values (`v_head_dim`).",
                                   .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::count>({.name = "experts.count",
                                .setting = {.range = from_to(1, kMaxExperts)},
                                .help = "Experts in place of an MLP, in architectures that have them.",
                                .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::per_token>({.name = "experts.per_token",
                                    .setting = {.range = from_to(1, kMaxExperts)},
                                    .help = "Experts that each token goes through.",
                                    .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::ffn>({.name = "experts.ffn",
                              .setting = {.range = from_to(1, kMaxFfn)},
                              .help = "Width of one expert; an option of some architectures.",
                              .unset = "the preset's, else `ffn`",
                              .lacking = "has experts as wide as its ffn",
                              .is_used = [](const ModelSpec& s) { return s.experts && s.experts->ffn != s.ffn; }}),
    field<&ExpertsSpec::normalise>(
        {.name = "experts.normalise",
         .help = "Whether the weights of a token's experts are made to sum to 1; an option of some architectures.",
         .unset = "the preset's, else the architecture's",
         .lacking = "makes the weights of a token's experts sum to 1"}),
    field<&ExpertsSpec::balance_loss>(
        {.name = "experts.balance_loss",
         .role = FieldRole::training,
         .beside_weights = BesideWeights::free,
         .setting = {.range = at_least(0)},
         .help =
             "Coefficient of the loss that balances how many tokens experts get (`router_aux_loss_coef`). 0 = none.",
         .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::balance_scope>(
        {.name = "experts.balance_scope",
         .role = FieldRole::training,
         .beside_weights = BesideWeights::free,
         .help = "Over what that loss takes its means; of `layer` and `sequence` the sum over layers is taken.",
         .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::z_loss>({.name = "experts.z_loss",
                                 .role = FieldRole::training,
                                 .beside_weights = BesideWeights::free,
                                 .setting = {.range = at_least(0)},
                                 .help = "Coefficient of the loss that keeps the router's logits small: the mean over "
                                         "tokens of their squared log-sum-exp, summed over "
                                         "layers. 0 = none.",
                                 .unset = "the preset's, else 0"}),
    field<&ExpertsSpec::every>(
        {.name = "experts.every",
         .setting = {.range = from_to(1, kMaxLayers)},
         .help =
             "Every so many layers one has experts, the others an MLP of width `ffn`; an option of some architectures.",
         .unset = "the preset's, else 1",
         .lacking = "has experts in every layer",
         .is_used =
             [](const ModelSpec& s) {
               return s.experts && (s.experts->every != 1 || !s.experts->dense_layers.empty());
             },
         .text = layers_with_experts}),
    field<&ExpertsSpec::dense_first>({.name = "experts.dense_first",
                                      .setting = {.range = from_to(0, kMaxLayers)},
                                      .help = "So many layers in front have an MLP of width `ffn` and no experts "
                                              "(`first_k_dense_replace`); an option of some architectures.",
                                      .unset = "the preset's, else the architecture's",
                                      .lacking = "has experts in its first layers too",
                                      .compared_as = "experts.every"}),
    field<&ExpertsSpec::dense_layers>({.name = "experts.dense_layers", .compared_as = "experts.every"}),
    field<&ExpertsSpec::shared_ffn>(
        {.name = "experts.shared_ffn",
         .setting = {.range = from_to(1, kMaxFfn)},
         .help = "Width of the expert that every token goes through, in architectures that have one.",
         .unset = "the preset's, else `ffn`",
         .zero_is_none = true,
         .lacking = "has no shared expert"}),
    field<&ExpertsSpec::score>({.name = "experts.score",
                                .help = "What the router makes of its logits; an option of some architectures.",
                                .unset = "the preset's, else the architecture's",
                                .lacking = "scores experts by softmax"}),
    field<&ExpertsSpec::groups>(
        {.name = "experts.groups",
         .setting = {.range = from_to(1, kMaxExperts)},
         .help = "Groups of equal size in which experts stand; an option of some architectures (`n_group`).",
         .unset = "the preset's, else the architecture's",
         .lacking = "has no groups of experts",
         .counts = has_grouped_experts}),
    field<&ExpertsSpec::keep_groups>(
        {.name = "experts.keep_groups",
         .setting = {.range = from_to(1, kMaxExperts)},
         .help = "Groups in which the experts of a token are chosen: the best ones (`topk_group`).",
         .unset = "the preset's, else the architecture's",
         .lacking = "has no groups of experts",
         .option = "experts.groups",
         .counts = has_grouped_experts}),
    field<&ExpertsSpec::group_top>(
        {.name = "experts.group_top",
         .setting = {.range = from_to(1, kMaxExperts)},
         .help = "A group is as good as the sum of its so many best scores: 1 in DeepSeek-V2, 2 in V3.",
         .unset = "the preset's, else the architecture's",
         .lacking = "has no groups of experts",
         .option = "experts.groups",
         .counts = has_grouped_experts}),
    field<&ExpertsSpec::scale>({.name = "experts.scale",
                                .setting = {.range = above(0)},
                                .help = "What the weights of a token's experts are multiplied by; an option of some "
                                        "architectures (`routed_scaling_factor`).",
                                .unset = "the preset's, else the architecture's",
                                .lacking = "does not scale the weights of experts"}),
    field<&ExpertsSpec::correction_bias>(
        {.name = "experts.correction_bias",
         .help = "Whether a bias is added to the scores by which experts are chosen, as in DeepSeek-V3; an option of "
                 "some architectures. "
                 "It balances experts without a loss: it is not trained, but follows their load.",
         .unset = "the preset's, else the architecture's",
         .lacking = "has no bias by which experts are chosen"}),
    field<&ExpertsSpec::bias_update_speed>({.name = "experts.bias_update_speed",
                                            .role = FieldRole::training,
                                            .beside_weights = BesideWeights::free,
                                            .setting = {.range = at_least(0)},
                                            .help = "With `correction_bias`: by how much an expert's bias is raised "
                                                    "after a step in which it got fewer tokens than the mean, "
                                                    "or lowered after one with more. 0 = it stays as it is.",
                                            .unset = "the preset's, else the architecture's"}),
    field<&ExpertsSpec::forced_balance>({.name = "experts.forced_balance",
                                         .role = FieldRole::training,
                                         .beside_weights = BesideWeights::free,
                                         .help = "For measuring speed: experts take turns whatever the router says, so "
                                                 "that each gets the same number of tokens. A model does "
                                                 "not learn to route so.",
                                         .unset = "false"}),
    field<&ExpertsSpec::drop_above>({.name = "experts.drop_above",
                                     .role = FieldRole::training,
                                     .beside_weights = BesideWeights::free,
                                     .setting = {.range = at_least(0)},
                                     .help = "An expert takes so many times its balanced load of each sequence, seq · "
                                             "per_token / count, rounded up; the others that ask for "
                                             "it are dropped: it adds nothing to those tokens. In training and "
                                             "evaluation; `dropped_rows` counts them. 0 = nothing is dropped.",
                                     .unset = "0"}),
    field<&ExpertsSpec::drop_policy>(
        {.name = "experts.drop_policy",
         .role = FieldRole::training,
         .beside_weights = BesideWeights::free,
         .help = "With `drop_above`, what an expert keeps.",
         .unset = "\"probs\"",
         .counts = [](const ModelSpec& s) { return s.experts && s.experts->drop_above > 0; }}),
    field<&ExpertsSpec::swiglu_limit>({.name = "experts.swiglu_limit", .lacking = "has no limit of SwiGLU"}),
    field<&ExpertsSpec::swiglu_alpha>(
        {.name = "experts.swiglu_alpha",
         .counts = [](const ModelSpec& s) { return s.experts && s.experts->swiglu_limit != 0; }}),
    field<&ModelSpec::mtp_depths>({.name = "mtp.depths",
                                   .beside_weights = BesideWeights::free,
                                   .setting = {.range = from_to(0, kMaxMtpDepths)},
                                   .help = "Multi-token prediction, as in DeepSeek-V3: how many tokens behind the next "
                                           "one each position predicts in training, each by a "
                                           "module with a layer of its own (`num_nextn_predict_layers`); an option of "
                                           "some architectures. Beside `model.from` it is "
                                           "that directory's number, or 0: its modules are then not read. Evaluation "
                                           "and generation do without the modules.",
                                   .unset = "0",
                                   .lacking = "has no multi-token prediction"}),
    field<&ModelSpec::tied_head>(
        {.name = "tied_head",
         .beside_weights = BesideWeights::free,
         .help = "Whether the output head is the embedding matrix. Beside `model.from` it decides about a directory "
                 "whose config.json "
                 "ties the head and whose weights hold another one: false uses it, true ignores it.",
         .unset = "the preset's, else the architecture's"}),
    field<&ModelSpec::init_std>({.name = "init_std",
                                 .role = FieldRole::training,
                                 .setting = {.range = at_least(0)},
                                 .help = "Standard deviation of the initial weights.",
                                 .unset = "0.02"}),
    field<&ModelSpec::padding_token>({.name = "padding_token", .role = FieldRole::training}),
    field<&ModelSpec::hf_type>({.name = "hf_type", .role = FieldRole::naming}),
    field<&ModelSpec::bos_token>({.name = "bos_token", .role = FieldRole::naming}),
    field<&ModelSpec::eos_tokens>({.name = "eos_tokens", .role = FieldRole::naming}),
};

}  // namespace

std::span<const ModelField> model_fields() {
  return kModelFields;
}

const ModelField* find_model_field(std::string_view name) {
  auto found = std::ranges::find(kModelFields, name, &ModelField::name);
  return found == std::end(kModelFields) ? nullptr : &*found;
}

std::span<const ModelPart> model_parts() {
  return kParts;
}

}  // namespace sextant
