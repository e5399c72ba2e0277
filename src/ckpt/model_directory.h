// Where a model is, given what a person typed: a Hugging Face directory, or the --out directory of a run.
#pragma once

#include <filesystem>
#include <string_view>

namespace sextant {

// The file that only checkpoints of runs hold. It is written last, so a directory with it is complete.
inline constexpr std::string_view kRunStateFile = "run_state.json";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";

// The directory itself when it holds a model, else the newest checkpoint inside it. UserError when there is neither.
std::filesystem::path find_model_directory(const std::filesystem::path& directory);

// UserError when the directory has a manifest and a file of the model in it (not those that only training needs) is not as it
// was written. A directory without one is taken as it is.
void require_whole_model(const std::filesystem::path& directory);

}  // namespace sextant
