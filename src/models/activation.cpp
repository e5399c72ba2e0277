#include "models/activation.h"

#include "ops/ops.h"

namespace sextant {

namespace {

struct ActivationRow {
  const OpDef* op;
  double beta;  // of swish; 0: the op has no such number
  std::span<const std::string_view> hf_names;
};

constexpr std::string_view kGelu[] = {"gelu", "gelu_python"};
constexpr std::string_view kGeluTanh[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"};
constexpr std::string_view kQuickGelu[] = {"quick_gelu"};
constexpr std::string_view kRelu[] = {"relu"};
constexpr std::string_view kRelu2[] = {"relu2"};
constexpr std::string_view kSilu[] = {"silu", "swish"};

// In the order of Activation.
constexpr ActivationRow kActivationRows[] = {
    {&ops::gelu_erf, 0, kGelu}, {&ops::gelu, 0, kGeluTanh},      {&ops::swish, 1.702, kQuickGelu},
    {&ops::relu, 0, kRelu},     {&ops::squared_relu, 0, kRelu2}, {&ops::swish, 1, kSilu},
};
static_assert(std::size(kActivationRows) == std::size(kActivations));

const ActivationRow& row_of(Activation activation) {
  return kActivationRows[static_cast<size_t>(activation)];
}

}  // namespace

ActivationOp op_of(Activation activation) {
  const ActivationRow& row = row_of(activation);
  if (row.beta == 0) return {row.op};
  return {row.op, {{"beta", row.beta}}};
}

std::span<const std::string_view> hf_names_of(Activation activation) {
  return row_of(activation).hf_names;
}

std::optional<Activation> activation_of_hf_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kActivationRows); ++i)
    for (std::string_view known : kActivationRows[i].hf_names)
      if (known == name) return static_cast<Activation>(i);
  return std::nullopt;
}

}  // namespace sextant
