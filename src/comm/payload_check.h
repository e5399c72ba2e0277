// PayloadCheck: what is checked of the collectives of one channel. Behind every message goes a hash of what was sent,
// and the receiver hashes what it got: other bytes are a fault of one of the two, or of what lies between them. Sums
// are checked where they are made (sum_check.h). All ranks of a collective check it, or none does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives.h"

namespace sextant {

class PayloadCheck {
 public:
  // Of one collective.
  struct Asked {
    bool verify = false;
    bool flip = false;   // a bit of what this rank receives first, for drills
    uint64_t signs = 0;  // what the check of sums draws by
  };

  explicit PayloadCheck(int ranks = 1);

  // For the collective that follows; `place` names it and outlives it.
  void begin(Channel& channel, const Asked& asked, const std::string& place);

  // Beside a message that leaves, and one that is to come.
  void follow(Channel& channel, int to, std::span<const std::byte> bytes);
  void expect(Channel& channel, int from, std::span<std::byte> bytes);
  // Behind a message that has come by itself, while others may be under way.
  void receive_hash(Channel& channel, int from, std::span<std::byte> bytes);
  // When all of them have come: Corruption where one is not what was sent.
  void verify(Channel& channel);

  const Asked& asked() const { return asked_; }
  [[noreturn]] void report_sum(Channel& channel, double got, double expected, double allowed) const;

 private:
  struct Expected {
    int from;
    std::span<std::byte> bytes;
    uint64_t hash;
  };
  void judge(Channel& channel, const Expected& message);

  Asked asked_;
  const std::string* place_ = nullptr;
  // Of one collective. Messages hold on to these, so they have their room from the beginning.
  std::vector<uint64_t> sent_;
  std::vector<Expected> expected_;
};

}  // namespace sextant
