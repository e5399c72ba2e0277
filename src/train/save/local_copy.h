// Local checkpoints as files. FOLDER/held-by-H/rank-R-S.bytes holds what rank R keeps of weights and optimizer state,
// byte for byte as its Program lays it out, in one of two slots S; rank-R-S.json beside it, written last, says what it
// is and has its hash. A slot that is being written has no such file, and the other one is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/disk.h"
#include "exec/executor.h"
#include "run/local_slots.h"

namespace sextant {

struct LocalManifest {
  int64_t rank = 0;    // whose state it is
  int64_t step = 0;    // steps done
  int64_t bytes = 0;   // of the state
  std::string layout;  // state_layout of the rank, as 16 digits
  std::string hash;    // of the bytes
  std::string state;   // run_state.json
};
std::string local_manifest_json(const LocalManifest& manifest);
// UserError when the text is none.
LocalManifest parse_local_manifest(std::string_view text, std::string_view place);

// Which parts of which tensors a rank holds, in which order and type, as one number. Ranks with the same number hold
// the same state: replicas, on this mesh or another.
uint64_t state_layout(const Program& program, int rank);

struct LocalCopy {
  LocalManifest manifest;
  std::filesystem::path data;
};

// The copies in a folder that look whole; files that cannot be read are left out, and named in `problems`.
std::vector<LocalCopy> list_local_copies(const std::filesystem::path& folder, std::vector<std::string>& problems);

// The damage of a copy, after reading all of it; empty when it is whole.
std::string damage_of(const LocalCopy& copy);

// Into a Program with the same layout. UserError when the file has gone.
void load_local_copy(const LocalCopy& copy, Bound& bound);

// One slot of a copy, to write. The space is reserved when it is made: RunError where there is none.
class LocalSlot {
 public:
  LocalSlot(const std::filesystem::path& folder, int holder, int rank, int slot, int64_t bytes);

  void begin();  // from here to commit the slot holds nothing
  void write_at(int64_t offset, std::span<const std::byte> bytes) { data_.write_at(offset, bytes); }
  void commit(const LocalManifest& manifest);
  bool holds_copy() const;

 private:
  std::filesystem::path manifest_;
  OutputFile data_;
};

// The state of a rank as a run of bytes, in the order of its Program's values, in pieces.
class StateReader {
 public:
  explicit StateReader(const StateView& values) : values_(values) {}
  void fill(std::span<std::byte> piece);  // the next bytes

 private:
  const StateView& values_;
  size_t value_ = 0;
  int64_t offset_ = 0;
};

// Removes every copy but those of `kept_step` (-1: all of them), and what is left of others. For the owner of the run.
void discard_local_copies(const std::filesystem::path& folder, int64_t kept_step);
// Removes those of steps before `oldest`.
void discard_older_copies(const std::filesystem::path& folder, int64_t oldest);
// Removes all that these ranks hold, whoever's it is.
void discard_copies_held_by(const std::filesystem::path& folder, int first, int count);

}  // namespace sextant
