// Activation: the function of single elements inside an MLP without a gate, for the architectures that leave it to the
// spec. Its names in configs stand here, its op and its names in Hugging Face's config.json in activation.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "describe/choice.h"
#include "ir/attrs.h"

namespace sextant {

struct OpDef;

enum class Activation : uint8_t { gelu, gelu_tanh, quick_gelu, relu, relu2, silu };

inline constexpr Choice<Activation> kActivations[] = {
    {Activation::gelu, "gelu", "x·Φ(x), by erf"},
    {Activation::gelu_tanh, "gelu_tanh", "its approximation by tanh, GPT-2's `gelu_new`"},
    {Activation::quick_gelu, "quick_gelu", "its approximation x·sigmoid(1.702·x)"},
    {Activation::relu, "relu"},
    {Activation::relu2, "relu2", "max(x, 0)²"},
    {Activation::silu, "silu", "x·sigmoid(x)"},
};
constexpr const auto& choices_of(Activation) {
  return kActivations;
}

struct ActivationOp {
  ActivationOp(const OpDef* op, Attrs with = {}) : def(op), attrs(std::move(with)) {}
  const OpDef* def;
  Attrs attrs;
};
ActivationOp op_of(Activation activation);

// As transformers calls it. Several names may be one function: the first is the one that is written.
std::span<const std::string_view> hf_names_of(Activation activation);
std::optional<Activation> activation_of_hf_name(std::string_view name);

}  // namespace sextant
