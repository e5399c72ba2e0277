// A checkpoint of a run: a Hugging Face model directory (config.json, tokenizer.json, model*.safetensors), and beside those
// files what only training needs: optimizer.safetensors and run_state.json. It appears whole or not at all. Every rank writes
// what it holds into the same files, which say nothing of the mesh: another mesh may go on from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "data/tokenizer.h"
#include "exec/executor.h"
#include "models/spec.h"
#include "train/crew.h"

namespace sextant {

struct RunState {
  int64_t step = 0;     // steps done
  int64_t samples = 0;  // the data cursor
  int64_t tokens = 0;
};

struct CheckpointContent {
  const StateView& values;  // of the training Program
  const ModelSpec& spec;
  const Tokenizer* tokenizer;  // may be null
  RunState state;
};

// Called by all ranks together.
void save_run_checkpoint(const std::filesystem::path& directory, const CheckpointContent& content, Crew& crew);

// This rank's part of weights and optimizer state, and the run state. UserError when the directory holds another model.
RunState load_run_checkpoint(const std::filesystem::path& directory, Bound& bound, const ModelSpec& spec);

}  // namespace sextant
