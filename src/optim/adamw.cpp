// AdamW (Loshchilov & Hutter 2019). Its means are kept in f32, or in fewer bits: in bf16, rounded at random, or in 8
// bits with a scale for each block of neighbours.
#include "optim/adamw.h"

#include "ops/ops.h"

namespace sextant {

namespace {

// In elements. Narrow states of smaller tensors save almost no memory; norms and biases, which are small, need the
// precision most.
constexpr int64_t kLeastNarrow = 4096;

StateType kept(const OptimizedWeight& weight, const OptimizerSettings& settings) {
  StateType state = settings.state.value_or(StateType::f32);
  if (weight.stored_elements < kLeastNarrow) return StateType::f32;
  return state == StateType::int8 && !weight.is_matrix() ? StateType::f32 : state;
}

StateType kept_here(const OptimizedWeight& weight, const OptimizerSettings& settings) {
  StateType form = kept(weight, settings);
  return form == StateType::int8 && !weight.whole_blocks ? StateType::f32 : form;
}

}  // namespace

OptimizerSettings adamw_defaults() {
  return {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .state = StateType::f32};
}

std::vector<OptimizerState> adamw_states(const OptimizedWeight& weight, const OptimizerSettings& settings) {
  // A mean of squares is never negative: the update takes its root.
  OptimizerState m{.name = "adam_m"}, v{.name = "adam_v", .range = OptimizerState::Range::not_negative};
  switch (kept_here(weight, settings)) {
    case StateType::f32:
      return {m, v};
    case StateType::bf16:
      m.dtype = v.dtype = DType::bf16;
      return {m, v};
    case StateType::int8:
      break;
  }
  m.dtype = v.dtype = DType::u8;
  auto absmax = [&](std::string_view name) -> OptimizerState {
    return {.name = name, .extent = OptimizerState::Extent::blocks, .range = v.range};
  };
  return {m, v, absmax("adam_m_absmax"), absmax("adam_v_absmax")};
}

void adamw_update(UpdateScope& s, ValueId lr) {
  std::vector<ValueId> inputs{s.value(), s.gradient(), s.state(0), s.state(1), lr, s.scale(), s.step()};
  Attrs attrs{{"beta1", *s.settings().beta1},
              {"beta2", *s.settings().beta2},
              {"eps", *s.settings().eps},
              {"weight_decay", s.weight_decay()}};
  StateType form = kept_here(s.weight(), s.settings());
  bool rounds = form == StateType::bf16 || s.rounds_weight();
  const Attrs rounding = rounds ? s.rounding() : Attrs();
  for (const auto& [name, value] : rounding.entries()) attrs.set(name, value);
  if (s.rounds_weight()) attrs.set("round_weight", int64_t{1});
  if (form == StateType::int8) {
    inputs.push_back(s.state(2));
    inputs.push_back(s.state(3));
    attrs.set("block", kStateBlock);
    return s.write(ops::adamw_int8, std::move(inputs), std::move(attrs));
  }
  if (form != kept(s.weight(), s.settings())) attrs.set("kept_wide", "the mesh cuts blocks");
  s.write(rounds ? ops::adamw_rounded : ops::adamw, std::move(inputs), std::move(attrs));
}

const OptimizerDef optimizers::adamw{
    .name = "adamw",
    .summary = "AdamW: means of gradients and of their squares",
    .defaults = adamw_defaults(),
    .reads_narrow_gradients = true,
    .rounds_weights = true,
    .runs_on_host = true,
    .states = adamw_states,
    .update = [](UpdateScope& s) { adamw_update(s, s.lr()); },
};

}  // namespace sextant
