// The settings of all optimizers. An optimizer reads those that its definition gives a default, and no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "describe/choice.h"
#include "ops/muon.h"

namespace sextant {

// The type of the means of gradients and of their squares between steps.
enum class StateType : uint8_t { f32, bf16, int8 };

inline constexpr Choice<StateType> kStateTypes[] = {
    {StateType::f32, "f32"},
    {StateType::bf16, "bf16", "rounded at random, the same on every mesh"},
    {StateType::int8, "int8", "codes of 8 bits with a scale for every 256 neighbours in a row"},
};
constexpr const auto& choices_of(StateType) {
  return kStateTypes;
}

struct OptimizerSettings {
  std::optional<double> beta1, beta2, eps, weight_decay;
  std::optional<StateType> state;
  std::optional<double> momentum;
  std::optional<bool> nesterov;
  std::optional<double> beta2_decay, update_clip, min_rms;
  std::optional<int64_t> ns_steps;
  std::optional<MuonAdjustment> adjust_lr;
  std::optional<double> adamw_lr_ratio;
  bool operator==(const OptimizerSettings&) const = default;
};

// visit(name, member) for every setting; the name is that of its key in [optimizer].
template <class Visit>
void for_each_setting(const Visit& visit) {
  visit(std::string_view("beta1"), &OptimizerSettings::beta1);
  visit(std::string_view("beta2"), &OptimizerSettings::beta2);
  visit(std::string_view("eps"), &OptimizerSettings::eps);
  visit(std::string_view("weight_decay"), &OptimizerSettings::weight_decay);
  visit(std::string_view("state"), &OptimizerSettings::state);
  visit(std::string_view("momentum"), &OptimizerSettings::momentum);
  visit(std::string_view("nesterov"), &OptimizerSettings::nesterov);
  visit(std::string_view("beta2_decay"), &OptimizerSettings::beta2_decay);
  visit(std::string_view("update_clip"), &OptimizerSettings::update_clip);
  visit(std::string_view("min_rms"), &OptimizerSettings::min_rms);
  visit(std::string_view("ns_steps"), &OptimizerSettings::ns_steps);
  visit(std::string_view("adjust_lr"), &OptimizerSettings::adjust_lr);
  visit(std::string_view("adamw_lr_ratio"), &OptimizerSettings::adamw_lr_ratio);
}

}  // namespace sextant
