#include "ckpt/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/interruptions.h"
#include "ckpt/disk.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kReadBytes = 1 << 20;

struct Block {
  size_t file = 0;
  int64_t offset = 0, bytes = 0;
};

// 0 when the bytes cannot be read. Read rather than mapped: a bad sector is then an error, not a signal.
uint64_t hash_of_block(const fs::path& path, const Block& block) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return 0;
  ContentHash hash;
  std::vector<std::byte> buffer(kReadBytes);
  Interruptions interruptions;
  for (int64_t done = 0; done < block.bytes;) {
    size_t want = static_cast<size_t>(std::min<int64_t>(block.bytes - done, static_cast<int64_t>(kReadBytes)));
    ssize_t n = ::pread(file.get(), buffer.data(), want, block.offset + done);
    if (n < 0 && interruptions.may_try_again()) continue;
    if (n <= 0) return 0;
    interruptions.passed();
    hash.add(std::span(buffer).first(static_cast<size_t>(n)));
    done += n;
  }
  uint64_t value = hash.value();
  return value == 0 ? 1 : value;
}

// The hash of every file, "" where a part could not be read.
std::vector<std::string> hashes_of(const fs::path& directory, const std::vector<ManifestFile>& files,
                                   const ShareBlocks& share) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < files.size(); ++i)
    for (int64_t at = 0; at < files[i].bytes; at += kHashBlockBytes)
      blocks.push_back({i, at, std::min(kHashBlockBytes, files[i].bytes - at)});
  std::vector<uint64_t> values =
      share(blocks.size(), [&](size_t i) { return hash_of_block(directory / files[blocks[i].file].name, blocks[i]); });
  std::vector<ContentHash> sums(files.size());
  std::vector<bool> readable(files.size(), true);
  for (size_t i = 0; i < blocks.size(); ++i) {
    sums[blocks[i].file].add(std::as_bytes(std::span(&values[i], 1)));
    if (values[i] == 0) readable[blocks[i].file] = false;
  }
  std::vector<std::string> hashes;
  for (size_t i = 0; i < files.size(); ++i) hashes.push_back(readable[i] ? hex(sums[i].value()) : "");
  return hashes;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

[[noreturn]] void refuse(std::string_view place, std::string got) {
  throw UserError({.place = std::string(place), .got = std::move(got), .expected = "a manifest as Sextant writes it"});
}

}  // namespace

std::vector<uint64_t> hash_alone(size_t count, const std::function<uint64_t(size_t)>& hash_of) {
  std::vector<uint64_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = hash_of(i);
  return values;
}

Manifest list_files(const fs::path& directory) {
  Manifest manifest;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name != kManifestFile && fs::is_regular_file(at->symlink_status(error)) && !error)
      manifest.files.push_back({name, static_cast<int64_t>(at->file_size(error)), ""});
  }
  if (error) throw_disk_error(directory, "cannot be read", error.value());
  std::ranges::sort(manifest.files, {}, &ManifestFile::name);
  return manifest;
}

void add_hashes(const fs::path& directory, Manifest& manifest, const ShareBlocks& share) {
  std::vector<std::string> hashes = hashes_of(directory, manifest.files, share);
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i].empty())
      throw RunError((directory / manifest.files[i].name).string(), "cannot be read back after writing");
    manifest.files[i].hash = hashes[i];
  }
}

std::string manifest_json(const Manifest& manifest) {
  nlohmann::ordered_json json{{"format", kFormat},
                              {"hash", "xxh3 of the xxh3 of blocks of 64 MiB"},
                              {"files", nlohmann::ordered_json::object()}};
  for (const ManifestFile& file : manifest.files)
    json["files"][file.name] = {{"bytes", file.bytes}, {"xxh3", file.hash}};
  return json.dump(2) + "\n";
}

Manifest parse_manifest(std::string_view text, std::string_view place) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_object()) refuse(place, "no list of files");
  if (!json.contains("format") || json["format"] != kFormat) refuse(place, "an unknown format");
  Manifest manifest;
  for (const auto& [name, file] : json["files"].items()) {
    if (!is_plain_name(name) || !file.is_object() || !file.contains("bytes") || !file["bytes"].is_number_unsigned() ||
        file["bytes"].get<uint64_t>() > static_cast<uint64_t>(INT64_MAX) || !file.contains("xxh3") ||
        !file["xxh3"].is_string())
      refuse(place, fmt::format("no usable entry for {}", name));
    manifest.files.push_back({name, file["bytes"].get<int64_t>(), file["xxh3"].get<std::string>()});
  }
  std::ranges::sort(manifest.files, {}, &ManifestFile::name);
  return manifest;
}

std::vector<std::string> wrong_sizes(const fs::path& directory, Manifest& manifest) {
  std::vector<std::string> damage;
  std::erase_if(manifest.files, [&](const ManifestFile& file) {
    std::error_code error;
    auto bytes = static_cast<int64_t>(fs::file_size(directory / file.name, error));
    if (error == std::errc::no_such_file_or_directory)
      damage.push_back(file.name + " is missing");
    else if (error)
      damage.push_back(fmt::format("{} cannot be read: {}", file.name, error.message()));
    else if (bytes != file.bytes)
      damage.push_back(fmt::format("{} has {} bytes, expected {}", file.name, bytes, file.bytes));
    return error || bytes != file.bytes;
  });
  return damage;
}

std::vector<std::string> wrong_content(const fs::path& directory, const Manifest& manifest, const ShareBlocks& share) {
  std::vector<std::string> damage, hashes = hashes_of(directory, manifest.files, share);
  for (size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i] != manifest.files[i].hash)
      damage.push_back(fmt::format("{} {}", manifest.files[i].name,
                                   hashes[i].empty() ? "cannot be read" : "has other content than was written"));
  return damage;
}

}  // namespace sextant
