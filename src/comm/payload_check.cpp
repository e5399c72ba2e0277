#include "comm/payload_check.h"

#include <utility>

#include "base/corruption.h"
#include "base/hash.h"

namespace sextant {

namespace {

uint64_t hash_of(std::span<const std::byte> bytes) {
  ContentHash hash;
  hash.add(bytes);
  return hash.value();
}

// A bit of the exponent of a number in the middle.
void flip_middle_bit(std::span<std::byte> bytes) {
  constexpr size_t kWord = 4;
  if (bytes.size() >= kWord) bytes[bytes.size() / 2 / kWord * kWord + kWord - 1] ^= std::byte{0x10};
}

}  // namespace

PayloadCheck::PayloadCheck(int ranks) {
  sent_.reserve(static_cast<size_t>(ranks));
  expected_.reserve(static_cast<size_t>(ranks));
}

void PayloadCheck::begin(Channel& channel, const Asked& asked, const std::string& place) {
  asked_ = asked;
  place_ = &place;
  channel.check = asked.verify || asked.flip ? this : nullptr;
}

void PayloadCheck::follow(Channel& channel, int to, std::span<const std::byte> bytes) {
  if (!asked_.verify) return;
  BUG_IF(sent_.size() == sent_.capacity(), "more than {} checked messages at once", sent_.size());
  sent_.push_back(hash_of(bytes));
  std::span<const std::byte> hash = std::as_bytes(std::span(&sent_.back(), 1));
  channel.under_way.push_back(channel.transport.send(to, channel.tag, hash));
  channel.bytes_sent += static_cast<int64_t>(hash.size());
}

void PayloadCheck::expect(Channel& channel, int from, std::span<std::byte> bytes) {
  BUG_IF(expected_.size() == expected_.capacity(), "more than {} checked messages at once", expected_.size());
  expected_.push_back({from, bytes, 0});
  if (!asked_.verify) return;
  std::span<std::byte> hash = std::as_writable_bytes(std::span(&expected_.back().hash, 1));
  channel.under_way.push_back(channel.transport.receive(from, channel.tag, hash));
}

void PayloadCheck::receive_hash(Channel& channel, int from, std::span<std::byte> bytes) {
  Expected message{from, bytes, 0};
  if (asked_.verify)
    channel.transport.wait(
        channel.transport.receive(from, channel.tag, std::as_writable_bytes(std::span(&message.hash, 1))));
  judge(channel, message);
}

void PayloadCheck::verify(Channel& channel) {
  for (const Expected& message : expected_) judge(channel, message);
  sent_.clear();
  expected_.clear();
}

void PayloadCheck::judge(Channel& channel, const Expected& message) {
  if (std::exchange(asked_.flip, false)) flip_middle_bit(message.bytes);
  if (!asked_.verify || hash_of(message.bytes) == message.hash) return;
  int own = channel.transport.rank();
  throw Corruption({.check = "collective", .rank = own, .op = *place_}, channel.transport.here(),
                   fmt::format("{}: rank {} received {} bytes from rank {} that are not those that were sent", *place_,
                               own, message.bytes.size(), message.from));
}

void PayloadCheck::report_sum(Channel& channel, double got, double expected, double allowed) const {
  int own = channel.transport.rank();
  throw Corruption(
      {.check = "collective", .rank = own, .op = *place_}, channel.transport.here(),
      fmt::format("{}: rank {} added up wrongly: its result has the checksum {:.9g}, but those of the terms "
                  "give {:.9g}, to within {:.2g}",
                  *place_, own, got, expected, allowed));
}

}  // namespace sextant
