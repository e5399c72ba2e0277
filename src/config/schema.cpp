#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/threads.h"
#include "base/toml_document.h"
#include "config/check.h"
#include "config/mesh_axes.h"
#include "models/architectures.h"
#include "models/spec.h"
#include "ops/muon.h"
#include "optim/optimizer.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

struct Words {
  std::string_view list;
};
struct Unset {
  std::string_view meaning;
};

// clang-format off
constexpr Words one_of(std::string_view list) { return {list}; }
constexpr Unset unset(std::string_view meaning) { return {meaning}; }
constexpr Range at_least(double low) { return {.low = low}; }
constexpr Range above(double low) { return {.low = low, .low_end = RangeEnd::excluded}; }
constexpr Range from_to(double low, double high) { return {.low = low, .high = high}; }
constexpr Range from_0_below_1() { return {.low = 0, .high = 1, .high_end = RangeEnd::excluded}; }

constexpr void add(Key& key, Words words) { key.words = words.list; }
constexpr void add(Key& key, Unset unset) { key.unset = unset.meaning; }
constexpr void add(Key& key, Range range) { key.range = range; }
constexpr void add(Key& key, std::string_view help) { key.help = help; }
constexpr void add(Key& key, Affects affects) { key.affects = affects; }
// clang-format on

template <class T>
struct Plain {
  using Type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using Type = T;
};

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Kind::flag;
  else if constexpr (std::is_same_v<T, int64_t>)
    return Kind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return Kind::number;
  else if constexpr (std::is_same_v<T, std::string>)
    return Kind::text;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return Kind::numbers;
  else
    return Kind::list;
}

// `Access` is a lambda without captures from the config to the field.
template <class Access, class... Parts>
constexpr Key make_key(std::string_view name, Access, Parts... parts) {
  using Field = std::remove_cvref_t<std::invoke_result_t<Access, RunConfig&>>;
  using Value = typename Plain<Field>::Type;
  Key key{.name = name, .kind = kind_of<Value>()};
  key.set = [](RunConfig& run, const ConfigValue& value) { Access{}(run) = std::get<Value>(value); };
  key.get = [](const RunConfig& run) -> ConfigValue {
    constexpr Access access;
    const Field& field = access(run);
    if constexpr (std::is_same_v<Field, Value>)
      return field;
    else
      return field ? ConfigValue(*field) : ConfigValue();
  };
  (add(key, parts), ...);
  return key;
}

// clang-format off
// A macro, so that a key's name and its field are one text and cannot disagree.
#define KEY(path, ...) make_key(#path, [](auto& run) -> auto& { return run.path; }, __VA_ARGS__)

constexpr double kMaxAxis = 1 << 20;
constexpr std::string_view kOwnDefault = "the optimizer's own";

constexpr Section kSections[] = {
    {"", "Keys of the whole run; they stand at the top of the file."},
    {"model", "What is trained: a preset, a Hugging Face directory, or an architecture with its sizes. Fields given "
              "beside a preset change it."},
    {"mesh", "How many ranks share the work, and along which axes. The product of `dp`, `tp`, `pp` and `cp` is the "
             "number of ranks.", Affects::execution},
    {"pipeline", "The order of work over pipeline stages, when `mesh.pp` is above 1; on one stage only "
                 "`schedule = \"combined-1f1b\"` counts.", Affects::execution},
    {"data", "What is read. Paths are relative to the directory the program is started in."},
    {"batch", "How many tokens a step sees."},
    {"optimizer", "How weights are updated."},
    {"train", "How long and how carefully."},
    {"offload", "What is kept in the host's memory in place of the device's. The same numbers come out.", Affects::execution},
    {"checkpoint", "What is saved, and what a run continues from.", Affects::execution},
    {"log", "What else is measured of a run, and who is told.", Affects::execution},
};

