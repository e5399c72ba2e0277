#include "train/save/local_copy.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/path_error.h"
#include "ckpt/slices.h"
#include "train/save/snapshot.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

fs::path holder_directory(const fs::path& folder, int holder) {
  return folder / fmt::format("held-by-{}", holder);
}

// Where a rank of a Program stands, without any memory.
class LayoutView final : public StateView {
 public:
  LayoutView(const Program& program, int rank) : program_(program), rank_(rank) {}
  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }
  void read(const Value& value, std::span<std::byte>, int64_t) const override { BUG("{} has no bytes", value.path); }

 private:
  const Program& program_;
  int rank_;
};

[[noreturn]] void refuse_manifest(std::string_view place, std::string_view key) {
  throw UserError({.place = std::string(place),
                   .got = fmt::format("no usable \"{}\"", key),
                   .expected = "the description of a local checkpoint, as Sextant writes it"});
}

void for_each_manifest(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator holder(folder, error), end; !error && holder != end; holder.increment(error)) {
    std::error_code inner;
    for (fs::directory_iterator at(holder->path(), inner), last; !inner && at != last; at.increment(inner))
      if (at->path().extension() == ".json") found.push_back(at->path());
  }
  std::ranges::sort(found);
  for (const fs::path& path : found) visit(path);
}

fs::path data_of(fs::path manifest) {
  return manifest.replace_extension(".bytes");
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

int64_t step_in(const fs::path& manifest) {
  try {
    return parse_local_manifest(read_file(manifest), manifest.string()).step;
  } catch (const std::runtime_error&) {
    return -1;
  }
}

}  // namespace

std::string local_manifest_json(const LocalManifest& m) {
  return nlohmann::ordered_json{{"rank", m.rank},     {"step", m.step}, {"bytes", m.bytes},
                                {"layout", m.layout}, {"hash", m.hash}, {"state", m.state}}
             .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

LocalManifest parse_local_manifest(std::string_view text, std::string_view place) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  auto count = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer() || json[key] < 0 ||
        json[key] > (int64_t{1} << 60))
      refuse_manifest(place, key);
    return json[key].get<int64_t>();
  };
  auto words = [&](const char* key) {
    if (!json.contains(key) || !json[key].is_string()) refuse_manifest(place, key);
    return json[key].get<std::string>();
  };
  LocalManifest manifest{.rank = count("rank"), .step = count("step"), .bytes = count("bytes")};
  manifest.layout = words("layout");
  manifest.hash = words("hash");
  manifest.state = words("state");
  return manifest;
}

uint64_t state_layout(const Program& program, int rank) {
  LayoutView view(program, rank);
  ContentHash hash;
  auto add = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  for (const Value& value : program.values) {
    if (!is_checkpointed(value)) continue;
    add(fmt::format("{} {} {} {} {}", value.path, value.stored_path(), value.stored.first_row, name_of(value.dtype),
                    value.local_bytes().n));
    for (const Box& box : held_boxes(view, value)) {
      for (const std::vector<int64_t>* dims : {&box.from, &box.to, &box.extent})
        for (int64_t dim : *dims) add(fmt::format(" {}", dim));
      add(";");
    }
    add("\n");
  }
  return hash.value();
}

std::vector<LocalCopy> list_local_copies(const fs::path& folder, std::vector<std::string>& problems) {
  std::vector<LocalCopy> found;
  for_each_manifest(folder, [&](const fs::path& path) {
    try {
      LocalCopy copy{parse_local_manifest(read_file(path), path.string()), data_of(path)};
      std::error_code error;
      auto size = static_cast<int64_t>(fs::file_size(copy.data, error));
      if (error || size != copy.manifest.bytes)
        problems.push_back(
            fmt::format("{} has {} bytes, not {}", copy.data.string(), error ? 0 : size, copy.manifest.bytes));
      else
        found.push_back(std::move(copy));
    } catch (const std::runtime_error& error) {
      problems.emplace_back(error.what());
    }
  });
  return found;
}

std::string damage_of(const LocalCopy& copy) {
  try {
    if (hex(hash_file(copy.data)) == copy.manifest.hash) return "";
    return fmt::format("{} has other content than was written", copy.data.string());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

void load_local_copy(const LocalCopy& copy, Bound& bound) {
  MappedFile file(copy.data);
  int64_t at = 0;
  for (const Value& value : bound.program().values) {
    if (!is_checkpointed(value)) continue;
    int64_t bytes = value.local_bytes().n;
    BUG_IF(at + bytes > static_cast<int64_t>(file.size()), "{} is no copy of this rank's state", copy.data.string());
    bound.write(value, file.bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(bytes)));
    at += bytes;
  }
}

LocalSlot::LocalSlot(const fs::path& folder, int holder, int rank, int slot, int64_t bytes)
    : manifest_([&] {
        fs::path place = holder_directory(folder, holder);
        std::error_code error;
        fs::create_directories(place, error);
        if (!error) fs::permissions(folder, fs::perms::owner_all, error);  // weights are nobody else's business
        if (error) throw RunError(place.string(), fmt::format("cannot create: {}", error.message()));
        return place / fmt::format("rank-{}-{}.json", rank, slot);
      }()),
      data_(data_of(manifest_), bytes, Creation::shared) {}

void LocalSlot::begin() {
  std::error_code error;
  fs::remove(manifest_, error);
  if (error) throw RunError(manifest_.string(), fmt::format("cannot remove: {}", error.message()));
}

void LocalSlot::commit(const LocalManifest& manifest) {
  write_file_atomically(manifest_, local_manifest_json(manifest));
}

bool LocalSlot::holds_copy() const {
  return is_there(manifest_);
}

void StateReader::fill(std::span<std::byte> piece) {
  const std::vector<Value>& values = values_.program().values;
  while (!piece.empty()) {
    const Value& value = values[value_];
    int64_t left = is_checkpointed(value) ? value.local_bytes().n - offset_ : 0;
    auto size = std::min(piece.size(), static_cast<size_t>(left));
    if (size > 0) values_.read(value, piece.first(size), offset_);
    piece = piece.subspan(size);
    offset_ += static_cast<int64_t>(size);
    if (static_cast<int64_t>(size) == left) ++value_, offset_ = 0;
  }
}

void discard_local_copies(const fs::path& folder, int64_t kept_step) {
  if (kept_step < 0) return remove_quietly(folder);
  std::vector<fs::path> kept;
  for_each_manifest(folder, [&](const fs::path& path) {
    if (step_in(path) != kept_step) return;
    kept.push_back(path);
    kept.push_back(data_of(path));
  });
  std::error_code error;
  for (fs::directory_iterator holder(folder, error), end; !error && holder != end; holder.increment(error)) {
    std::error_code inner;
    for (fs::directory_iterator at(holder->path(), inner), last; !inner && at != last; at.increment(inner))
      if (std::ranges::find(kept, at->path()) == kept.end()) remove_quietly(at->path());
  }
}

void discard_older_copies(const fs::path& folder, int64_t oldest) {
  for_each_manifest(folder, [&](const fs::path& path) {
    if (step_in(path) >= oldest) return;
    remove_quietly(path);
    remove_quietly(data_of(path));
  });
}

void discard_copies_held_by(const fs::path& folder, int first, int count) {
  for (int holder = first; holder < first + count; ++holder) remove_quietly(holder_directory(folder, holder));
}

}  // namespace sextant
