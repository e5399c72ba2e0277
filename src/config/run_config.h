// RunConfig: every choice a person makes for a run. The initialisers here are the defaults; schema.cpp gives each
// field its key, its allowed values and its explanation. An absent optional is decided later (see its explanation).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/settings.h"

namespace sextant {

struct RopeScalingSection {
  std::optional<std::string> type;
  std::optional<double> factor, low_freq_factor, high_freq_factor, beta_fast, beta_slow, attention_factor,
      mscale_all_dim;
  std::optional<int64_t> original_max_positions;
  bool operator==(const RopeScalingSection&) const = default;
};

struct LatentSection {
  std::optional<int64_t> q_rank, kv_rank, rope_dim, value_dim;
  bool operator==(const LatentSection&) const = default;
};

struct ExpertsSection {
  std::optional<int64_t> count, per_token, ffn, every, dense_first, shared_ffn, groups, keep_groups, group_top;
  std::optional<bool> normalise, correction_bias, forced_balance;
  std::optional<double> balance_loss, scale, bias_update_speed, z_loss, drop_above;
  std::optional<std::string> score, balance_scope, drop_policy;
  bool operator==(const ExpertsSection&) const = default;
};

struct MtpSection {
  std::optional<int64_t> depths;
  double loss_weight = 0.3;
  bool operator==(const MtpSection&) const = default;
};

// Where the model comes from, and fields laid over it; resolve_model makes a ModelSpec of them.
struct ModelSection {
  std::optional<std::string> preset, from, architecture;
  std::optional<int64_t> layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_seq;
  std::optional<double> norm_eps, rope_theta;
  RopeScalingSection rope_scaling;
  std::optional<double> rotary_fraction;
  std::optional<std::string> activation, norm_placement;
  std::optional<int64_t> embedding_width;
  std::optional<bool> qkv_bias, out_bias, mlp_bias, qk_norm, inverse_layer_scaling, parallel_residual;
  std::optional<int64_t> window, full_attention_first, full_attention_every, no_rope_every;
  std::optional<int64_t> attention_chunk, temperature_positions;
  std::optional<double> temperature_strength;
  std::optional<double> embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling;
  LatentSection latent;
  ExpertsSection experts;
  MtpSection mtp;
  std::optional<bool> tied_head;
  std::optional<double> init_std, dropout, hidden_dropout, attention_dropout, embedding_dropout;
  bool other_tokenizer = false;
  bool operator==(const ModelSection&) const = default;
};

struct MeshSection {
  int64_t dp = 1, tp = 1, pp = 1, cp = 1;
  int64_t ep = 1, etp = 0;     // of experts; etp 0: that of tp
  double expert_capacity = 0;  // times the balanced load; 0: the most that any routing sends
  std::string expert_dispatch = "auto";
  int64_t zero = 0, zero_ranks = 0;
  bool sequence_parallel = false;
  std::string context = "ring";
  std::string ring_order = "auto";
  bool overlap = true;
  double bucket_mb = 8;
  bool operator==(const MeshSection&) const = default;
};

struct PipelineSection {
  std::string schedule = "1f1b";
  int64_t chunks = 1;
  std::string file;
  std::string layers;
  std::string deferred_gradients = "all";
  bool operator==(const PipelineSection&) const = default;
};

struct DataSection {
  std::vector<std::string> train = {"stories"};
  std::vector<double> weights;  // of the entries of train; empty: by size
  std::vector<std::string> validation;
  double validation_fraction = 0.05;
  std::string validation_split = "documents";
  std::string format = "auto";
  std::string text_key = "text";
  std::string on_error = "stop";
  std::string tokenizer;
  int64_t tokenizer_vocab = 4096;
  int64_t stories_bytes = 4'000'000;
  bool mask_documents = false;
  std::optional<int64_t> end_of_text;
  std::string cache = ".cache";

  // Whether part of the training data is held out for validation, and whether that is to be a sample of documents.
  bool holds_out_part() const { return validation.empty() && validation_fraction > 0; }
  bool holds_out_documents() const { return holds_out_part() && validation_split == "documents"; }