constexpr Key kKeysBeforeAxes[] = {
    KEY(name, Affects::execution, unset("the file's name without `.toml`"), "Names the run and the directory of its results."),
    KEY(device, Affects::execution, one_of("auto|cpu|cuda"), "Where to compute. `auto` takes the GPU when there is one."),

    KEY(model.preset, unset("none"), "A published model by name; `sextant list models` lists them."),
    KEY(model.from, unset("none"),
        "A Hugging Face directory to start from: its config.json, weights and tokenizer. Of the other keys only "
        "`max_seq`, `norm_eps`, `rope_*`, `experts.balance_loss`, `experts.balance_scope`, `experts.z_loss`, `experts.bias_update_speed`, `mtp.*` and the dropout rates may be given beside it, and `tied_head` where config.json ties the head. "
        "A dense model becomes one with experts by `architecture` and `experts.*` (docs/hugging-face.md)."),
    KEY(model.architecture, one_of(kArchitectures), unset("the preset's"),
        "The family of the model; `sextant list models` lists them with the options and defaults of each."),
    KEY(model.layers, from_to(1, kMaxLayers), unset("the preset's"), "Transformer blocks."),
    KEY(model.hidden, from_to(1, kMaxHidden), unset("the preset's"), "Width of the residual stream."),
    KEY(model.heads, from_to(1, kMaxHeads), unset("the preset's"), "Query heads; must divide `hidden`."),
    KEY(model.kv_heads, from_to(1, kMaxHeads), unset("the preset's, else the architecture's, else `heads`"),
        "Key and value heads; must divide `heads`. Fewer than `heads` in architectures with grouped-query attention only."),
    KEY(model.head_dim, from_to(1, kMaxHidden), unset("the preset's, else `hidden` / `heads`"),
        "Width of a head; even where RoPE turns all of it. Other than the default in architectures with grouped-query attention only."),
    KEY(model.ffn, from_to(1, kMaxFfn),
        unset("the preset's, else the architecture's multiple of `hidden`"),
        "Width of the MLP; some architectures support only 4 `hidden`."),
    KEY(model.vocab, from_to(0, kMaxVocab), unset("the preset's, else the tokenizer's"),
        "Rows of the embedding. 0 = as many as the tokenizer has tokens."),
    KEY(model.max_seq, from_to(1, kMaxSeq), unset("the preset's, else `batch.seq`"), "Positions the model may see."),
    KEY(model.norm_eps, above(0), unset("the preset's, else 1e-05"), "Added to the variance in every norm."),
    KEY(model.rope_theta, above(0), unset("the preset's, else 10000"), "Base of the rotary frequencies, in architectures with RoPE."),
    KEY(model.rope_scaling.type, one_of(kRopeTypesByNumbers), unset("the preset's, else llama3"),
        "How rotary frequencies are changed, in the words of Hugging Face's `rope_type`; an option of some architectures. "
        "`longrope` comes with a directory (`model.from`) only, for it has a number per frequency."),
    KEY(model.rope_scaling.factor, at_least(1), unset("the preset's, else no scaling"),
        "How much rotary frequencies are divided by: all of them (`linear`), or the low ones (`llama3`, `yarn`). 1 = no scaling."),
    KEY(model.rope_scaling.low_freq_factor, above(0), unset("the preset's, else 1"),
        "With `llama3`: wavelengths longer than `original_max_positions` / this are stretched fully."),
    KEY(model.rope_scaling.high_freq_factor, above(0), unset("the preset's, else 4"),
        "With `llama3`: wavelengths shorter than `original_max_positions` / this are left alone."),
    KEY(model.rope_scaling.beta_fast, above(0), unset("the preset's, else 32"),
        "With `yarn`: frequencies that turn at least so often over `original_max_positions` are left alone."),
    KEY(model.rope_scaling.beta_slow, above(0), unset("the preset's, else 1"),
        "With `yarn`: frequencies that turn no more often than this are divided fully."),
    KEY(model.rope_scaling.attention_factor, above(0), unset("the preset's, else 0.1·ln(`factor`) + 1"),
        "With `yarn`: what cosines and sines are multiplied by."),
    KEY(model.rope_scaling.mscale_all_dim, at_least(0), unset("the preset's, else 0"),
        "The scores of attention are multiplied by (0.1·this·ln(`factor`) + 1)², as in DeepSeek's models; an option of some architectures."),
    KEY(model.rope_scaling.original_max_positions, from_to(1, kMaxSeq), unset("the preset's, else 8192"),
        "Positions the model saw before it was stretched."),
    KEY(model.rotary_fraction, above(0), unset("the preset's, else the architecture's, else 1"),
        "The part of each head that RoPE turns; an option of some architectures."),
    KEY(model.activation, one_of(kActivations), unset("the preset's, else the architecture's"),
        "The function inside an MLP without a gate; an option of some architectures. `gelu` is computed by erf, `gelu_tanh` is GPT-2's "
        "`gelu_new`, `quick_gelu` is x·sigmoid(1.702·x)."),
    KEY(model.norm_placement, one_of(kNormPlacements), unset("the preset's, else pre"),
        "Whether norms stand before attention and MLP, with one behind the last block or without it, or behind what these have been added "
        "to, as in OPT-350M; an option of some architectures."),
    KEY(model.embedding_width, from_to(0, kMaxHidden), unset("the preset's, else 0"),
        "Width of the embedding and of the head where it is not `hidden`: matrices project to `hidden` and back, as in OPT-350M; an "
        "option of some architectures. 0 = `hidden`."),
    KEY(model.qkv_bias, unset("the preset's, else false"), "Whether q, k and v have biases, as in Qwen 2; an option of some architectures."),
    KEY(model.out_bias, unset("the preset's, else false"),
        "Whether the output of attention has a bias (with `qkv_bias` this is Hugging Face's `attention_bias`); an option of some architectures."),
    KEY(model.mlp_bias, unset("the preset's, else false"), "Whether the MLP has biases; an option of some architectures."),
    KEY(model.qk_norm, unset("the preset's, else false"),
        "Whether every head of q and k goes through an RMSNorm, as in Qwen 3; an option of some architectures."),
    KEY(model.window, from_to(0, kMaxSeq), unset("the preset's, else 0"),
        "How many tokens a token of the model sees, itself among them, as in Mistral 7B v0.1; an option of some architectures. "
        "0 = all."),
    KEY(model.full_attention_first, from_to(0, kMaxLayers), unset("the preset's, else 0"),
        "Of a model with a `window`: how many layers in front see all tokens, as Qwen 2's `max_window_layers`."),
    KEY(model.full_attention_every, from_to(0, kMaxLayers), unset("the preset's, else 0"),
        "Of a model with a `window`: every so many layers one sees all tokens, as in Gemma 2 (2). 0 = none does."),
    KEY(model.attention_chunk, from_to(0, kMaxSeq), unset("the preset's, else the architecture's, else 0"),
        "In layers with RoPE sequences are cut into chunks of so many positions, and a token sees those of its own chunk "
        "(`attention_chunk_size`), as in Llama 4; an option of some architectures. 0 = all."),
    KEY(model.temperature_positions, from_to(0, kMaxSeq), unset("the preset's, else the architecture's, else 0"),
        "In layers without RoPE queries are multiplied by 1 + `temperature_strength`·ln(1 + s) behind s times so many positions "
        "(`floor_scale`), as in Llama 4; an option of some architectures. 0 = never."),
    KEY(model.temperature_strength, above(0), unset("the preset's, else 0.1"), "Of that (`attn_scale`)."),
    KEY(model.inverse_layer_scaling, unset("the preset's, else false"),
        "Whether the scores of attention are divided by the number of their layer, from 1, as GPT-2's "
        "`scale_attn_by_inverse_layer_idx`; an option of some architectures."),
    KEY(model.parallel_residual, unset("the preset's, else the architecture's"),
        "Whether attention and MLP of a block read the same input and are added together, as GPT-NeoX's `use_parallel_residual`; an "
        "option of some architectures."),
    KEY(model.no_rope_every, from_to(0, kMaxLayers), unset("the preset's, else the architecture's, else 0"),
        "Every so many layers one has no RoPE, as in SmolLM3; an option of some architectures. 0 = all have it."),
    KEY(model.embedding_multiplier, above(0), unset("the preset's, else 1"),
        "What embeddings are multiplied by, as in Granite; an option of some architectures."),
    KEY(model.attention_multiplier, at_least(0), unset("the preset's, else 0"),
        "What the scores of attention are multiplied by, as in Granite; an option of some architectures. 0 = 1 / sqrt(`head_dim`)."),
    KEY(model.residual_multiplier, above(0), unset("the preset's, else 1"),
        "What attention and MLP are multiplied by before they are added, as in Granite; an option of some architectures."),
    KEY(model.logits_scaling, above(0), unset("the preset's, else 1"),
        "What logits are divided by, as in Granite; an option of some architectures."),
    KEY(model.latent.q_rank, from_to(0, kMaxHidden), unset("the preset's, else the architecture's"),
        "In architectures with latent attention: width of the narrow rows that queries are made from (`q_lora_rank`). 0 = queries come "
        "from the whole rows, as in DeepSeek-V2-Lite."),
    KEY(model.latent.kv_rank, from_to(1, kMaxHidden), unset("the preset's, else the architecture's"),
        "Width of the narrow rows that keys and values are made from (`kv_lora_rank`)."),
    KEY(model.latent.rope_dim, from_to(2, kMaxHidden), unset("the preset's, else the architecture's"),
        "How many of the `head_dim` elements of queries and keys RoPE turns: the last ones, which all heads of keys share "
        "(`qk_rope_head_dim`; `head_dim` is that and `qk_nope_head_dim`)."),
    KEY(model.latent.value_dim, from_to(1, kMaxHidden), unset("the preset's, else the architecture's"),
        "Width of a head of values (`v_head_dim`)."),
    KEY(model.experts.count, from_to(1, kMaxExperts), unset("the preset's, else the architecture's"),
        "Experts in place of an MLP, in architectures that have them."),
    KEY(model.experts.per_token, from_to(1, kMaxExperts), unset("the preset's, else the architecture's"),
        "Experts that each token goes through."),
    KEY(model.experts.ffn, from_to(1, kMaxFfn), unset("the preset's, else `ffn`"), "Width of one expert; an option of some architectures."),
    KEY(model.experts.normalise, unset("the preset's, else the architecture's"),
        "Whether the weights of a token's experts are made to sum to 1; an option of some architectures."),
    KEY(model.experts.balance_loss, at_least(0), unset("the preset's, else the architecture's"),
        "Coefficient of the loss that balances how many tokens experts get (`router_aux_loss_coef`). 0 = none."),
    KEY(model.experts.balance_scope, one_of(kBalanceScopes), unset("the preset's, else the architecture's"),
        "Over what that loss takes its means: all tokens in all layers together as in transformers, those of each layer as in Switch and "
        "Megatron, or those of each sequence in each layer as in DeepSeek; the latter two are summed over layers."),
    KEY(model.experts.z_loss, at_least(0), unset("the preset's, else 0"),
        "Coefficient of the loss that keeps the router's logits small: the mean over tokens of their squared log-sum-exp, summed over "
        "layers. 0 = none."),
    KEY(model.experts.every, from_to(1, kMaxLayers), unset("the preset's, else 1"),
        "Every so many layers one has experts, the others an MLP of width `ffn`; an option of some architectures."),
    KEY(model.experts.dense_first, from_to(0, kMaxLayers), unset("the preset's, else the architecture's"),
        "So many layers in front have an MLP of width `ffn` and no experts (`first_k_dense_replace`); an option of some architectures."),
    KEY(model.experts.shared_ffn, from_to(1, kMaxFfn), unset("the preset's, else `ffn`"),
        "Width of the expert that every token goes through, in architectures that have one."),
    KEY(model.experts.score, one_of(kExpertScores), unset("the preset's, else the architecture's"),
        "What the router makes of its logits; an option of some architectures."),
    KEY(model.experts.groups, from_to(1, kMaxExperts), unset("the preset's, else the architecture's"),
        "Groups of equal size in which experts stand; an option of some architectures (`n_group`)."),
    KEY(model.experts.keep_groups, from_to(1, kMaxExperts), unset("the preset's, else the architecture's"),
        "Groups in which the experts of a token are chosen: the best ones (`topk_group`)."),
    KEY(model.experts.group_top, from_to(1, kMaxExperts), unset("the preset's, else the architecture's"),
        "A group is as good as the sum of its so many best scores: 1 in DeepSeek-V2, 2 in V3."),
    KEY(model.experts.scale, above(0), unset("the preset's, else the architecture's"),
        "What the weights of a token's experts are multiplied by; an option of some architectures (`routed_scaling_factor`)."),
    KEY(model.experts.correction_bias, unset("the preset's, else the architecture's"),
        "Whether a bias is added to the scores by which experts are chosen, as in DeepSeek-V3; an option of some architectures. "
        "It balances experts without a loss: it is not trained, but follows their load."),
    KEY(model.experts.bias_update_speed, at_least(0), unset("the preset's, else the architecture's"),
        "With `correction_bias`: by how much an expert's bias is raised after a step in which it got fewer tokens than the mean, "
        "or lowered after one with more. 0 = it stays as it is."),
    KEY(model.experts.forced_balance, unset("false"),
        "For measuring speed: experts take turns whatever the router says, so that each gets the same number of tokens. A model does "
        "not learn to route so."),
    KEY(model.experts.drop_above, at_least(0), unset("0"),
        "An expert takes so many times its balanced load of each sequence, seq · per_token / count, rounded up; the others that ask for "
        "it are dropped: it adds nothing to those tokens. In training and evaluation; `dropped_rows` counts them. 0 = nothing is dropped."),
    KEY(model.experts.drop_policy, one_of(kDropPolicies), unset("\"probs\""),
        "With `drop_above`, what an expert keeps: `probs` the tokens with the largest routing weights, `position` the first of a sequence."),
    KEY(model.mtp.depths, from_to(0, kMaxMtpDepths), unset("0"),
        "Multi-token prediction, as in DeepSeek-V3: how many tokens behind the next one each position predicts in training, each by a "
        "module with a layer of its own (`num_nextn_predict_layers`); an option of some architectures. Beside `model.from` it is "
        "that directory's number, or 0: its modules are then not read. Evaluation and generation do without the modules."),
    KEY(model.mtp.loss_weight, at_least(0),
        "What the mean of the losses of these predictions is multiplied by before it is added to the model's loss. DeepSeek-V3 has 0.3, "
        "then 0.1; it may change during a run."),
    KEY(model.tied_head, unset("the preset's, else the architecture's"),
        "Whether the output head is the embedding matrix. Beside `model.from` it decides about a directory whose config.json "
        "ties the head and whose weights hold another one: false uses it, true ignores it."),
    KEY(model.init_std, at_least(0), unset("0.02"), "Standard deviation of the initial weights."),
    KEY(model.other_tokenizer,
        "With `from`: whether the model may be trained on with another tokenizer than its own, `data.tokenizer` or one trained on "
        "the data. Its ids mean nothing to the weights."),
    KEY(model.dropout, from_0_below_1(), unset("none"),
        "The dropout rate of training at all three places below, where they do not have their own. It replaces the rates in the "
        "config.json of `from`: 0 trains without dropout. What is left out follows from `train.seed`, the sequence and the place in the "
        "model, and is the same on every mesh."),
    KEY(model.hidden_dropout, from_0_below_1(), unset("`dropout`, else that of `from`, else 0"),
        "Dropout of what attention and MLP add to the residual stream: GPT-2's `resid_pdrop`, OPT's `dropout`, Megatron's `hidden-dropout`."),
    KEY(model.attention_dropout, from_0_below_1(), unset("`dropout`, else that of `from`, else 0"),
        "Dropout of attention's weights, after the softmax: `attn_pdrop`, `attention_dropout`."),
    KEY(model.embedding_dropout, from_0_below_1(), unset("`dropout`, else that of `from`, else 0"),
        "Dropout of the embeddings with their positions: `embd_pdrop`."),

};

