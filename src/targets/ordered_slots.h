// The parts of what slot_order makes (ops/slot_order.cpp).
#pragma once

#include <cstdint>

namespace sextant {

struct OrderedSlots {
  const int32_t* order;    // the slots, those of expert 0 first
  const int32_t* places;   // of each slot, in that order
  const int32_t* offsets;  // [experts + 1]: where each expert's begin
};

// `order` and `offsets` as that op makes them.
constexpr OrderedSlots ordered_slots(const int32_t* order, int64_t slots, const int32_t* offsets) {
  return {order, order + slots, offsets};
}

}  // namespace sextant
