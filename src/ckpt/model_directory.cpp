#include "ckpt/model_directory.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hub_hint.h"
#include "base/path_error.h"
#include "ckpt/checkpoints.h"
#include "ckpt/manifest.h"
#include "models/hf_adapter.h"

namespace sextant {

namespace fs = std::filesystem;

fs::path find_model_directory(const fs::path& directory) {
  constexpr std::string_view kExpected = "a Hugging Face model directory, or the --out directory of a run";
  std::error_code error;
  bool is_directory = fs::is_directory(directory, error);
  require_looked_at(directory, error);
  if (!is_directory)
    throw UserError({.place = directory.string(),
                     .got = !error                                          ? "not a directory"
                            : error == std::errc::no_such_file_or_directory ? "directory not found"
                                                                            : error.message(),
                     .expected = std::string(kExpected),
                     .hint = error ? model_download_hint(directory.string()) : ""});
  if (fs::exists(directory / "config.json", error)) return directory;
  require_looked_at(directory, error);
  if (error) throw UserError({.place = directory.string(), .got = error.message(), .expected = std::string(kExpected)});
  if (auto latest = latest_checkpoint(directory, kRunStateFile)) return latest->path;
  if (auto adapter = complaint_about_adapter(directory)) throw UserError(*adapter);
  throw UserError({.place = directory.string(),
                   .got = "holds neither config.json nor a checkpoint",
                   .expected = std::string(kExpected)});
}

void require_whole_weights(const fs::path& directory) {
  fs::path file = directory / kManifestFile;
  if (!is_there(file)) return;
  Manifest manifest = parse_manifest(read_file(file), file.string());
  std::erase_if(manifest.files, [](const ManifestFile& f) {
    return f.name == kOptimizerFile || f.name == kMasterWeightsFile || !f.name.ends_with(".safetensors");
  });
  std::vector<std::string> damage = wrong_sizes(directory, manifest);
  for (std::string& wrong : wrong_content(directory, manifest, hash_alone)) damage.push_back(std::move(wrong));
  if (!damage.empty())
    throw UserError({.place = directory.string(),
                     .got = fmt::format("the weights are damaged: {}", fmt::join(damage, "; ")),
                     .expected = fmt::format("weights as {} describes them", kManifestFile),
                     .hint = fmt::format("if you changed them on purpose, remove {}", kManifestFile)});
}

}  // namespace sextant