// Sizes of axes: the keys of config/mesh_axes.h.
template <size_t Row>
constexpr Key axis_key() {
  constexpr const MeshAxis& axis = kMeshAxes[Row];
  return make_key(axis.key, [](auto& run) -> auto& { return run.mesh.*kMeshAxes[Row].size; }, from_to(1, kMaxAxis), axis.axis->meaning);
}

constexpr Key kKeysAfterAxes[] = {
    KEY(mesh.ep, from_to(1, kMaxAxis),
        "Expert-parallel ranks, which divide the experts of a layer; for models with experts. They are ranks of a stage, out of those "
        "of `tp` that `etp` leaves, then `cp`, then `dp`."),
    KEY(mesh.etp, from_to(0, kMaxAxis),
        "Tensor-parallel ranks of experts: each holds a part of every expert that it has; a divisor of `tp`. 0 = as `tp`."),
    KEY(mesh.expert_capacity, at_least(0),
        "With `ep` above 1: rows that are planned for what one rank's tokens send to another rank's experts, in units of the balanced load "
        "(1 or more). A step in which some rank gets more is repeated with several rounds, so no token is lost. 0 = the most that any "
        "routing can send."),
    KEY(mesh.expert_dispatch, one_of("auto|rows|tokens|gather"),
        "With `ep` above 1, how tokens get to the ranks of their experts: `rows` sends a copy for each expert of a token, `tokens` one for "
        "each rank that holds some of them (both all-to-all), `gather` all tokens to all ranks (all-gather and reduce-scatter). `auto` = "
        "what sends least."),
    KEY(mesh.zero, from_to(0, 3),
        "What data-parallel ranks share instead of each holding it whole: 1 optimizer state, 2 also gradients, 3 "
        "also weights."),
    KEY(mesh.zero_ranks, from_to(0, kMaxAxis),
        "How many of the `dp` ranks share one set of ZeRO's shards; each set is a replica of the others (HSDP). 0 = all."),
    KEY(mesh.context, one_of("ring|ulysses"),
        "How context-parallel ranks attend: `ring` passes keys and values around, `ulysses` exchanges sequences for heads."),
    KEY(mesh.ring_order, one_of("auto|zigzag|striped"),
        "Which positions each rank of a ring has: an early and a late piece of every sequence (`zigzag`), or every cp-th position "
        "(`striped`), so that work is even inside every document. `auto` = `striped` with `data.mask_documents`, "
        "but not with experts or `train.precision = \"fp8-block\"`."),
    KEY(mesh.overlap, "Whether gradients are reduced and weights gathered while the ranks compute."),
    KEY(mesh.bucket_mb, above(0), "Megabytes (2^20 bytes) of gradients that are reduced in one message."),
    KEY(mesh.sequence_parallel, "Whether tensor-parallel ranks also share norms and residuals along the sequence."),

    KEY(pipeline.schedule, one_of(kScheduleWords),
        "The order of forward and backward passes; `csv` reads it from `file`. `combined-1f1b`, which serves on one "
        "stage too, `dualpipev` and `dualpipe` run a forward beside a backward, so that messages of one travel while the "
        "other computes. `dualpipe` keeps every stage on two ranks."),
    KEY(pipeline.chunks, from_to(1, 1 << 10),
        "Parts of the model each stage holds; more than 1 for `interleaved` and `breadth-first`, 2 for "
        "`zbv`, `dualpipev` and `dualpipe`."),
    KEY(pipeline.file, "The schedule to read when `schedule` is `csv`."),
    KEY(pipeline.layers, "Layers of each stage, in order, such as `7,8,8,7`; the first may have none (the embedding alone), and the last (the loss). Empty = balanced by cost."),
    KEY(pipeline.deferred_gradients, one_of("all|cheap"),
        "Which weight gradients a schedule that defers them leaves for later: `all`, or `cheap`, all but those of experts and of the "
        "up-projections of latent attention. What one is computed of is kept until then, and these keep most."),

    KEY(data.train, "Files or folders to train on; `stories` is the built-in corpus."),
    KEY(data.weights, above(0),
        "The share of the samples that each entry of `train` gives, in any unit: `[3, 1]` takes three of four from the first. Empty = by "
        "their sizes."),
    KEY(data.validation,
        "Files or folders to measure the loss on. Empty = a part of the training data, see `validation_fraction`."),
    KEY(data.validation_fraction, from_0_below_1(),
        "The part of the training data that is kept for validation when `validation` is empty."),
    KEY(data.validation_split, one_of("documents|tail"),
        "Which part that is: a sample of documents, chosen by `train.seed`, or the last tokens of every file. Files whose documents "
        "cannot be told apart keep their last tokens. A resumed run keeps the part it began with."),
    KEY(data.format, one_of("auto|text|jsonl|tokens-u16|tokens-u32|megatron"),
        "What the files hold. `auto` goes by their names."),
    KEY(data.text_key, "Where the text is: a key of JSON objects, a column of tables."),
    KEY(data.on_error, one_of("stop|skip"),
        "What happens at a document of text that cannot be read: invalid JSON or UTF-8, no text under `text_key`, too long. Skipped ones "
        "are counted and named; more than a tenth of all, and at least 100, stop the run, and so does a damaged archive."),
    KEY(data.tokenizer, "A tokenizer.json. Empty = that of `model.from`, else one trained on the data."),
    KEY(data.tokenizer_vocab, from_to(257, 1 << 20), "Tokens of the tokenizer when one is trained."),
    KEY(data.stories_bytes, from_to(1000, 1e12), "Size of the built-in corpus."),
    KEY(data.mask_documents,
        "Whether tokens see only their own document. Documents end with `end_of_text`; sequences hold several of them."),
    KEY(data.end_of_text, at_least(0), unset("the tokenizer's"),
        "The id that ends a document: written behind each when text is tokenized, and looked for by `mask_documents`. The "
        "tokenizer's is the `eos_token` of tokenizer_config.json or special_tokens_map.json beside it, else the "
        "`eos_token_id` of config.json or generation_config.json, else the end token of a usual name such as `</s>`."),
    KEY(data.cache, Affects::execution, "Directory for what is made of the data: tokenizers, token files."),

    KEY(batch.sequences, from_to(1, kMaxSequences),
        "Sequences in a step, over all ranks; a multiple of `microbatch` times `mesh.dp`."),
    KEY(batch.microbatch, Affects::execution, from_to(1, kMaxMicrobatch),
        "Sequences that go through the model at once on a rank; gradients of the others are accumulated."),
    KEY(batch.seq, from_to(1, kMaxSeq), "Tokens in a sequence; at most `model.max_seq`."),

    KEY(optimizer.name, one_of(kOptimizerNames), "The optimizer; the table below has what each reads."),
    KEY(optimizer.lr, at_least(0), "The highest learning rate."),
    KEY(optimizer.min_lr, at_least(0), "The learning rate at the end of a schedule; at most `lr`."),
    KEY(optimizer.beta1, from_0_below_1(), unset(kOwnDefault),
        "Decay rate of the mean of gradients; of Lion, how much of the momentum is in the sign."),
    KEY(optimizer.beta2, from_0_below_1(), unset(kOwnDefault),
        "Decay rate of the mean of squared gradients; of Lion, of the momentum."),
    KEY(optimizer.eps, above(0), unset(kOwnDefault),
        "Added to the root of the mean square; of Adafactor, the least root of a mean square."),
    KEY(optimizer.weight_decay, at_least(0), unset(kOwnDefault),
        "Decay of matrices, times the learning rate; norms and biases do not decay. SGD adds it to the gradient."),
    KEY(optimizer.state, one_of("f32|bf16|int8"), unset(kOwnDefault),
        "What the means of gradients and of their squares are kept in. `bf16` rounds them at random, the same on every mesh; `int8` "
        "keeps codes of 8 bits with a scale for every 256 neighbours in a row. Tensors of fewer than 4096 elements stay f32, with "
        "`int8` vectors too, and matrices whose blocks the mesh cuts. A resumed run with another value converts what was saved."),
    KEY(optimizer.momentum, from_0_below_1(), unset(kOwnDefault), "How much of the last step's momentum stays."),
    KEY(optimizer.nesterov, unset(kOwnDefault), "Whether momentum looks one step ahead (Nesterov)."),
    KEY(optimizer.beta2_decay, from_to(-1, 0), unset(kOwnDefault),
        "In step t the mean of squared gradients moves by t^beta2_decay towards the new ones."),
    KEY(optimizer.update_clip, above(0), unset(kOwnDefault), "Largest root mean square of a tensor's update."),
    KEY(optimizer.min_rms, at_least(0), unset(kOwnDefault),
        "Steps are relative to the root mean square of the tensor, and that counts as this much at least."),
    KEY(optimizer.ns_steps, from_to(1, 20), unset(kOwnDefault), "Newton-Schulz iterations that make a matrix orthogonal."),
    KEY(optimizer.adjust_lr, one_of(kMuonAdjustments), unset(kOwnDefault),
        "The learning rate of a matrix of r rows and c columns: `lr` times sqrt(max(1, r/c)), times 0.2·sqrt(max(r, c)) "
        "(steps as long as AdamW's, so that its learning rates can be kept), or times sqrt(r/c)."),
    KEY(optimizer.adamw_lr_ratio, above(0), unset(kOwnDefault),
        "The learning rate of what Muon leaves to AdamW, as a multiple of `lr`."),
    KEY(optimizer.clip, at_least(0), "Largest norm of the whole gradient. 0 = off."),
    KEY(optimizer.schedule, one_of("constant|cosine|linear|wsd|inverse-sqrt"),
        "How the learning rate goes after the warmup; `wsd` stays constant and falls during the last `decay` "
        "steps."),
    KEY(optimizer.warmup, at_least(0), "Steps during which the learning rate rises from 0."),
    KEY(optimizer.decay, at_least(0), "Steps of the fall of `wsd`."),
    KEY(optimizer.z_loss, at_least(0),
        "Weight of the squared log-partition added to the loss, which keeps logits small. 0 = off."),

    KEY(train.steps, from_to(1, 1e12), "Steps of the whole run; a resumed run goes on to the same number."),
    KEY(train.seed, at_least(0), "Decides initial weights, the order of the data and which documents are held out."),
    KEY(train.threads, Affects::execution, from_to(0, kMaxThreads), "Threads on the CPU. 0 = one per core. Results do not depend on it."),
    KEY(train.recompute, Affects::execution, one_of("none|norms|selective|latent|alternate|full"), "What is computed again in the backward pass to save memory: nothing; norms; all cheap ops; these and the up-projections of latent attention; every second block; every block."),
    KEY(train.precision, one_of("auto|f32|bf16|fp16|fp8|fp8-block|mxfp8|nvfp4"),
        "What is computed in. bf16 keeps weights in f32 precision beside it, and gradients and optimizer state in f32. `auto` "
        "is bf16 on a GPU and f32 on the CPU. `fp16` is IEEE half in place of bf16, with losses scaled (`train.loss_scale`). `fp8` and `fp8-block` do the linears of the blocks in fp8 with f32 sums, and the "
        "rest as `auto` says: with one scale for each tensor (e4m3, gradients in e5m2), or with scales for tiles of 1 × 128 and "
        "blocks of 128 × 128 of weights (e4m3). `mxfp8` and `nvfp4` are formats of later devices: `plan --machine` prices them, nothing here runs them yet."),
    KEY(train.fp8_skip, at_least(0),
        "Blocks at the beginning and at the end of the model whose linears stay wide where `train.precision` is fp8, fp8-block, mxfp8 or nvfp4."),
    KEY(train.expert_gradients, one_of("f32|bf16"),
        "What the gradients of experts' weights are kept in. bf16 saves two bytes for each of these weights where `train.precision` is bf16. "
        "Nothing may be added to such a gradient: it needs one microbatch in a step, no data, context or expert parallelism, and adamw."),
    KEY(train.master_weights, one_of("f32|bf16"),
        "What precision weights have between steps. `bf16`: they are bf16 numbers, and the step rounds them at random, the same on every "
        "mesh; on a GPU that computes in bf16 no other bits of them are kept. Only adamw does that."),
    KEY(train.loss_scale.initial, at_least(0), unset("65536 where `train.precision` is fp16, else 0"),
        "What the loss is multiplied by at first, so that small gradients are not lost below the smallest number of a narrow format; the "
        "update divides by it. A step whose gradients are not finite changes no weight, and the scale gets smaller; after "
        "`growth_interval` steps without one it gets larger. 0 = losses are not scaled."),
    KEY(train.loss_scale.growth_interval, from_to(1, 2147483647), "Steps in a row with finite gradients after which the scale of the loss grows."),
    KEY(train.loss_scale.growth_factor, at_least(1), "What the scale of the loss is then multiplied by."),
    KEY(train.loss_scale.backoff, above(0), "What it is multiplied by after a step whose gradients are not finite; below 1."),
    KEY(train.loss_scale.minimum, above(0),
        "The least scale of the loss. Steps that are not finite at this scale count for `train.non_finite_steps`, others do not."),
    KEY(train.deterministic, Affects::execution, "On a GPU, give up some speed so that two runs give the same bits. On the CPU they always do."),
    KEY(train.reproducible, one_of("none|mesh"),
        "With `mesh`, every data-parallel, ZeRO and pipeline layout gives the same bits: gradients are summed exactly. Costs 8 bytes for "
        "each gradient in place of 4, in memory and in messages (reproducible.md)."),
    KEY(train.timeout_s, Affects::execution, at_least(0),
        "Seconds for which ranks wait for one that no longer answers or stands still; then the run ends, 5 s later at most, and "
        "those who waited say for whom, and where. 0 = 595, and after 20 steps 20 times the slowest step so far, at least 60 and "
        "at most 600, with the end."),
    KEY(train.non_finite_steps, at_least(1),
        "Steps in a row whose loss or gradient norm is not finite after which the run ends, with an exit code of its own. No "
        "update is made in such a step."),
    KEY(train.spike.action, one_of("none|skip|rewind|lower_rate"),
        "What is done about a step whose loss or gradient norm is far above those of the steps before it: it is only reported; "
        "its update is not applied, which the gradient norm alone decides; the run goes back to a checkpoint and leaves out "
        "batches; the learning rate is lowered for a while."),
    KEY(train.spike.window, from_to(8, 10000),
        "Steps whose median and spread (median absolute deviation) a step is compared with. None is a spike before so many are done."),
    KEY(train.spike.threshold, from_to(3, 1000),
        "Spreads above the median from which on it is a spike; a spread is 1.4826 times the median absolute deviation, a standard "
        "deviation where values are normal. The loss must also be 10 % above the median, the gradient norm twice the median."),
    KEY(train.spike.most_skips, from_to(1, 10000),
        "Updates in a row that `skip` leaves out at most. The two that follow are applied whatever their norm."),
    KEY(train.spike.rewind_steps, at_least(1),
        "`rewind` goes back to the latest checkpoint that is at least so many steps older than the spike; where none is left, to the oldest."),
    KEY(train.spike.skip_steps, at_least(0),
        "Batches that `rewind` leaves out after that checkpoint; at least all up to the spike."),
    KEY(train.spike.most_rewinds, at_least(1), "Rewinds of a run at most; later spikes are only reported."),
    KEY(train.spike.rate_factor, from_to(0, 1), "What `lower_rate` multiplies the learning rate with."),
    KEY(train.spike.rate_steps, at_least(1), "Steps for which it does so, from the second after the spike on."),
    KEY(train.check_replicas_every, Affects::execution, at_least(0),
        "Steps between comparisons of ranks that must hold the same weights and optimizer states; each reads a part of them, in "
        "turn, for at most 0.05 % of the time. Where they differ the run ends and names rank and tensor. 0 = never."),
    KEY(train.check_gemms, Affects::execution, from_to(0, 1),
        "Share of the matrix products of a step that are checked by checksums, drawn anew every step. A wrong one ends the run before "
        "the step's update, with an exit code of its own. On a CPU it is computed again first."),
    KEY(train.check_collectives, Affects::execution, from_to(0, 1),
        "Share of the collectives of a step whose messages and sums are checked, drawn anew every step. A wrong one ends the run "
        "before the step's update and names the rank. CPU only."),
    KEY(train.check_microbatch_every, Affects::execution, at_least(0),
        "Steps between checks in which each data-parallel rank computes a microbatch of its neighbour again: loss and gradients must be "
        "the same bits. 0 = never."),
    KEY(train.check_memory, Affects::execution, unset("true on the CPU, false on a GPU"),
        "Whether weights and optimizer states have checksums, recorded after each update and verified before the next one and before "
        "every save. A bit that has changed in memory ends the run before the update and names tensor and rank."),
    KEY(train.log_every, Affects::execution, at_least(1), "Steps between lines of progress."),
    KEY(train.eval_every, at_least(0), "Steps between measurements of the validation loss. 0 = never."),
    KEY(train.eval_sequences, at_least(1),
        "Sequences in a measurement of the validation loss, the first of the validation data: the same whatever the microbatch and "
        "the mesh. All of them where there are fewer."),

    KEY(offload.optimizer,
        "Whether optimizer state is kept in the memory of the host. The update then runs on host cores: gradients are copied there and the "
        "weights back, beside the backward pass and the update. Only adamw with `optimizer.state` f32 does that."),
    KEY(offload.weights,
        "Whether the bits that make f32 of bf16 weights, which only the update reads, are kept there too."),
    KEY(offload.working_weights,
        "Whether the large matrices of blocks that forward and backward read are kept there too: each is copied to the device one block ahead "
        "of its use, and its memory given back behind it. Needs `offload.optimizer`."),
    KEY(offload.activations, one_of("none|block"),
        "Whether what a block saves for the backward pass is copied to the host behind its forward, and back one block ahead of its "
        "backward."),
    KEY(offload.to, one_of("host|nvme"),
        "Where optimizer state, and with `offload.weights` the low bits of master weights, are kept: in the memory of the host, or in a "
        "file of each rank under `offload.path`, read ahead of their step and written back behind it."),
    KEY(offload.path, "With `offload.to` nvme: the directory on a local disk that files are made in. They have no name there and go with the run."),

    KEY(checkpoint.every, at_least(0), "Steps between checkpoints. 0 = only at the end."),
    KEY(checkpoint.at_end, "Write one when the run ends, or is stopped. Without it a run leaves only its metrics."),
    KEY(checkpoint.keep, at_least(0), "How many of the latest checkpoints are kept. 0 = all."),
    KEY(checkpoint.keep_every, at_least(0),
        "Checkpoints whose step is a multiple of this are kept too, for good. 0 = none."),
    KEY(checkpoint.keep_best, at_least(0),
        "How many checkpoints with the lowest validation loss are kept too. 0 = none."),
    KEY(checkpoint.dtype, one_of("f32|bf16|f16"),
        "The type of the weights in model.safetensors and in config.json, rounded to nearest as torch does. With another than f32, "
        "the weights in full precision are kept beside them, in master_weights.safetensors, for the run to go on from."),
    KEY(checkpoint.accept_changed,
        "Which of `tokenizer`, `data` and `model` (that of `model.from`) may be others than when the checkpoint was written; a resumed run is refused otherwise."),
    KEY(checkpoint.background,
        "Whether training goes on while a checkpoint of `every` is written, from a copy of weights and optimizer state."),
    KEY(checkpoint.local_every, at_least(0),
        "Steps between local checkpoints: every rank copies its weights and optimizer state to `local_dir` of its host, where they "
        "outlive the process, so that a restart repeats at most so many steps and reads nothing from shared storage. 0 = none."),
    KEY(checkpoint.local_dir,
        "Where local checkpoints lie on each host: `/dev/shm` is its memory, a directory on a local disk works too."),
    KEY(checkpoint.replication,
        "Whether a rank of another host keeps a second copy of every local checkpoint, so that a host may be lost. Where ranks of "
        "another host hold the same weights and states anyway, none is made."),
    KEY(checkpoint.replication_jump, at_least(0),
        "Which rank keeps the second copy: the one so many ranks further on, round the end. 0 = the rank at the same place of the "
        "next host; none where there is one host only."),
    KEY(checkpoint.resume,
        "`auto` resumes from the run's latest checkpoint when there is one, `never` starts anew, a path resumes "
        "from that checkpoint."),

    KEY(log.on_event,
        "A command for the shell that gets every event of the run (docs/events.md) as a line of JSON on its standard input. "
        "It has ten seconds, and no step waits for it. Empty = none."),
    KEY(log.tensor_stats_every, at_least(0),
        "Every so many steps, metrics.jsonl has statistics of each layer: norms of activations, gradients, weights and updates, "
        "shares of elements that underflow or overflow, largest attention logits; detectors look at them (docs/tensors.md). 0 = never."),
    KEY(log.tensor_stats_format, one_of("auto|bf16|f16|e4m3|e5m2"),
        "The number format in which underflow and overflow of activations and their gradients are counted. auto = the one each is "
        "kept in; another says what would be lost in it."),
    KEY(log.grad_noise_scale,
        "Whether metrics.jsonl has the gradient noise scale (McCandlish et al. 2018), an estimate of the critical batch size."),
    KEY(log.profile_every, at_least(0),
        "Every so many steps one is timed op by op on every rank, into ops/rank-N.jsonl of the run; `sextant watch` shows the times beside "
        "those of the plan. 0 = never."),
    KEY(log.tensorboard,
        "Whether event files for TensorBoard are written while the run goes on, in tensorboard/ of the run."),
    KEY(log.prometheus,
        "Where the run serves its last values for Prometheus: `:9400` on loopback, or `ADDRESS:9400`. Empty = nowhere."),
};

