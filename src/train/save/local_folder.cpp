#include "train/save/local_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/path_error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFile = "local_checkpoints.json";

// All folders of runs in this place begin so.
std::string prefix_of(const fs::path& out) {
  ContentHash hash;
  std::string place = fs::weakly_canonical(out).string();
  hash.add(std::as_bytes(std::span(place)));
  return fmt::format("sextant-{}-{}-", ::getuid(), hex(hash.value()));
}

}  // namespace

fs::path known_local_folder(const fs::path& out) {
  if (!fs::is_regular_file(look_at(out / kFile))) return {};
  try {
    nlohmann::json json = nlohmann::json::parse(read_file(out / kFile), nullptr, false);
    if (!json.is_object() || !json.contains("folder") || !json["folder"].is_string()) return {};
    fs::path folder = json["folder"].get<std::string>();
    // Folders are removed: nothing but one of ours is believed, whatever the file says.
    return folder.filename().string().starts_with(prefix_of(out)) ? folder : fs::path();
  } catch (const UserError&) {
    return {};
  }
}

fs::path local_folder_of(const RunConfig& run, const fs::path& out) {
  if (run.checkpoint.local_every == 0) return {};
  fs::path known = known_local_folder(out);
  if (!known.empty() && known.parent_path() == fs::path(run.checkpoint.local_dir)) return known;
  std::random_device device;
  uint64_t id = (uint64_t{device()} << 32) | device();
  fs::path folder = fs::path(run.checkpoint.local_dir) / (prefix_of(out) + hex(id));
  write_file_atomically(out / kFile, nlohmann::json{{"folder", folder.string()}}.dump() + "\n");
  return folder;
}

void remove_abandoned_folders(const fs::path& folder) {
  std::string name = folder.filename().string(), prefix = name.substr(0, name.rfind('-') + 1);
  std::error_code error;
  for (fs::directory_iterator at(folder.parent_path(), error), end; !error && at != end; at.increment(error)) {
    std::string other = at->path().filename().string();
    std::error_code ignored;
    if (other != name && other.starts_with(prefix)) fs::remove_all(at->path(), ignored);
  }
}

}  // namespace sextant
