// The checkpoints of a run: <run>/step-000123, one directory each. `witness` names a file that every complete
// checkpoint holds ("" asks for none); a directory without it is not listed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace sextant {

struct Checkpoint {
  int64_t step = 0;
  std::filesystem::path path;
};

std::filesystem::path checkpoint_path(const std::filesystem::path& run, int64_t step);
std::optional<int64_t> step_of_checkpoint(
    const std::filesystem::path& checkpoint);  // by its name; nothing for another name

// Oldest first. None when the run directory does not exist; UserError when it is none, RunError when it
// cannot be read this time.
std::vector<Checkpoint> list_checkpoints(const std::filesystem::path& run, std::string_view witness = "");
std::optional<Checkpoint> latest_checkpoint(const std::filesystem::path& run, std::string_view witness = "");

}  // namespace sextant