#undef KEY
// clang-format on

constexpr auto kKeys = [] {
  std::array<Key, std::size(kKeysBeforeAxes) + kMeshAxes.size() + std::size(kKeysAfterAxes)> all;
  auto end = std::copy(std::begin(kKeysBeforeAxes), std::end(kKeysBeforeAxes), all.begin());
  [&]<size_t... Row>(std::index_sequence<Row...>) {
    ((*end++ = axis_key<Row>()), ...);
  }
  (std::make_index_sequence<kMeshAxes.size()>());
  std::copy(std::begin(kKeysAfterAxes), std::end(kKeysAfterAxes), end);
  return all;
}();

}  // namespace

bool Range::contains(double value) const {
  bool above_low = low_end == RangeEnd::included ? value >= low : value > low;
  bool below_high = high_end == RangeEnd::included ? value <= high : value < high;
  return std::isfinite(value) && above_low && below_high;
}

std::span<const Key> schema() {
  return kKeys;
}
std::span<const Section> sections() {
  return kSections;
}

Affects affects_of(const Key& key) {
  auto section = std::ranges::find(kSections, section_of(key.name), &Section::name);
  bool execution = key.affects == Affects::execution || section->affects == Affects::execution;
  return execution ? Affects::execution : Affects::result;
}

const Key* find_key(std::string_view name) {
  auto at = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& key) { return key.name == name; });
  return at == std::end(kKeys) ? nullptr : at;
}

