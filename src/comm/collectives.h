// Collectives over a group of ranks, written once over send and receive. Sums are made in the order of the group's
// ranks, so the result is the same on every rank, and the same bits on threads and on MPI. Sizes are in elements of
// `dtype`.
//
// Each rank of the group must call the same collectives in the same order on the same tag. Every rank exchanges
// directly with every other, so bytes sent are what the textbook says: all-gather and all-to-all (n−1)/n of the whole,
// reduce-scatter likewise, all-reduce twice that. A group of one sends nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "comm/transport.h"

namespace sextant {

struct Group {
  std::vector<int> ranks;  // in coordinate order, this rank among them
  int self = 0;            // index of this rank in `ranks`

  int size() const { return static_cast<int>(ranks.size()); }
};

Group group_of_ranks(std::vector<int> ranks, int own_rank);

// How `count` elements are cut into the parts of an all-reduce: part i is [first, first + count) elements. The first
// count % parts parts are one longer.
struct Part {
  int64_t first = 0, count = 0;
};
Part part_of(int64_t count, int parts, int index);

enum class Reduction : uint8_t { sum, max };

class PayloadCheck;  // payload_check.h

// Endpoint of one lane of a rank for collectives: its transport, its tag, and the bytes it has sent so far. Used by one
// thread at a time.
struct Channel {
  Transport& transport;
  int tag = 0;
  int64_t bytes_sent = 0;
  std::vector<Ticket> under_way = {};  // within one collective; kept here so that a warm run allocates nothing
  PayloadCheck* check = nullptr;       // null: messages travel unchecked
};

// own: this rank's part; whole: ranks() parts of equal size, one behind the other. own may be its own place in whole.
void all_gather(Channel& channel, const Group& group, std::span<const std::byte> own, std::span<std::byte> whole);

// Sends part i of `parts` to rank i and receives one from each: parts of equal size.
void all_to_all(Channel& channel, const Group& group, std::span<const std::byte> parts, std::span<std::byte> received);

// own = the sum over ranks of their part `self` of `parts` (equal sizes). Scratch: as large as one part. No two of the
// three overlap. Sums and maxima are made in f32, f64, i32 and i64, and of bf16 and f16 (each sum of two in f32,
// rounded to the nearest); a NaN among the terms stays one.
struct ReduceScatter {
  std::span<const std::byte> parts;
  std::span<std::byte> own;
  std::span<std::byte> scratch;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
};
void reduce_scatter(Channel& channel, const Group& group, const ReduceScatter& call);

// In place. Scratch: all_reduce_scratch bytes.
struct AllReduce {
  std::span<std::byte> data;
  std::span<std::byte> scratch;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
};
void all_reduce(Channel& channel, const Group& group, const AllReduce& call);
int64_t all_reduce_scratch(int64_t count, DType dtype, int ranks);
int64_t all_reduce_bytes_sent(int64_t count, DType dtype, const Group& group);  // by this rank

// `root` is an index into the group.
void broadcast(Channel& channel, const Group& group, std::span<std::byte> data, int root);

// Returns when every rank of the group has come here.
void barrier(Channel& channel, const Group& group);

}  // namespace sextant
