// Adafactor (Shazeer & Stern 2018), as torch.optim.Adafactor computes it: of the squared gradients of a matrix only the
// means of rows and of columns are kept, so that the state of a matrix is two vectors; vectors keep all of them. Steps
// are relative to the size of the weight, and clipped by their own size.
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace sextant {

namespace {

using Extent = OptimizerState::Extent;
using Range = OptimizerState::Range;

std::vector<OptimizerState> states(const OptimizedWeight& weight, const OptimizerSettings&) {
  if (!weight.is_matrix()) return {{.name = "adafactor_v", .range = Range::not_negative}};
  return {{.name = "adafactor_rows", .extent = Extent::rows, .range = Range::not_negative},
          {.name = "adafactor_columns", .extent = Extent::columns, .range = Range::not_negative}};
}

// The direction of the step, and per packed tensor the squares of its elements and of the weight's.
struct Direction {
  ValueId update, update_squares, weight_squares;
};

std::vector<ValueId> with_low_bits(const UpdateScope& s, std::vector<ValueId> inputs) {
  if (s.low_bits() != kNoValue) inputs.push_back(s.low_bits());
  return inputs;
}

Direction of_vector(UpdateScope& s) {
  std::vector<ValueId> made = s.emit(
      ops::adafactor_vector, with_low_bits(s, {s.value(), s.gradient(), s.state(0), s.step(), s.scale()}),
      {{"packed", s.weight().packed_rows}, {"beta2_decay", *s.settings().beta2_decay}, {"eps", *s.settings().eps}});
  return {made[0], made[2], made[3]};
}

Direction of_matrix(UpdateScope& s) {
  AttrValue packed = s.weight().packed_rows;
  std::vector<ValueId> sums =
      s.emit(ops::adafactor_sums, with_low_bits(s, {s.value(), s.gradient(), s.scale()}), {{"packed", packed}});
  std::vector<ValueId> means =
      s.emit(ops::adafactor_means, {sums[0], sums[1], s.state(0), s.state(1), s.step(), s.scale()},
             {{"packed", packed}, {"beta2_decay", *s.settings().beta2_decay}});
  std::vector<ValueId> made = s.emit(ops::adafactor_direction, {s.gradient(), means[0], means[1], means[2], s.scale()},
                                     {{"packed", packed}, {"eps", *s.settings().eps}});
  return {made[0], made[1], sums[2]};
}

void update(UpdateScope& s) {
  const OptimizedWeight& weight = s.weight();
  Direction direction = weight.is_matrix() ? of_matrix(s) : of_vector(s);
  s.write(
      ops::adafactor_step,
      {s.value(), direction.update, direction.update_squares, direction.weight_squares, s.lr(), s.step(), s.scale()},
      {{"packed", weight.packed_rows},
       {"row_elements", weight.is_matrix() ? weight.shape[1] : int64_t{1}},
       {"update_clip", *s.settings().update_clip},
       {"min_rms", *s.settings().min_rms},
       {"weight_decay", s.weight_decay()}});
}

}  // namespace

const OptimizerDef optimizers::adafactor{
    .name = "adafactor",
    .summary = "Adafactor: means of squared gradients by row and by column, and steps relative to the weight",
    .defaults = {.eps = 1.1920928955078125e-07,  // the distance of 1 to the next f32
                 .weight_decay = 0.0,
                 .beta2_decay = -0.8,
                 .update_clip = 1.0,
                 .min_rms = 1e-3},
    .sums_need_whole_weights = true,
    .states = states,
    .update = update,
};

}  // namespace sextant
