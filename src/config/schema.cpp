#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/threads.h"
#include "config/check.h"
#include "config/make_key.h"
#include "config/mesh_axes.h"
#include "models/spec.h"
#include "ops/muon.h"
#include "optim/optimizer.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

// clang-format off
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

constexpr Key kFirstKeys[] = {
    KEY(name, Affects::execution, unset("the file's name without `.toml`"), "Names the run and the directory of its results."),
    KEY(device, Affects::execution, "Where to compute."),

    KEY(model.preset, unset("none"), "A published model by name; `sextant list models` lists them."),
    KEY(model.from, unset("none"),
        "A Hugging Face directory to start from: its config.json, weights and tokenizer. Of the other keys only "
        "`max_seq`, `norm_eps`, `rope_*`, `experts.balance_loss`, `experts.balance_scope`, `experts.z_loss`, `experts.bias_update_speed`, `mtp.*` and the dropout rates may be given beside it, and `tied_head` where config.json ties the head. "
        "A dense model becomes one with experts by `architecture` and `experts.*` (docs/hugging-face.md)."),
};

constexpr Key kOtherModelKeys[] = {
    KEY(model.mtp.loss_weight, at_least(0),
        "What the mean of the losses of these predictions is multiplied by before it is added to the model's loss. DeepSeek-V3 has 0.3, "
        "then 0.1; it may change during a run."),
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
    KEY(mesh.expert_dispatch, "With `ep` above 1, how tokens get to the ranks of their experts."),
    KEY(mesh.zero, from_to(0, 3),
        "What data-parallel ranks share instead of each holding it whole: 1 optimizer state, 2 also gradients, 3 "
        "also weights."),
    KEY(mesh.zero_ranks, from_to(0, kMaxAxis),
        "How many of the `dp` ranks share one set of ZeRO's shards; each set is a replica of the others (HSDP). 0 = all."),
    KEY(mesh.context, "How context-parallel ranks attend."),
    KEY(mesh.ring_order, "Which positions each rank of a ring has."),
    KEY(mesh.overlap, "Whether gradients are reduced and weights gathered while the ranks compute."),
    KEY(mesh.bucket_mb, above(0), "Megabytes (2^20 bytes) of gradients that are reduced in one message."),
    KEY(mesh.sequence_parallel, "Whether tensor-parallel ranks also share norms and residuals along the sequence."),

    KEY(pipeline.schedule,
        "The order of forward and backward passes. `combined-1f1b`, which serves on one "
        "stage too, `dualpipev` and `dualpipe` run a forward beside a backward, so that messages of one travel while the "
        "other computes. `dualpipe` keeps every stage on two ranks."),
    KEY(pipeline.chunks, from_to(1, 1 << 10),
        "Parts of the model each stage holds; more than 1 for `interleaved` and `breadth-first`, 2 for "
        "`zbv`, `dualpipev` and `dualpipe`."),
    KEY(pipeline.file, "The schedule to read when `schedule` is `csv`."),
    KEY(pipeline.layers, "Layers of each stage, in order, such as `7,8,8,7`; the first may have none (the embedding alone), and the last (the loss). Empty = balanced by cost."),
    KEY(pipeline.deferred_gradients,
        "Which weight gradients a schedule that defers them leaves for later. What one is computed of is kept until then, which is most for those that `cheap` leaves out."),

    KEY(data.train, "Files or folders to train on; `stories` is the built-in corpus."),
    KEY(data.weights, above(0),
        "The share of the samples that each entry of `train` gives, in any unit: `[3, 1]` takes three of four from the first. Empty = by "
        "their sizes."),
    KEY(data.validation,
        "Files or folders to measure the loss on. Empty = a part of the training data, see `validation_fraction`."),
    KEY(data.validation_fraction, from_0_below_1(),
        "The part of the training data that is kept for validation when `validation` is empty."),
    KEY(data.validation_split,
        "Which part that is. Files whose documents cannot be told apart keep their last tokens. A resumed run keeps the part it began with."),
    KEY(data.format, "What the files hold."),
    KEY(data.text_key, "Where the text is: a key of JSON objects, a column of tables."),
    KEY(data.on_error, 
        "What happens at a document of text that cannot be read: invalid JSON or UTF-8, no text under `text_key`, too long. Skipped ones "
        "are counted and named; more than a tenth of all, and at least 100, stop the run, and so does a damaged archive."),
    KEY(data.tokenizer, "A tokenizer.json. Empty = that of `model.from`, else one trained on the data."),
    KEY(data.tokenizer_vocab, OnResume::refused, from_to(257, 1 << 20), "Tokens of the tokenizer when one is trained."),
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

    KEY(optimizer.name, OnResume::refused, one_of(kOptimizerNames), "The optimizer; the table below has what each reads."),
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
    KEY(optimizer.state, unset(kOwnDefault),
        "What the means of gradients and of their squares are kept in. Tensors of fewer than 4096 elements stay f32, with "
        "`int8` vectors too, and matrices whose blocks the mesh cuts. A resumed run with another value converts what was saved."),
    KEY(optimizer.momentum, from_0_below_1(), unset(kOwnDefault), "How much of the last step's momentum stays."),
    KEY(optimizer.nesterov, unset(kOwnDefault), "Whether momentum looks one step ahead (Nesterov)."),
    KEY(optimizer.beta2_decay, from_to(-1, 0), unset(kOwnDefault),
        "In step t the mean of squared gradients moves by t^beta2_decay towards the new ones."),
    KEY(optimizer.update_clip, above(0), unset(kOwnDefault), "Largest root mean square of a tensor's update."),
    KEY(optimizer.min_rms, at_least(0), unset(kOwnDefault),
        "Steps are relative to the root mean square of the tensor, and that counts as this much at least."),
    KEY(optimizer.ns_steps, from_to(1, 20), unset(kOwnDefault), "Newton-Schulz iterations that make a matrix orthogonal."),
    KEY(optimizer.adjust_lr, unset(kOwnDefault), "The learning rate of a matrix of r rows and c columns."),
    KEY(optimizer.adamw_lr_ratio, above(0), unset(kOwnDefault),
        "The learning rate of what Muon leaves to AdamW, as a multiple of `lr`."),
    KEY(optimizer.clip, at_least(0), "Largest norm of the whole gradient. 0 = off."),
    KEY(optimizer.schedule, "How the learning rate goes after the warmup."),
    KEY(optimizer.warmup, at_least(0), "Steps during which the learning rate rises from 0."),
    KEY(optimizer.decay, at_least(0), "Steps of the fall of `wsd`."),
    KEY(optimizer.z_loss, at_least(0),
        "Weight of the squared log-partition added to the loss, which keeps logits small. 0 = off."),

    KEY(train.steps, from_to(1, 1e12), "Steps of the whole run; a resumed run goes on to the same number."),
    KEY(train.seed, at_least(0), "Decides initial weights, the order of the data and which documents are held out."),
    KEY(train.threads, Affects::execution, from_to(0, kMaxThreads), "Threads on the CPU. 0 = one per core. Results do not depend on it."),
    KEY(train.recompute, Affects::execution, "What is computed again in the backward pass to save memory."),
    KEY(train.precision, "What is computed in."),
    KEY(train.fp8_skip, at_least(0),
        "Blocks at the beginning and at the end of the model whose linears stay wide where `train.precision` is fp8, fp8-block, mxfp8 or nvfp4."),
    KEY(train.expert_gradients, among<kF32OrBf16>(),
        "What the gradients of experts' weights are kept in. bf16 saves two bytes for each of these weights where `train.precision` is bf16. "
        "Nothing may be added to such a gradient: it needs one microbatch in a step, no data, context or expert parallelism, and adamw."),
    KEY(train.master_weights, among<kF32OrBf16>(),
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
    KEY(train.reproducible, 
        "With `mesh`, every data-parallel, ZeRO and pipeline layout gives the same bits: gradients are summed exactly. Costs 8 bytes for "
        "each gradient in place of 4, in memory and in messages (reproducible.md)."),
    KEY(train.timeout_s, Affects::execution, at_least(0),
        "Seconds for which ranks wait for one that no longer answers or stands still; then the run ends, 5 s later at most, and "
        "those who waited say for whom, and where. 0 = 595, and after 20 steps 20 times the slowest step so far, at least 60 and "
        "at most 600, with the end."),
    KEY(train.non_finite_steps, at_least(1),
        "Steps in a row whose loss or gradient norm is not finite after which the run ends, with an exit code of its own. No "
        "update is made in such a step."),
    KEY(train.spike.action,
        "What is done about a step whose loss or gradient norm is far above those of the steps before it."),
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
    KEY(offload.activations, 
        "Whether what a block saves for the backward pass is copied to the host behind its forward, and back one block ahead of its "
        "backward."),
    KEY(offload.to, "Where optimizer state, and with `offload.weights` the low bits of master weights, are kept."),
    KEY(offload.path, "With `offload.to` nvme: the directory on a local disk that files are made in. They have no name there and go with the run."),

    KEY(checkpoint.every, at_least(0), "Steps between checkpoints. 0 = only at the end."),
    KEY(checkpoint.at_end, "Write one when the run ends, or is stopped. Without it a run leaves only its metrics."),
    KEY(checkpoint.keep, at_least(0), "How many of the latest checkpoints are kept. 0 = all."),
    KEY(checkpoint.keep_every, at_least(0),
        "Checkpoints whose step is a multiple of this are kept too, for good. 0 = none."),
    KEY(checkpoint.keep_best, at_least(0),
        "How many checkpoints with the lowest validation loss are kept too. 0 = none."),
    KEY(checkpoint.dtype, among<kSavedTypes>(),
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
    KEY(log.tensor_stats_format,
        "The number format in which underflow and overflow of activations and their gradients are counted; another than `auto` says what would be lost in it."),
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

// clang-format on

// "model.layers"; the names of fields live as long as the program.
Key key_of(const ModelField& field) {
  static std::deque<std::string> names;
  Key key;
  static_cast<Setting&>(key) = field.setting;
  key.name = names.emplace_back("model." + std::string(field.name));
  key.unset = field.unset;
  key.help = field.help;
  key.model_field = &field;
  return key;
}

template <size_t kRow>
Key key_of_axis() {
  constexpr const MeshAxis& axis = kMeshAxes[kRow];
  return make_key(
      axis.key, [](auto& run) -> auto& { return run.mesh.*kMeshAxes[kRow].size; }, from_to(1, kMaxAxis),
      axis.axis->meaning);
}

std::vector<Key> make_keys() {
  std::vector<Key> keys(std::begin(kFirstKeys), std::end(kFirstKeys));
  for (const ModelField& field : model_fields())
    if (field.is_key()) keys.push_back(key_of(field));
  keys.insert(keys.end(), std::begin(kOtherModelKeys), std::end(kOtherModelKeys));
  [&]<size_t... kRow>(std::index_sequence<kRow...>) {
    (keys.push_back(key_of_axis<kRow>()), ...);
  }
  (std::make_index_sequence<kMeshAxes.size()>());
  keys.insert(keys.end(), std::begin(kKeysAfterAxes), std::end(kKeysAfterAxes));
  return keys;
}

}  // namespace

void Key::set(RunConfig& run, const ConfigValue& value) const {
  if (model_field)
    run.model.fields.insert_or_assign(model_field, value);
  else
    setter(run, value);
}

ConfigValue Key::get(const RunConfig& run) const {
  if (!model_field) return getter(run);
  auto found = run.model.fields.find(model_field);
  return found == run.model.fields.end() ? ConfigValue() : found->second;
}

OnResume Key::on_resume() const {
  if (!model_field) return changed;
  return model_field->role == FieldRole::function ? OnResume::refused : OnResume::accepted;
}

std::span<const Key> schema() {
  static const std::vector<Key> keys = make_keys();
  return keys;
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
  auto at = std::ranges::find(schema(), name, &Key::name);
  return at == schema().end() ? nullptr : &*at;
}

bool is_section(std::string_view name) {
  return std::ranges::any_of(schema(), [&](const Key& key) {
    return key.name.size() > name.size() && key.name.starts_with(name) && key.name[name.size()] == '.';
  });
}

std::string_view section_of(std::string_view key) {
  size_t dot = key.find('.');
  return dot == key.npos ? std::string_view() : key.substr(0, dot);
}

std::string help_of(const Key& key) {
  std::string meanings = meanings_text(key.choices);
  if (meanings.empty()) return std::string(key.help);
  return fmt::format("{} {}.", key.help, meanings);
}

}  // namespace sextant
