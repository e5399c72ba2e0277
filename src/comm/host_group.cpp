#include "comm/host_group.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/message_timer.h"
#include "comm/tags.h"

namespace sextant {

HostGroup::HostGroup(Transport& transport, int tag) : transport_(&transport), tag_(tag), rank_(transport.rank()) {
  std::vector<int> ranks(static_cast<size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  group_ = group_of_ranks(std::move(ranks), rank_);
  RankStatus& rank_status = transport.rank_status();
  adding_ = rank_status.keep("adding up between steps (all_reduce over all ranks)");
  waiting_ = rank_status.keep("waiting between steps (barrier over all ranks)");
  listening_ = rank_status.keep("receiving from the leader (broadcast over all ranks)");
}

void HostGroup::arrive(const std::string* place) {
  if (tag_ != kHostTag) return;  // it works beside the steps, and the rank is wherever they are
  transport_->rank_status().leave_action();
  transport_->rank_status().arrive(place);
}

RankStatus* HostGroup::timed() const {
  return tag_ == kHostTag ? &transport_->rank_status() : nullptr;
}

void HostGroup::reduce(std::span<std::byte> numbers, DType dtype, Reduction reduction) {
  if (!transport_) return;
  arrive(adding_);
  MessageTimer timer(timed());
  if (RankStatus* status = timed())
    if (int64_t delay = status->take_sum_delay(); delay > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
  Channel channel{.transport = *transport_, .tag = tag_};
  auto count = static_cast<int64_t>(numbers.size()) / size_of(dtype);
  std::vector<std::byte> scratch(static_cast<size_t>(all_reduce_scratch(count, dtype, group_.size())));
  all_reduce(channel, group_, {.data = numbers, .scratch = scratch, .dtype = dtype, .reduction = reduction});
}

void HostGroup::sum(std::span<double> numbers) {
  reduce(std::as_writable_bytes(numbers), DType::f64, Reduction::sum);
}
void HostGroup::sum(std::span<int64_t> numbers) {
  reduce(std::as_writable_bytes(numbers), DType::i64, Reduction::sum);
}
void HostGroup::largest(std::span<double> numbers) {
  reduce(std::as_writable_bytes(numbers), DType::f64, Reduction::max);
}

void HostGroup::barrier() {
  if (!transport_) return;
  arrive(waiting_);
  MessageTimer timer(timed());
  Channel channel{.transport = *transport_, .tag = tag_};
  sextant::barrier(channel, group_);
}

std::string HostGroup::from(int root, std::string text) {
  if (!transport_) return text;
  arrive(listening_);
  Channel channel{.transport = *transport_, .tag = tag_};
  int64_t size = static_cast<int64_t>(text.size());
  broadcast(channel, group_, std::as_writable_bytes(std::span(&size, 1)), root);
  text.resize(static_cast<size_t>(size));
  broadcast(channel, group_, std::as_writable_bytes(std::span(text)), root);
  return text;
}

std::string HostGroup::from_leader(std::string text) {
  return from(0, std::move(text));
}

std::string HostGroup::first_text(const std::string& text) {
  if (!transport_) return text;
  std::vector<int64_t> has(static_cast<size_t>(size()), 0);
  has[static_cast<size_t>(rank_)] = text.empty() ? 0 : 1;
  sum(has);
  auto first = std::find(has.begin(), has.end(), 1);
  if (first == has.end()) return "";
  return from(static_cast<int>(first - has.begin()), text.empty() ? text : fmt::format("rank {}: {}", rank_, text));
}

}  // namespace sextant
