#include "cost/passes.h"

#include <algorithm>
#include <array>

namespace sextant {

namespace {

// Counted kernel by kernel in each software's source, relative to what our op reads and writes.
struct Row {
  std::string_view op;
  Passes compiled, jit, eager;
};

constexpr std::array kRows{
    // A norm written in elementary operations casts to f32, squares, averages, scales, casts back and applies the
    // weight.
    Row{"rms_norm", {1.2, 1}, {1, 1}, {4.5, 6}},
    Row{"rms_norm_backward", {1.8, 2}, {1.5, 2}, {5, 9}},
    // PyTorch's own layer_norm is one kernel, and two backward.
    Row{"layer_norm", {1.2, 1}, {1, 1}, {1.1, 1}},
    Row{"layer_norm_backward", {1.8, 2}, {1.5, 2}, {1.6, 2}},
    Row{"add", {1, 1}, {1.3, 1}, {1, 1}},   // with a dropout mask where there is dropout
    Row{"gelu", {1, 1}, {1, 1}, {1.5, 2}},  // the bias is added by a kernel of its own
    Row{"gelu_backward", {1, 1}, {1, 1}, {1.2, 1}},
    Row{"swiglu", {1, 1}, {1.2, 1}, {1.7, 2}},
    Row{"swiglu_backward", {1, 1}, {1.2, 1}, {2.2, 4}},
    // Split, rotate halves, multiply twice, add, join.
    Row{"rope", {1.4, 2}, {2, 4}, {4.5, 12}},
    Row{"embedding_backward", {1.5, 2}, {1.5, 2}, {1.5, 2}},
    Row{"adamw", {1, 1}, {1.05, 1}, {1.1, 1}},
};

}  // namespace

Passes passes_of(const SoftwareProfile& profile, std::string_view op) {
  Elementwise style = std::ranges::count(profile.eager_ops, op) > 0 ? Elementwise::eager : profile.elementwise;
  if (style == Elementwise::fused) return {};
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    return style == Elementwise::eager ? row.eager : style == Elementwise::jit ? row.jit : row.compiled;
  }
  return {};
}

std::vector<std::string_view> ops_with_passes() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.op);
  return names;
}

}  // namespace sextant
