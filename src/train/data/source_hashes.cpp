#include "train/data/source_hashes.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSourcesFile = "sources.json";

std::string key_of(const fs::path& file) {
  return fs::absolute(file).lexically_normal().string();
}

}  // namespace

SourceHashes::SourceHashes(const fs::path& cache) : place_(cache / kSourcesFile) {
  std::error_code ignored;
  if (!fs::is_regular_file(place_, ignored)) return;
  nlohmann::json json = nlohmann::json::parse(read_file(place_), nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [name, known] : json.items()) {
    if (!known.is_object() || !known.contains("bytes") || !known["bytes"].is_number_integer() ||
        !known.contains("time") || !known["time"].is_number_integer() || !known.contains("hash") ||
        !known["hash"].is_string())
      continue;
    known_[name] = {known["bytes"].get<int64_t>(), known["time"].get<int64_t>(), known["hash"].get<std::string>(),
                    true};
  }
}

SourceHashes::Known SourceHashes::state_of(const fs::path& file) {
  return {.bytes = static_cast<int64_t>(fs::file_size(file)),
          .time = static_cast<int64_t>(fs::last_write_time(file).time_since_epoch().count()),
          .hash = {}};
}

std::string SourceHashes::of(const fs::path& file) {
  const Known now = state_of(file);
  Known& known = known_[key_of(file)];
  if (known.hash.empty() || known.bytes != now.bytes || known.time != now.time) {
    known = now;
    known.hash = hex(hash_file(file));
    changed_ = true;
  }
  return known.hash;
}

void SourceHashes::require_unchanged(std::span<const fs::path> files) const {
  for (const fs::path& file : files) {
    auto known = known_.find(key_of(file));
    if (known == known_.end() || !known->second.remembered) continue;
    if (hex(hash_file(file)) == known->second.hash) continue;
    throw UserError(
        {.place = file.string(),
         .got = "its content has changed since it was tokenized before, but not its size and time",
         .expected = "the same content",
         .hint = "it may be damaged: restore it from where it came; if it was changed on purpose, touch it"});
  }
}

std::string SourceHashes::remember() const {
  if (!changed_) return "";
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, known] : known_)
    json[name] = {{"bytes", known.bytes}, {"time", known.time}, {"hash", known.hash}};
  try {
    fs::create_directories(place_.parent_path());
    // Names may hold any bytes.
    write_file_atomically(place_, json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace sextant
