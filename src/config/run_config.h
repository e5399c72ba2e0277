// RunConfig: every choice a person makes for a run. The initialisers here are the defaults; schema.cpp gives each
// field its key, its allowed values and its explanation. An absent optional is decided later (see its explanation).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_choices.h"
#include "data/on_error.h"
#include "ir/plan.h"
#include "ir/precision.h"
#include "models/model_fields.h"
#include "optim/lr_schedule.h"
#include "optim/settings.h"
#include "schedule/schedules.h"

namespace sextant {

struct MtpSection {
  double loss_weight = 0.3;
  bool operator==(const MtpSection&) const = default;
};

// Where the model comes from, and fields that replace those of it; resolve_model makes a ModelSpec of them.
struct ModelSection {
  std::optional<std::string> preset, from;
  std::map<const ModelField*, SettingValue> fields;  // that were given, in the order of model_fields()
  MtpSection mtp;
  bool other_tokenizer = false;
  std::optional<double> dropout, hidden_dropout, attention_dropout, embedding_dropout;

  // set<&ExpertsSpec::count>(8)
  template <auto kMember>
  void set(const FieldType<kMember>& value) {
    fields.insert_or_assign(&model_field<kMember>(), to_setting(value));
  }
  template <auto kMember>
  std::optional<FieldType<kMember>> given() const {
    auto found = fields.find(&model_field<kMember>());
    if (found == fields.end()) return std::nullopt;
    return from_setting<FieldType<kMember>>(found->second);
  }
  bool operator==(const ModelSection&) const = default;
};

struct MeshSection {
  int64_t dp = 1, tp = 1, pp = 1, cp = 1;
  int64_t ep = 1, etp = 0;     // of experts; etp 0: that of tp
  double expert_capacity = 0;  // times the balanced load; 0: the most that any routing sends
  ExpertDispatch expert_dispatch = ExpertDispatch::automatic;
  int64_t zero = 0, zero_ranks = 0;
  bool sequence_parallel = false;
  ContextMode context = ContextMode::ring;
  RingOrder ring_order = RingOrder::automatic;
  bool overlap = true;
  double bucket_mb = 8;
  bool operator==(const MeshSection&) const = default;
};

struct PipelineSection {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int64_t chunks = 1;
  std::string file;
  std::string layers;
  DeferredGradients deferred_gradients = DeferredGradients::all;
  bool operator==(const PipelineSection&) const = default;
};

struct DataSection {
  std::vector<std::string> train = {"stories"};
  std::vector<double> weights;  // of the entries of train; empty: by size
  std::vector<std::string> validation;
  double validation_fraction = 0.05;
  ValidationSplit validation_split = ValidationSplit::documents;
  DataFormat format = DataFormat::automatic;
  std::string text_key = "text";
  OnError on_error = OnError::stop;
  std::string tokenizer;
  int64_t tokenizer_vocab = 4096;
  int64_t stories_bytes = 4'000'000;
  bool mask_documents = false;
  std::optional<int64_t> end_of_text;
  std::string cache = ".cache";

  // Whether part of the training data is held out for validation, and whether that is to be a sample of documents.
  bool holds_out_part() const { return validation.empty() && validation_fraction > 0; }
  bool holds_out_documents() const { return holds_out_part() && validation_split == ValidationSplit::documents; }

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
  LrSchedule schedule = LrSchedule::cosine;
  int64_t warmup = 0, decay = 0;
  double z_loss = 0;

  double rate(int64_t steps, int64_t step) const {
    return learning_rate(schedule, {lr, min_lr, warmup, decay, steps}, step);
  }
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
  SpikeAction action = SpikeAction::none;
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
  RecomputeMode recompute = RecomputeMode::none;
  Precision precision = Precision::automatic;
  int64_t fp8_skip = 0;
  DType expert_gradients = DType::f32;
  DType master_weights = DType::f32;
  LossScaleSection loss_scale;
  // By which the loss of the first step is multiplied; 0: none is. f16 needs it, and it grows from there.
  double first_loss_scale() const { return loss_scale.initial.value_or(precision == Precision::fp16 ? 65536 : 0); }
  bool deterministic = false;
  Reproducible reproducible = Reproducible::none;
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
  OffloadedActivations activations = OffloadedActivations::none;
  OffloadTarget to = OffloadTarget::host;
  std::string path;
  bool operator==(const OffloadSection&) const = default;
};

struct CheckpointSection {
  int64_t every = 0, keep = 3, keep_every = 0, keep_best = 0;
  bool at_end = true;
  DType dtype = DType::f32;
  ResumeChoice resume;
  std::vector<IdentityPart> accept_changed;
  bool background = true;
  int64_t local_every = 0;
  std::string local_dir = "/dev/shm";
  bool replication = true;
  int64_t replication_jump = 0;  // 0: to the next host

  bool accepts_changed(IdentityPart part) const { return std::ranges::count(accept_changed, part) > 0; }
  bool operator==(const CheckpointSection&) const = default;
};

struct LogSection {
  std::string on_event;
  int64_t tensor_stats_every = 0;  // 0: never
  StatisticsFormat tensor_stats_format = StatisticsFormat::automatic;
  bool grad_noise_scale = false;
  int64_t profile_every = 0;  // steps; 0: never
  bool tensorboard = false;
  std::string prometheus;  // [HOST]:PORT; empty: none
  bool operator==(const LogSection&) const = default;
};

struct RunConfig {
  std::string name;
  DeviceChoice device = DeviceChoice::automatic;
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
