// manifest.json: the size and the hash of every file of a directory, so that one that was cut short, overwritten, mixed
// with files of another checkpoint or damaged on disk is recognised before it is used.
//
// A file is hashed in blocks, which ranks or threads share; its hash is the hash of its blocks' hashes, in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr int64_t kHashBlockBytes = 64 << 20;

struct ManifestFile {
  std::string name;  // plain: beside the manifest
  int64_t bytes = 0;
  std::string hash;
};

struct Manifest {
  std::vector<ManifestFile> files;  // by name
};

// Calls hash_of(i) for every i below `count`, among all who take part, and returns all results to each of them. hash_of
// does not throw; 0 stands for a block that could not be read.
using ShareBlocks = std::function<std::vector<uint64_t>(size_t count, const std::function<uint64_t(size_t)>& hash_of)>;
std::vector<uint64_t> hash_alone(size_t count, const std::function<uint64_t(size_t)>& hash_of);

// All regular files of the directory with their sizes, the manifest itself aside; no hashes yet. RunError when it
// cannot be read.
Manifest list_files(const std::filesystem::path& directory);

// Adds the hashes. All who share the work must bring the same list; RunError, on each of them, when a file cannot be
// read.
void add_hashes(const std::filesystem::path& directory, Manifest& manifest, const ShareBlocks& share);

std::string manifest_json(const Manifest& manifest);
// UserError when the text is none.
Manifest parse_manifest(std::string_view text, std::string_view place);

// Differences between the directory and its manifest, one clause each ("model.safetensors is missing"). wrong_sizes
// compares sizes and removes files from the manifest that are missing or of another size. wrong_content hashes the
// files that the manifest lists.
std::vector<std::string> wrong_sizes(const std::filesystem::path& directory, Manifest& manifest);
std::vector<std::string> wrong_content(const std::filesystem::path& directory, const Manifest& manifest,
                                       const ShareBlocks& share);

}  // namespace sextant
