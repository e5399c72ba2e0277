#include "train/data/cache_manifest.h"

#include "base/error.h"
#include "base/files.h"
#include "ckpt/manifest.h"

namespace sextant {

namespace fs = std::filesystem;

void write_cache_manifest(const fs::path& directory) {
  Manifest manifest = list_files(directory);
  add_hashes(directory, manifest, hash_alone);
  write_file_atomically(directory / kManifestFile, manifest_json(manifest));
}

std::optional<std::string> damage_of_cache(const fs::path& directory, CacheCheck check) {
  fs::path file = directory / kManifestFile;
  if (!fs::exists(file)) return fmt::format("{} is missing", kManifestFile);
  try {
    Manifest manifest = parse_manifest(read_file(file), file.string());
    std::vector<std::string> damage = wrong_sizes(directory, manifest);
    if (damage.empty() && check == CacheCheck::contents) damage = wrong_content(directory, manifest, hash_alone);
    return damage.empty() ? std::nullopt : std::optional(damage.front());
  } catch (const std::runtime_error&) {
    return fmt::format("{} is not what was written", kManifestFile);
  }
}

}  // namespace sextant
