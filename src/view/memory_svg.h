// Memory of a rank through one step, as a picture: areas by purpose stacked over the ops in order, the fullest moment
// marked, the allocated bytes and the device's bytes as lines. In: bytes by purpose at each op, one panel per stage.
// Out: SVG texts; of more than eight panels the first, the last and the largest are among those drawn.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class MemoryUse : uint8_t { weights, gradients, optimizer, activations, communication, scratch };
inline constexpr size_t kMemoryUses = 6;
std::string_view name_of(MemoryUse use);
// The class ("c3") of the pictures' style that it is drawn in.
int colour_of(MemoryUse use);
inline constexpr int kOutsideColour = 8;  // of what lies beside the arena

struct MemoryPoint {
  std::string path;   // of the op
  std::string phase;  // "forward", …
  std::array<int64_t, kMemoryUses> bytes = {};

  int64_t total() const;
};

struct MemoryPanel {
  std::string title;  // "stage 0"
  std::vector<MemoryPoint> points;
  int64_t outside = 0;    // bytes beside the arena: driver, libraries
  int64_t allocated = 0;  // with those outside; 0: not known
};

struct MemoryPicture {
  std::string title = "memory of one rank through a step";
  std::vector<MemoryPanel> panels;
  int64_t limit = 0;  // bytes of the device; 0: not known
};

// One picture per panel, all to the same scale.
std::vector<std::string> memory_panels(const MemoryPicture& picture);

// All of them in one.
std::string memory_svg(const MemoryPicture& picture);

}  // namespace sextant
