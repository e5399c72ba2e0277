#include "train/crew.h"

#include <numeric>
#include <vector>

#include "comm/tags.h"

namespace sextant {

Crew::Crew(Transport& transport, int tag) : transport_(&transport), tag_(tag), rank_(transport.rank()) {
  std::vector<int> ranks(static_cast<size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  group_ = group_of_ranks(std::move(ranks), rank_);
  Whereabouts& whereabouts = transport.whereabouts();
  adding_ = whereabouts.keep("adding up between steps (all_reduce over all ranks)");
  waiting_ = whereabouts.keep("waiting between steps (barrier over all ranks)");
  listening_ = whereabouts.keep("hearing from the leader (broadcast over all ranks)");
}

void Crew::arrive(const std::string* place) {
  if (tag_ != kHostTag) return;  // it works beside the steps, and the rank is wherever they are
  transport_->whereabouts().leave_action();
  transport_->whereabouts().arrive(place);
}

void Crew::sum(std::span<double> numbers) {
  if (!transport_) return;
  arrive(adding_);
  Channel channel{.transport = *transport_, .tag = tag_};
  std::vector<std::byte> scratch(static_cast<size_t>(
      all_reduce_scratch(static_cast<int64_t>(numbers.size()), DType::f64, group_.size())));
  all_reduce(channel, group_, {.data = std::as_writable_bytes(numbers), .scratch = scratch, .dtype = DType::f64});
}

void Crew::barrier() {
  if (!transport_) return;
  arrive(waiting_);
  Channel channel{.transport = *transport_, .tag = tag_};
  sextant::barrier(channel, group_);
}

std::string Crew::from_leader(std::string text) {
  if (!transport_) return text;
  arrive(listening_);
  Channel channel{.transport = *transport_, .tag = tag_};
  int64_t size = static_cast<int64_t>(text.size());
  broadcast(channel, group_, std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(static_cast<size_t>(size));
  broadcast(channel, group_, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace sextant
