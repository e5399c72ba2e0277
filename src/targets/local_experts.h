// How many experts the weight of one rank holds: fewer than the op's attr says where ranks divide them.
#pragma once

#include <cstdint>

namespace sextant {

constexpr int64_t local_experts(int64_t elements_of_weight, int64_t inputs, int64_t outputs) {
  return elements_of_weight / (inputs * outputs);
}

}  // namespace sextant
