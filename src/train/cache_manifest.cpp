#include "train/cache_manifest.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kManifest = "manifest.json";

std::optional<std::string> damage_of_file(const fs::path& path, const nlohmann::json& entry, CacheCheck check) {
  std::error_code failure;
  const std::string name = path.filename().string();
  uint64_t bytes = fs::file_size(path, failure), expected = entry.at("bytes").get<uint64_t>();
  if (failure) return fmt::format("{}: {}", name, failure.message());
  if (bytes != expected) return fmt::format("{} has {} bytes, expected {}", name, bytes, expected);
  if (check == CacheCheck::sizes) return std::nullopt;
  std::string hash = hex(hash_file(path)), written = entry.at("xxh3").get<std::string>();
  if (hash == written) return std::nullopt;
  return fmt::format("the content of {} has changed since it was written (its hash is {}, expected {})", name, hash,
                     written);
}

}  // namespace

void write_cache_manifest(const fs::path& directory) {
  nlohmann::json files = nlohmann::json::object();
  for (const fs::directory_entry& file : fs::directory_iterator(directory))
    files[file.path().filename().string()] = {{"bytes", file.file_size()}, {"xxh3", hex(hash_file(file.path()))}};
  write_file_atomically(directory / kManifest, nlohmann::json{{"files", files}}.dump(2) + "\n");
}

std::optional<std::string> damage_of_cache(const fs::path& directory, CacheCheck check) {
  if (!fs::exists(directory / kManifest)) return fmt::format("{} is missing", kManifest);
  try {
    nlohmann::json manifest = nlohmann::json::parse(read_file(directory / kManifest));
    for (const auto& [name, entry] : manifest.at("files").items())
      if (auto damage = damage_of_file(directory / fs::path(name).filename(), entry, check)) return damage;
  } catch (const nlohmann::json::exception&) {
    return fmt::format("{} is not what was written", kManifest);
  }
  return std::nullopt;
}

}  // namespace sextant
