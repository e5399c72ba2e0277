#include "ops/fp8_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/ops.h"

namespace sextant {

namespace {

using enum Fp8Operand;

constexpr std::array<Fp8Side, 2> kForwardSides{{{activation, false}, {weight, false}}},
    kInputGradientSides{{{gradient, false}, {weight, true}}},
    kWeightGradientSides{{{gradient, true}, {activation, true}}};

constexpr std::array kFp8Recipes{
    // Current scaling: each tensor by its own largest value. Gradients need more range than precision.
    Fp8Recipe{
        .precision = Precision::fp8,
        .quantizers = {{{DType::e4m3, &ops::quantize_activation, &ops::absmax},
                        {DType::e4m3, &ops::quantize_weight, &ops::absmax},
                        {DType::e5m2, &ops::quantize_activation, &ops::absmax}}},
        .products = {{{&ops::linear, &ops::fp8_linear, kForwardSides},
                      {&ops::linear_input_gradient, &ops::fp8_linear_input_gradient, kInputGradientSides},
                      {&ops::linear_weight_gradient, &ops::fp8_linear_weight_gradient, kWeightGradientSides}}},
    },
    // DeepSeek-V3 (arXiv 2412.19437): with a scale for so few numbers, e4m3 has the range for gradients too.
    Fp8Recipe{
        .precision = Precision::fp8_block,
        .tile = 128,
        .quantizers = {{{DType::e4m3, &ops::quantize_tiles, nullptr},
                        {DType::e4m3, &ops::quantize_blocks, nullptr},
                        {DType::e4m3, &ops::quantize_tiles, nullptr}}},
        .products = {{{&ops::linear, &ops::fp8_block_linear, kForwardSides},
                      {&ops::linear_input_gradient, &ops::fp8_block_linear_input_gradient, kInputGradientSides},
                      {&ops::linear_weight_gradient, &ops::fp8_block_linear_weight_gradient, kWeightGradientSides}}},
    },
};

// OCP Microscaling 1.0: e4m3 and a power of two (e8m0) for 32 numbers. NVIDIA's NVFP4: e2m1 and an e4m3 scale for 16,
// beside one f32 for the tensor.
constexpr std::array kBlockFormats{
    BlockFormat{.precision = Precision::mxfp8, .element_bits = 8, .block = 32, .scale_bits = 8, .units = "fp8"},
    BlockFormat{.precision = Precision::nvfp4, .element_bits = 4, .block = 16, .scale_bits = 8, .units = "fp4"},
};

template <class Table>
auto* of_precision(const Table& table, Precision precision) {
  auto found = std::ranges::find_if(table, [&](const auto& entry) { return entry.precision == precision; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::string BlockFormat::text() const {
  return fmt::format("{}: {} bits a number and a scale of {} for each {}, {} bytes a number", name(), element_bits,
                     scale_bits, block, bytes_per_element());
}

const Fp8Product* Fp8Recipe::product_of(const Op& op) const {
  auto found = std::ranges::find_if(products, [&](const Fp8Product& product) { return product.wide == op.def; });
  return found == products.end() ? nullptr : &*found;
}

bool Fp8Recipe::made(const Op& op) const {
  return std::ranges::any_of(products, [&](const Fp8Product& product) { return product.narrow == op.def; });
}

std::span<const Fp8Recipe> fp8_recipes() {
  return kFp8Recipes;
}
const Fp8Recipe* find_fp8_recipe(Precision precision) {
  return of_precision(kFp8Recipes, precision);
}
std::span<const BlockFormat> block_formats() {
  return kBlockFormats;
}
const BlockFormat* find_block_format(Precision precision) {
  return of_precision(kBlockFormats, precision);
}

}  // namespace sextant
