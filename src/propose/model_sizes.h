// Sizes of Llama models from which one is chosen by the amount of text, smallest first.
#pragma once

#include <array>
#include <cstdint>

namespace sextant {

struct ModelSize {
  int64_t layers, hidden, heads, kv_heads;
};

// Heads of 32 to 128; from the fifth on, the sizes of GPT-2, Pythia and Llama of that width.
inline constexpr std::array kModelSizes{
    ModelSize{2, 64, 2, 2},     ModelSize{3, 128, 4, 2},    ModelSize{3, 256, 8, 4},
    ModelSize{6, 384, 6, 6},    ModelSize{8, 512, 8, 8},    ModelSize{12, 768, 12, 12},
    ModelSize{24, 1024, 16, 8}, ModelSize{24, 1536, 12, 4}, ModelSize{16, 2048, 32, 8},
};

}  // namespace sextant
