// The manifest of a token cache (ckpt/manifest.h), written last. What a crash, a full disk or a hand has changed since
// is found before it is trained on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sextant {

enum class CacheCheck {
  sizes,     // of the files only
  contents,  // and their hashes, for which every file is read once
};

// Of the files that lie in the directory now.
void write_cache_manifest(const std::filesystem::path& directory);

// The damage of the directory, as a clause: "train.bin has 100 bytes, expected 200"; nullopt when it is as it was
// written.
std::optional<std::string> damage_of_cache(const std::filesystem::path& directory, CacheCheck check);

}  // namespace sextant
