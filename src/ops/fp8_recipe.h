// Fp8Recipe: how a run trains in fp8 (train.precision), as data: which format each kind of operand has, what shares a
// scale, and which ops take the place of those of a linear. passes/quantize follows it; fp8_recipe.cpp has them all.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/op_def.h"
#include "ir/precision.h"

namespace sextant {

enum class Fp8Operand : uint8_t { activation, weight, gradient };

// How an operand of one kind becomes fp8.
struct Fp8Quantizer {
  DType dtype = DType::e4m3;
  const OpDef* quantize = nullptr;
  const OpDef* amax = nullptr;  // of the whole value, read by `quantize`; null: each tile finds its own
};

// An operand of a product: which input of the wide op it is, and whether the transposed copy is read.
struct Fp8Side {
  Fp8Operand operand = Fp8Operand::activation;
  bool transposed = false;
};

// The fp8 replacement of a wide op. Inputs 0 and 1 are the sides; the inputs after them are unchanged.
struct Fp8Product {
  const OpDef* wide = nullptr;
  const OpDef* narrow = nullptr;
  std::array<Fp8Side, 2> sides = {};
};

struct Fp8Recipe {
  Precision precision = Precision::fp8;
  int64_t tile = 0;                             // neighbours that share a scale; 0: the whole value does
  std::array<Fp8Quantizer, 3> quantizers = {};  // by Fp8Operand
  std::array<Fp8Product, 3> products = {};

  std::string_view name() const { return word_of(precision); }
  const Fp8Quantizer& of(Fp8Operand operand) const { return quantizers[static_cast<size_t>(operand)]; }
  const Fp8Product* product_of(const Op& op) const;  // null: the op stays as it is
  bool made(const Op& op) const;                     // whether it is one that the recipe puts in place of a wide one
};

std::span<const Fp8Recipe> fp8_recipes();
const Fp8Recipe* find_fp8_recipe(Precision precision);  // null when it is none

// A format that is known but that no target runs: Programs in it are made to be priced alone.
struct BlockFormat {
  Precision precision = Precision::mxfp8;
  int64_t element_bits = 8;
  int64_t block = 32;  // neighbours that share a scale
  int64_t scale_bits = 8;
  std::string_view units;  // the peak of a machine file that its products run at
  // A peak that all devices have which scale blocks of operands themselves, and no others.
  static constexpr std::string_view kScalingUnits = "fp4";
  std::string_view name() const { return word_of(precision); }
  double bytes_per_element() const {
    return (static_cast<double>(element_bits) + static_cast<double>(scale_bits) / static_cast<double>(block)) / 8;
  }
  std::string text() const;  // "nvfp4: 4 bits a number and a scale of 8 for each 16, 0.5625 bytes a number"
};

std::span<const BlockFormat> block_formats();
const BlockFormat* find_block_format(Precision precision);  // null when it is none

}  // namespace sextant