bool is_section(std::string_view name) {
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& key) {
    return key.name.size() > name.size() && key.name.starts_with(name) && key.name[name.size()] == '.';
  });
}

std::string_view section_of(std::string_view key) {
  size_t dot = key.find('.');
  return dot == key.npos ? std::string_view() : key.substr(0, dot);
}

std::vector<std::string_view> words_of(const Key& key) {
  std::vector<std::string_view> words;
  for (std::string_view rest = key.words; !rest.empty();) {
    size_t bar = std::min(rest.find('|'), rest.size());
    words.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return words;
}

namespace {

std::string range_text(const Range& range) {
  bool bounded_below = std::isfinite(range.low), bounded_above = std::isfinite(range.high);
  // {:.0f} and not {}: large limits are powers of two, and people would not recognise 1.07374e+09.
  auto shown = [](double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
  };
  std::string low = shown(range.low), high = shown(range.high);
  if (!bounded_below) return "";
  if (!bounded_above) return fmt::format(" {} {}", range.low_end == RangeEnd::excluded ? "above" : "of at least", low);
  return fmt::format(" from {} to {}{}", low, range.high_end == RangeEnd::excluded ? "below " : "", high);
}

}  // namespace

std::string expected_of(const Key& key) {
  switch (key.kind) {
    case Kind::flag:
      return "true or false";
    case Kind::integer:
      return "an integer" + range_text(key.range);
    case Kind::number:
      return "a number" + range_text(key.range);
    case Kind::list:
      return "a string or a list of strings";
    case Kind::numbers:
      return "a list of numbers" + range_text(key.range);
    case Kind::text:
      break;
  }
  std::vector<std::string_view> words = words_of(key);
  if (words.empty()) return "a string";
  return words.size() == 1 ? toml_quoted(words[0]) : fmt::format("one of {}", fmt::join(words, ", "));
}

std::string toml_text(const ConfigValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return toml_quoted(text); }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string out = "[";
      for (const std::string& item : list) out += (out.size() > 1 ? ", " : "") + toml_quoted(item);
      return out + "]";
    }
    std::string operator()(const std::vector<double>& list) const { return fmt::format("[{}]", fmt::join(list, ", ")); }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace sextant
