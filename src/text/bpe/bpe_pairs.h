// A hash map from pairs of token ids, open-addressed. Nothing is ever erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sextant {

struct TokenPair {
  uint32_t left, right;
  auto operator<=>(const TokenPair&) const = default;
};

template <class Value>
class PairMap {
 public:
  explicit PairMap(size_t expected = 0) { slots_.resize(capacity_for(expected)); }

  size_t size() const { return size_; }

  // Null where the pair was never put in.
  const Value* find(TokenPair pair) const {
    const Slot& slot = slots_[slot_of(key_of(pair))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

  // The value of the pair, made by default if it is new.
  Value& operator[](TokenPair pair) {
    size_t at = slot_of(key_of(pair));
    if (slots_[at].key != kEmpty) return slots_[at].value;
    if (2 * (size_ + 1) > slots_.size()) {
      grow();
      at = slot_of(key_of(pair));
    }
    ++size_;
    slots_[at].key = key_of(pair);
    return slots_[at].value;
  }

 private:
  // No pair of two largest ids: ids are far smaller.
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  static uint64_t key_of(TokenPair pair) { return uint64_t{pair.left} << 32 | pair.right; }
  static size_t capacity_for(size_t expected) {
    size_t capacity = 16;
    while (capacity < 2 * expected) capacity *= 2;
    return capacity;
  }

  // Where the key is, or where it would go. At most half the slots are taken, so the search ends.
  size_t slot_of(uint64_t key) const {
    uint64_t hash = key * 0x9E3779B97F4A7C15;
    size_t mask = slots_.size() - 1;
    size_t at = (hash ^ hash >> 32) & mask;
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (Slot& slot : old)
      if (slot.key != kEmpty) slots_[slot_of(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace sextant
