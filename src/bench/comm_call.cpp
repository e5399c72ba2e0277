#include "bench/comm_call.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

// What rank r (its index in the group) holds at element i: small, so that sums over thousands of ranks are exact.
float element(int rank, int64_t i) { return static_cast<float>((i * 31 + rank * 17) % 61 - 30); }

}  // namespace

bool can_be(CommOp op, CommPlace place) {
  if (op == CommOp::all_reduce || op == CommOp::all_gather) return true;
  bool overwrites = op == CommOp::broadcast || op == CommOp::send_receive;
  return overwrites == (place == CommPlace::in);
}

CommCall::CommCall(CommOp op, CommPlace place, int64_t bytes, const Group& group)
    : op_(op), place_(place), group_(group), count_(round_up(std::max<int64_t>(1, bytes / 4), group.size())), part_(count_ / group.size()) {
  BUG_IF(!can_be(op, place), "{} cannot be done in this place", name_of(op));
  bool gathers = op == CommOp::all_gather;
  given_.resize(static_cast<size_t>(gathers ? part_ : count_));
  result_.resize(static_cast<size_t>(op == CommOp::reduce_scatter ? part_ : count_));
  if (op == CommOp::all_reduce) scratch_.resize(static_cast<size_t>(ceil_div(all_reduce_scratch(count_, DType::f32, group.size()), 4)));
  if (op == CommOp::reduce_scatter) scratch_.resize(static_cast<size_t>(part_));
}

std::span<std::byte> CommCall::bytes_of(std::vector<float>& data, int64_t first, int64_t count) const {
  return std::as_writable_bytes(std::span(data).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
}

void CommCall::fill() {
  int64_t own_first = op_ == CommOp::all_gather ? part_ * group_.self : 0;
  for (size_t i = 0; i < given_.size(); ++i) given_[i] = element(group_.self, own_first + static_cast<int64_t>(i));
  std::fill(result_.begin(), result_.end(), -1e9f);
  if (place_ == CommPlace::in) std::copy(given_.begin(), given_.end(), result_.begin() + own_first);
}

void CommCall::run(Channel& channel) {
  std::span<std::byte> given = std::as_writable_bytes(std::span(given_)), result = std::as_writable_bytes(std::span(result_));
  std::span<std::byte> scratch = std::as_writable_bytes(std::span(scratch_));
  int n = group_.size();
  switch (op_) {
    case CommOp::all_reduce:
      if (place_ == CommPlace::out) std::memcpy(result.data(), given.data(), given.size());
      return all_reduce(channel, group_, {.data = result, .scratch = scratch});
    case CommOp::all_gather:
      return all_gather(channel, group_, place_ == CommPlace::in ? bytes_of(result_, part_ * group_.self, part_) : given, result);
    case CommOp::reduce_scatter: return reduce_scatter(channel, group_, {.parts = given, .own = result, .scratch = scratch});
    case CommOp::all_to_all: return all_to_all(channel, group_, given, result);
    case CommOp::broadcast: return broadcast(channel, group_, result, 0);
    case CommOp::send_receive: {
      // Everybody to the next, and from the one before: all links of a ring at once.
      if (n == 1) return;
      AbortOnThrow guard(channel.transport);
      auto at = [&](int i) { return group_.ranks[static_cast<size_t>((i + n) % n)]; };
      Ticket sent = channel.transport.send(at(group_.self + 1), channel.tag, given);
      Ticket received = channel.transport.receive(at(group_.self - 1), channel.tag, result);
      channel.transport.wait(sent);
      channel.transport.wait(received);
      return;
    }
  }
}

int64_t CommCall::wrong() const {
  int n = group_.size();
  auto sum = [n](int64_t i) {
    float total = 0;
    for (int rank = 0; rank < n; ++rank) total += element(rank, i);
    return total;
  };
  int64_t wrong = 0;
  for (int64_t i = 0; i < std::ssize(result_); ++i) {
    float expected = 0;
    switch (op_) {
      case CommOp::all_reduce: expected = sum(i); break;
      case CommOp::all_gather: expected = element(static_cast<int>(i / part_), i); break;
      case CommOp::reduce_scatter: expected = sum(part_ * group_.self + i); break;
      case CommOp::all_to_all: expected = element(static_cast<int>(i / part_), part_ * group_.self + i % part_); break;
      case CommOp::broadcast: expected = element(0, i); break;
      case CommOp::send_receive: expected = element((group_.self - 1 + n) % n, i); break;
    }
    wrong += result_[static_cast<size_t>(i)] != expected;
  }
  return wrong;
}

}  // namespace sextant
