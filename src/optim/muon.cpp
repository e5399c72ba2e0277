// Muon (Jordan et al. 2024): the matrices of the model's blocks move by their momentum made orthogonal, everything else
// (embeddings, head, norms, biases) by AdamW. A matrix is made orthogonal as a whole: where ranks hold parts of it the
// momentum is gathered, and every rank takes its part of the same result.
#include "ops/ops.h"
#include "optim/adamw.h"

namespace sextant {

namespace {

bool is_orthogonalised(const OptimizedWeight& weight) {
  return weight.is_matrix() && weight.in_block;
}

std::vector<OptimizerState> muon_states(const OptimizedWeight& weight, const OptimizerSettings& settings) {
  if (!is_orthogonalised(weight)) return adamw_states(weight, settings);
  return {{.name = "muon_m"}};
}

// AdamW's learning rate is `adamw_lr_ratio` times Muon's: both follow the schedule.
ValueId adamw_lr(UpdateScope& s) {
  if (*s.settings().adamw_lr_ratio == 1) return s.lr();
  return s.emit(ops::scale, {s.lr()}, {{"factor", *s.settings().adamw_lr_ratio}})[0];
}

void muon_update(UpdateScope& s) {
  if (!is_orthogonalised(s.weight())) return adamw_update(s, adamw_lr(s));
  const OptimizerSettings& settings = s.settings();
  ValueId momentum = s.emit(ops::muon_momentum, {s.gradient(), s.state(0), s.scale()},
                            {{"momentum", *settings.momentum}, {"nesterov", int64_t{*settings.nesterov ? 1 : 0}}})[0];
  ValueId direction = s.emit(ops::orthogonalize, {momentum},
                             {{"packed", s.weight().packed_rows},
                              {"steps", *settings.ns_steps},
                              {"adjust", std::string(word_of(*settings.adjust_lr))},
                              {"bf16", int64_t{s.low_bits() != kNoValue ? 1 : 0}}})[0];
  s.write(ops::muon_step, {s.value(), direction, s.lr(), s.scale()}, {{"weight_decay", s.weight_decay()}});
}

// AdamW's for what it is left, and Muon's own, which are those of torch.optim.Muon. All states are f32.
OptimizerSettings defaults() {
  OptimizerSettings settings = adamw_defaults();
  settings.state.reset();
  settings.momentum = 0.95;
  settings.nesterov = true;
  settings.ns_steps = 5;
  settings.adjust_lr = MuonAdjustment::original;
  settings.adamw_lr_ratio = 1.0;
  return settings;
}

}  // namespace

const OptimizerDef optimizers::muon{
    .name = "muon",
    .summary = "Muon: orthogonalised momentum for the matrices of blocks, AdamW for the rest",
    .defaults = defaults(),
    .states = muon_states,
    .update = muon_update,
};

}  // namespace sextant
