// Program: the local view of one rank class. Regions are ordered lists of ops; a schedule of actions runs the regions;
// every value has a buffer, every buffer an offset in the arena of its space. Executors add nothing to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sextant {

enum class BufferClass : uint8_t {
  weights,
  gradients,
  optimizer,    // moments
  cache,        // key-value caches
  feeds,        // and fetches: what crosses the boundary of a step
  saved,        // made in forward, read in backward
  activations,  // made and read within a region
  workspace,    // scratch inside one kernel
};

struct Buffer {
  BufferClass kind = BufferClass::activations;
  MemorySpace space = MemorySpace::device;
  int64_t offset = 0;  // bytes from the start of the space's arena
  int64_t bytes = 0;   // of one slot
  // How many microbatches hold their own copy at once: microbatch m uses slot m % slots, at offset + slot·bytes.
  int32_t slots = 1;
  int64_t total_bytes() const { return bytes * slots; }
};

enum class RegionKind : uint8_t {
  forward,
  backward,  // input gradients, and weight gradients unless the schedule defers them
  weight,    // deferred weight gradients
  update,
};

struct Region {
  RegionKind kind = RegionKind::forward;
  int chunk = 0;
  std::vector<Op> ops;
};

// One step of the schedule: run a region for a microbatch.
struct Action {
  RegionKind region = RegionKind::forward;
  int chunk = 0;
  int microbatch = 0;
  // It and the action behind it are parts of one unit: a backward and its weight gradients, or a pair, the forward of
  // one microbatch beside the backward of another.
  bool with_next = false;
  bool operator==(const Action&) const = default;
};

// Whether both run the same region for the same microbatch, in whatever unit.
bool same_work(const Action& a, const Action& b);

// The actions that run as one, from the first of `actions` on: mostly just that one. Empty when there are none.
std::span<const Action> leading_unit(std::span<const Action> actions);

// Whether a unit runs a forward beside a backward.
bool is_pair(std::span<const Action> unit);

constexpr size_t kMostParts = 3;  // of a unit

template <class Visit>
void for_each_unit(std::span<const Action> actions, Visit visit) {
  while (!actions.empty()) {
    std::span<const Action> unit = leading_unit(actions);
    visit(unit);
    actions = actions.subspan(unit.size());
  }
}

// The bytes of one space: weights, gradients, state in [0, persistent), and all of it.
struct ArenaExtent {
  int64_t persistent = 0, all = 0;
  bool operator==(const ArenaExtent&) const = default;
};

struct Program {
  std::string name;
  Mesh mesh;
  int stage_rank = 0;      // the coordinate on the pipeline axis of the ranks that run this
  int gradient_slots = 1;  // how many gradients on their way to the previous stage have a buffer of their own
  std::vector<Value> values;
  std::vector<Region> regions;
  std::vector<Action> schedule;
  std::vector<Buffer> buffers;
  std::vector<int32_t> workspaces;  // per op, over all regions in order: its scratch buffer, or -1
  int64_t persistent_bytes = 0;     // of the device: weights, gradients, state: [0, persistent_bytes)
  int64_t arena_bytes = 0;          // of the device: all of it
  ArenaExtent host_arena = {};      // of the host's arena, where something is offloaded
  ArenaExtent nvme_arena = {};      // of the file, where something is offloaded to one

  ArenaExtent arena(MemorySpace space) const;

  const Value& operator[](ValueId id) const { return values[static_cast<size_t>(id)]; }
  const Value* find(std::string_view path) const;
  const Value& at(std::string_view path) const;  // BUG when there is none
};

// The space whose cores run an op: the host's where none of its operands is on the device.
MemorySpace space_of(const Program& program, const Op& op);

// Whether an op is a copy from the device to the host.
bool copies_to_host(const Program& program, const Op& op);

// Whether an op is a copy between the host and the file of the nvme space.
bool is_file_copy(const Program& program, const Op& op);

// The cost of an op on one rank, and the message that the rank sends: the op's definition evaluated on local shapes.
Cost local_cost(const Program& program, const Op& op);
std::optional<Message> local_message(const Program& program, const Op& op);

// The rank with these coordinates, but another place in the pipeline. BUG in a mesh without one.
int rank_at_stage(const Program& program, Coordinate at, int64_t stage_rank);

// Whom a send or recv talks to, and the tag of the message, which is the same at both ends and another in the other
// direction.
struct StagePeer {
  int rank = 0;
  int64_t tag = 0;
};
StagePeer peer_of(const Program& program, const Coordinate& at, const Op& op);

// Where the pipeline's ranks are copies of one another, a microbatch goes on at the other copy behind the turn of the
// V, from the second chunk on: the coordinate whose part of a batch a chunk of the rank at `at` works on.
Coordinate coordinate_of_data(const Program& program, int chunk, Coordinate at);
// The name there of a feed that is another for the two chunks.
std::string crossed_path(std::string_view path);

// The microbatches that a region runs for first and last in a step.
int first_microbatch(const Program& program, const Region& region);
int last_microbatch(const Program& program, const Region& region);

std::string_view name_of(BufferClass kind);
std::string_view name_of(RegionKind kind);

}  // namespace sextant
