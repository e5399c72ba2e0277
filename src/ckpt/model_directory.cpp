#include "ckpt/model_directory.h"

#include "base/error.h"
#include "ckpt/checkpoints.h"

namespace sextant {

namespace fs = std::filesystem;

fs::path find_model_directory(const fs::path& directory) {
  constexpr std::string_view kExpected = "a Hugging Face model directory, or the --out directory of a run";
  std::error_code error;
  if (!fs::is_directory(directory, error))
    throw UserError({.place = directory.string(), .got = error ? error.message() : "not a directory",
                     .expected = std::string(kExpected)});
  if (fs::exists(directory / "config.json", error)) return directory;
  if (error) throw UserError({.place = directory.string(), .got = error.message(), .expected = std::string(kExpected)});
  if (auto latest = latest_checkpoint(directory, kRunStateFile)) return latest->path;
  throw UserError({.place = directory.string(), .got = "holds neither config.json nor a checkpoint",
                   .expected = std::string(kExpected)});
}

}  // namespace sextant
