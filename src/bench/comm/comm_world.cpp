#include "bench/comm/comm_world.h"

#include <algorithm>
#include <numeric>

#include "comm/tags.h"

namespace sextant {

namespace {

Group everyone(Transport* transport) {
  std::vector<int> ranks(transport ? static_cast<size_t>(transport->size()) : 1);
  std::iota(ranks.begin(), ranks.end(), 0);
  return group_of_ranks(ranks, transport ? transport->rank() : 0);
}

}  // namespace

CommWorld::CommWorld(Transport* transport) : transport_(transport), group_(everyone(transport)) {}

void CommWorld::meet() {
  if (!transport_) return;
  Channel channel{*transport_, kHostTag};
  barrier(channel, group_);
}

bool CommWorld::agree(bool go_on) {
  if (!transport_) return go_on;
  Channel channel{*transport_, kHostTag};
  uint8_t word = go_on;
  broadcast(channel, group_, std::as_writable_bytes(std::span(&word, 1)), 0);
  return word != 0;
}

std::string CommWorld::agree(std::string text) {
  if (!transport_) return text;
  Channel channel{*transport_, kHostTag};
  uint64_t size = text.size();
  broadcast(channel, group_, std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  broadcast(channel, group_, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::vector<double> CommWorld::gather(std::span<const double> own) {
  if (!transport_) return {own.begin(), own.end()};
  std::vector<double> all(own.size() * static_cast<size_t>(size()));
  Channel channel{*transport_, kHostTag};
  all_gather(channel, group_, std::as_bytes(own), std::as_writable_bytes(std::span(all)));
  return all;
}

double CommWorld::largest(double own) {
  std::vector<double> all = gather(std::span(&own, 1));
  return *std::max_element(all.begin(), all.end());
}

double CommWorld::sum(double own) {
  std::vector<double> all = gather(std::span(&own, 1));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace sextant
