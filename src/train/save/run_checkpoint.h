// A checkpoint of a run: a Hugging Face model directory (config.json, tokenizer.json, model*.safetensors, and the files
// of the directory it was trained from that say how the model is used), and beside those files what only training
// needs: optimizer.safetensors, the weights in full precision where those of the model are rounded
// (master_weights.safetensors), run_state.json, and manifest.json with the hash of every file. It appears whole or not
// at all. Every rank writes what it holds into the same files, which say nothing of the mesh: another mesh may go on
// from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "ckpt/file_dtype.h"
#include "ckpt/model_files.h"
#include "comm/host_group.h"
#include "exec/executor.h"
#include "models/dropout_rates.h"
#include "models/expert_files.h"
#include "models/spec.h"
#include "optim/optimizer.h"
#include "run/run_identity.h"
#include "text/tokenizer.h"
#include "train/health/spike_watch.h"

namespace sextant {

// Samples that no step has trained on, because a rewind left them out.
struct SkippedSamples {
  int64_t step = 0;   // the steps done before them
  int64_t first = 0;  // of the run's samples
  int64_t count = 0;
  bool operator==(const SkippedSamples&) const = default;
};

struct RunState {
  int64_t step = 0;                          // steps done
  int64_t samples = 0;                       // the data cursor: those trained on, and those skipped
  int64_t tokens = 0;                        // trained on
  std::vector<SkippedSamples> skipped = {};  // in order
  SpikeState spike = {};

  int64_t skipped_samples() const;

  std::optional<double> validation_loss;  // measured after this step
  std::optional<RunIdentity> identity;    // absent in checkpoints of earlier versions
};

struct CheckpointContent {
  const StateView& values;  // of the training Program
  const ModelSpec& spec;
  const Optimizer& optimizer;
  const Tokenizer* tokenizer;  // may be null
  const ModelFiles& files;     // of the directory that the weights came from
  RunState state;
  FileDType dtype = FileDType::f32;  // of the model's weights; f32, bf16 or f16
  DropoutRates dropout = {};
  ExpertFiles experts = ExpertFiles::as_listed;  // as the directory that the weights came from has them
};

// Files that a checkpoint takes over from the directory that the weights came from; files of a tokenizer only where
// that tokenizer is the one in use.
ModelFiles files_to_keep(const std::filesystem::path& directory, const Tokenizer* tokenizer);

// Called by all ranks together. What went wrong on any of them (the disk is full, a file cannot be written), the same
// on every rank; empty when the checkpoint stands. A failed save leaves what was there.
std::string save_run_checkpoint(const std::filesystem::path& directory, const CheckpointContent& content,
                                HostGroup& group);

// Content of run_state.json. UserError where the text, which came from `file`, cannot be used.
std::string run_state_json(const RunState& state);
RunState parse_run_state(std::string_view text, const std::filesystem::path& file);

// run_state.json of a checkpoint. UserError when it cannot be used.
RunState read_run_state(const std::filesystem::path& directory);

// This rank's part of weights and optimizer state, and the run state. UserError when the directory holds weights of
// another model or the state of another optimizer.
RunState load_run_checkpoint(const std::filesystem::path& directory, Bound& bound, const ModelSpec& spec,
                             const Optimizer& optimizer);

}  // namespace sextant
