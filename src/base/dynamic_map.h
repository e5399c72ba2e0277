// Dynamic quantization to 8 bits (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization"): a code is an
// index into 256 numbers of [-1, 1] or [0, 1], times the largest magnitude of its block. The numbers of each decade
// from 1e-6 on are twice as many as those of the decade below, so that small ones keep their order of magnitude and
// large ones get the precision. They are those of bitsandbytes bit by bit (tests/fixtures/dynamic_maps.safetensors).
#pragma once

#include <cstdint>

namespace sextant {

struct DynamicMap {
  float value[256] = {};  // rising
};

namespace dynamic_map_parts {

// Point i of n that divide [0.1, 1] evenly, counted from the nearer end; rounded once, and the step between them.
constexpr float divider(int i, int n) {
  double first = 0.1f, last = 1.0f, step = (1.0f - 0.1f) / static_cast<float>(n - 1);
  return static_cast<float>(i < n / 2 ? first + step * i : last - step * (n - 1 - i));
}

inline constexpr float kDecades[7] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f};

}  // namespace dynamic_map_parts

enum class MapSign : uint8_t { both, positive };

// The middles between the dividers of every decade, their negatives where there are such, 0 and 1.
constexpr DynamicMap dynamic_map(MapSign sign) {
  using namespace dynamic_map_parts;
  DynamicMap map;
  bool both = sign == MapSign::both;
  int zero = both ? 127 : 0, at = zero + 1;
  for (int decade = 0; decade < 7; ++decade) {
    int middles = both ? 1 << decade : 2 << decade;
    for (int i = 0; i < middles; ++i, ++at) {
      float middle = (divider(i, middles + 1) + divider(i + 1, middles + 1)) / 2.0f;
      map.value[at] = kDecades[decade] * middle;
      if (both) map.value[2 * zero - at] = -map.value[at];
    }
  }
  map.value[at] = 1.0f;
  return map;
}

inline constexpr DynamicMap kSignedMap = dynamic_map(MapSign::both), kPositiveMap = dynamic_map(MapSign::positive);

// The code of the number that is nearest to x, the lower one where two are. NaN has code 0.
constexpr uint8_t nearest_code(const float* map, float x) {
  int low = 0, high = 255;  // map[low] is not above x, or low is 0; map[high] is above it, or high is 255
  while (high - low > 1) {
    int middle = (low + high) / 2;
    (map[middle] <= x ? low : high) = middle;
  }
  return static_cast<uint8_t>(x > 0.5f * (map[low] + map[high]) ? high : low);
}

// A mean of squares, divided by the largest of its block: what is above 0 does not become 0, for the step divides by
// its root.
constexpr uint8_t nearest_code_above_zero(const float* map, float x) {
  uint8_t code = nearest_code(map, x);
  return static_cast<uint8_t>(code == 0 && x > 0.0f ? 1 : code);
}

}  // namespace sextant