  bool operator==(const DataSection&) const = default;
};

struct BatchSection {
  int64_t sequences = 8;
  int64_t microbatch = 1;
  int64_t seq = 1024;
  bool operator==(const BatchSection&) const = default;
};

// The settings of a loaded config are those that the optimizer reads, with its own defaults where none was given.
struct OptimizerSection : OptimizerSettings {
  std::string name = "adamw";
  double lr = 3e-4, min_lr = 0;
  double clip = 1;
  std::string schedule = "cosine";
  int64_t warmup = 0, decay = 0;
  double z_loss = 0;
  bool operator==(const OptimizerSection&) const = default;
};

struct LossScaleSection {
  std::optional<double> initial;  // 0: losses are not scaled
  double growth_factor = 2, backoff = 0.5;
  int64_t growth_interval = 2000;
  double minimum = 1;
  bool operator==(const LossScaleSection&) const = default;
};

struct SpikeSection {
  std::string action = "none";
  int64_t window = 100;
  double threshold = 10;
  int64_t most_skips = 10;
  int64_t rewind_steps = 100, skip_steps = 200, most_rewinds = 10;
  double rate_factor = 0.5;
  int64_t rate_steps = 100;
  bool operator==(const SpikeSection&) const = default;
};

struct TrainSection {
  int64_t steps = 100;
  int64_t seed = 1;
  int64_t threads = 0;
  std::string recompute = "none";
  std::string precision = "auto";
  int64_t fp8_skip = 0;
  std::string expert_gradients = "f32";
  std::string master_weights = "f32";
  LossScaleSection loss_scale;
  // By which the loss of the first step is multiplied; 0: none is. f16 needs it, and it grows from there.
  double first_loss_scale() const { return loss_scale.initial.value_or(precision == "fp16" ? 65536 : 0); }
  bool deterministic = false;
  std::string reproducible = "none";
  int64_t log_every = 10;
  double timeout_s = 0;  // 0: learned
  int64_t non_finite_steps = 3;
  SpikeSection spike;
  int64_t check_replicas_every = 100;
  double check_gemms = 0, check_collectives = 0;  // shares
  int64_t check_microbatch_every = 0;
  std::optional<bool> check_memory;
  int64_t eval_every = 100, eval_sequences = 64;
  bool operator==(const TrainSection&) const = default;
};

struct OffloadSection {
  bool optimizer = false, weights = false, working_weights = false;
  std::string activations = "none";
  std::string to = "host";
  std::string path;
  bool operator==(const OffloadSection&) const = default;
};

struct CheckpointSection {
  int64_t every = 0, keep = 3, keep_every = 0, keep_best = 0;
  bool at_end = true;
  std::string dtype = "f32";
  std::string resume = "auto";
  std::vector<std::string> accept_changed;
  bool background = true;
  int64_t local_every = 0;
  std::string local_dir = "/dev/shm";
  bool replication = true;
  int64_t replication_jump = 0;  // 0: to the next host
  bool operator==(const CheckpointSection&) const = default;
};

struct LogSection {
  std::string on_event;
  int64_t tensor_stats_every = 0;  // 0: never
  std::string tensor_stats_format = "auto";
  bool grad_noise_scale = false;
  int64_t profile_every = 0;  // steps; 0: never
  bool tensorboard = false;
  std::string prometheus;  // [HOST]:PORT; empty: none
  bool operator==(const LogSection&) const = default;
};

struct RunConfig {
  std::string name;
  std::string device = "auto";
  ModelSection model;
  MeshSection mesh;
  PipelineSection pipeline;
  DataSection data;
  BatchSection batch;
  OptimizerSection optimizer;
  TrainSection train;
  OffloadSection offload;
  CheckpointSection checkpoint;
  LogSection log;

  std::string source = "config";                           // what the file is called in messages
  std::map<std::string, std::string, std::less<>> places;  // of the keys that were given

  bool given(std::string_view key) const { return places.contains(key); }

  // For the `place` of an error: "run.toml:3:5 model.heads", "command line: model.heads=7", or, when it was not
  // given, "model.heads (default)".
  std::string place_of(std::string_view key) const {
    auto at = places.find(key);
    return at != places.end() ? at->second : std::string(key) + " (default)";
  }
};

}  // namespace sextant
