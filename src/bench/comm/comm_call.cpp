#include "bench/comm/comm_call.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/units.h"

namespace sextant {

namespace {

// Value of element i on rank r (its index in the group): small, so that sums over thousands of ranks are exact.
float element(int rank, int64_t i) {
  return static_cast<float>((i * 31 + rank * 17) % 61 - 30);
}

}  // namespace

bool can_be(Collective op, CommPlace place) {
  if (op == Collective::all_reduce || op == Collective::all_gather) return true;
  return (op == Collective::broadcast) == (place == CommPlace::in);
}

CommCall::CommCall(Collective op, CommPlace place, int64_t bytes, const Group& group)
    : op_(op),
      place_(place),
      group_(group),
      count_(round_up(std::max<int64_t>(1, bytes / 4), group.size())),
      part_(count_ / group.size()) {
  given_.resize(static_cast<size_t>(op == Collective::all_gather ? part_ : count_));
  result_.resize(static_cast<size_t>(op == Collective::reduce_scatter ? part_ : count_));
}

void CommCall::fill() {
  int64_t own_first = op_ == Collective::all_gather ? part_ * group_.self : 0;
  for (size_t i = 0; i < given_.size(); ++i) given_[i] = element(group_.self, own_first + static_cast<int64_t>(i));
  std::fill(result_.begin(), result_.end(), -1e9f);
  if (place_ == CommPlace::in) std::copy(given_.begin(), given_.end(), result_.begin() + own_first);
}

int64_t CommCall::count_wrong() const {
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
      case Collective::all_reduce:
        expected = sum(i);
        break;
      case Collective::all_gather:
        expected = element(static_cast<int>(i / part_), i);
        break;
      case Collective::reduce_scatter:
        expected = sum(part_ * group_.self + i);
        break;
      case Collective::all_to_all:
        expected = element(static_cast<int>(i / part_), part_ * group_.self + i % part_);
        break;
      case Collective::broadcast:
        expected = element(0, i);
        break;
      case Collective::shift:
        expected = element((group_.self - 1 + n) % n, i);
        break;
      case Collective::send:
      case Collective::receive:
        BUG("{} is measured as a shift", name_of(op_));
    }
    wrong += result_[static_cast<size_t>(i)] != expected;
  }
  return wrong;
}

namespace {

class HostCall final : public CommCall {
 public:
  HostCall(Collective op, CommPlace place, int64_t bytes, const Group& group, Channel& channel)
      : CommCall(op, place, bytes, group), channel_(channel) {
    BUG_IF(!can_be(op, place), "{} cannot be done in this place", bench_name(op));
    if (op == Collective::all_reduce)
      scratch_.resize(static_cast<size_t>(ceil_div(all_reduce_scratch(count_, DType::f32, group.size()), 4)));
    if (op == Collective::reduce_scatter) scratch_.resize(static_cast<size_t>(part_));
  }

  double run() override {
    auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  void call() {
    std::span<std::byte> given = std::as_writable_bytes(std::span(given_)),
                         result = std::as_writable_bytes(std::span(result_));
    std::span<std::byte> scratch = std::as_writable_bytes(std::span(scratch_));
    switch (op_) {
      case Collective::all_reduce:
        if (place_ == CommPlace::out) std::memcpy(result.data(), given.data(), given.size());
        return all_reduce(channel_, group_, {.data = result, .scratch = scratch});
      case Collective::all_gather:
        return all_gather(channel_, group_, place_ == CommPlace::in ? own_part(result) : given, result);
      case Collective::reduce_scatter:
        return reduce_scatter(channel_, group_, {.parts = given, .own = result, .scratch = scratch});
      case Collective::all_to_all:
        return all_to_all(channel_, group_, given, result);
      case Collective::broadcast:
        return broadcast(channel_, group_, result, 0);
      case Collective::shift:
        return shift(given, result);
      case Collective::send:
      case Collective::receive:
        BUG("{} is measured as a shift", name_of(op_));
    }
  }

  std::span<std::byte> own_part(std::span<std::byte> whole) const {
    size_t bytes = static_cast<size_t>(part_) * sizeof(float);
    return whole.subspan(bytes * static_cast<size_t>(group_.self), bytes);
  }

  // Everybody to the next, and from the one before: all links of a ring at once.
  void shift(std::span<const std::byte> out, std::span<std::byte> in) {
    int n = group_.size();
    auto member = [&](int i) { return group_.ranks[static_cast<size_t>((i + n) % n)]; };
    AbortOnThrow guard(channel_.transport);
    Ticket sent = channel_.transport.send(member(group_.self + 1), channel_.tag, out);
    Ticket received = channel_.transport.receive(member(group_.self - 1), channel_.tag, in);
    channel_.transport.wait(sent);
    channel_.transport.wait(received);
  }

  Channel& channel_;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<CommCall> make_host_call(Collective op, CommPlace place, int64_t bytes, const Group& group,
                                         Channel& channel) {
  return std::make_unique<HostCall>(op, place, bytes, group, channel);
}

}  // namespace sextant
