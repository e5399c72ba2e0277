// Where a model is, given what a person typed: a Hugging Face directory, or the --out directory of a run.
#pragma once

#include <filesystem>
#include <string_view>

namespace sextant {

// The file that only checkpoints of runs hold. It is written last, so a directory with it is complete.
inline constexpr std::string_view kRunStateFile = "run_state.json";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
// Weights in full precision, where those of the model are rounded.
inline constexpr std::string_view kMasterWeightsFile = "master_weights.safetensors";

// The directory itself when it holds a model, else the newest checkpoint inside it. UserError when there is neither.
std::filesystem::path find_model_directory(const std::filesystem::path& directory);

// UserError when the directory has a manifest and its weights are not as they were written. A directory without one is
// taken as it is; so are descriptions (config.json, tokenizers), which people edit and whose readers say what is wrong
// with them.
void require_whole_weights(const std::filesystem::path& directory);

}  // namespace sextant
