// The parts of a step of Adafactor (Shazeer & Stern 2018) on one weight. Sums over a rank's part of it are partial; the
// means that are kept are whole on every rank. A weight may pack several tensors, one below the other (`packed`: the
// rows of each): every sum, mean and norm is one tensor's. scale = 0 means skip: weights and means stay as they are.
//
// No row but the implied ones for adafactor_means: what is kept is whole. No row along n: packed tensors are few, and
// each is spread over all ranks.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

int64_t packed_count(const Attrs& attrs) {
  return static_cast<int64_t>(attrs.integers("packed").size());
}

const std::vector<int64_t> kPacked{1, 3};  // of the examples: four rows

}  // namespace

const OpDef adafactor_sums{
    .name = "adafactor_sums",
    .contract =
        "g' = scale·g; rows = Σ g'² of each row; columns = Σ g'² of each column of a packed matrix; "
        "squares = Σ p² of each packed matrix.",
    .operands = "p[o i], g[o i], scale[], low?[o i] -> rows[o], columns[n i], squares[n]",
    .attrs = {"packed"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      int64_t packed = packed_count(attrs);
      return {{in[1].dtype, {in[1].shape[0]}}, {in[1].dtype, {packed, in[1].shape[1]}}, {in[1].dtype, {packed}}};
    },
    .rows = {"o", "i"},
    .cost = streaming_cost(5),
    .recompute = Recompute::never,
    .examples = {{.name = "packed", .inputs = {f64({4, 6}), f64({4, 6}), f64({})}, .attrs = {{"packed", kPacked}}}},
};

const OpDef adafactor_means{
    .name = "adafactor_means",
    .contract =
        "w = step^beta2_decay; r += w·(rows/i − r); c += w·(columns/o − c), with o the rows of the packed matrix "
        "and i its columns; means = the mean of r over each packed matrix.",
    .operands = "rows[o], columns[n i], r[o], c[n i], step[], scale[] -> r_next[o], c_next[n i], means[n]",
    .attrs = {"packed", "beta2_decay"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {in[2], in[3], {in[2].dtype, {packed_count(attrs)}}};
    },
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 2, .rule = Alias::Rule::must},
              {.output = 1, .input = 3, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "packed",
                  .inputs = {f64({4}), f64({2, 6}), f64({4}), f64({2, 6}), i32({}), f64({})},
                  .attrs = {{"packed", kPacked}, {"beta2_decay", -0.8}},
                  .integers_below = 9}},
};

const OpDef adafactor_direction{
    .name = "adafactor_direction",
    .contract = "u = scale·g / sqrt(max(r·c / max(means, eps), eps²)); squares = Σ u² of each packed matrix.",
    .operands = "g[o i], r[o], c[n i], means[n], scale[] -> u[o i], squares[n]",
    .attrs = {"packed", "eps"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {in[0], {in[0].dtype, {packed_count(attrs)}}};
    },
    .rows = {"o", "i"},
    .cost = streaming_cost(6),
    .recompute = Recompute::never,
    .examples = {{.name = "packed",
                  .inputs = {f64({4, 6}), f64({4}), f64({2, 6}), f64({2}), f64({})},
                  .attrs = {{"packed", kPacked}, {"eps", 1e-7}}}},
};

const OpDef adafactor_vector{
    .name = "adafactor_vector",
    .contract =
        "g' = scale·g; v += step^beta2_decay·(g'² − v); u = g' / sqrt(max(v, eps²)); update_squares = Σ u² and "
        "weight_squares = Σ p² of each packed vector.",
    .operands = "p[o], g[o], v[o], step[], scale[], low?[o] -> u[o], v_next[o], update_squares[n], weight_squares[n]",
    .attrs = {"packed", "beta2_decay", "eps"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      TensorType sums{in[1].dtype, {packed_count(attrs)}};
      return {in[1], in[2], sums, sums};
    },
    .rows = {"o"},
    .cost = streaming_cost(8),
    .alias = {{.output = 1, .input = 2, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "packed",
                  .inputs = {f64({4}), f64({4}), f64({4}), i32({}), f64({})},
                  .attrs = {{"packed", kPacked}, {"beta2_decay", -0.8}, {"eps", 1e-7}},
                  .integers_below = 9}},
};

const OpDef adafactor_step{
    .name = "adafactor_step",
    .contract =
        "Per packed tensor of e elements: length = min(lr, 1/sqrt(step))·max(min_rms, sqrt(weight_squares/e)) / "
        "max(1, sqrt(update_squares/e)/update_clip); p = (1 − lr·weight_decay)·p − length·u.",
    .operands =
        "p[*], u[*], update_squares[n], weight_squares[n], lr[], step[], scale[], low?[*] -> p_next[*], "
        "low_next?[*]",
    .attrs = {"packed", "row_elements", "update_clip", "min_rms", "weight_decay"},
    .shape = [](const Attrs&, auto in) { return updated_types(in, {0}, 7); },
    .rows = {"*"},
    .cost = streaming_cost(4),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 7, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "packed",
                  .inputs = {f64({4, 6}), f64({4, 6}), f64({2}), f64({2}), f64({}), i32({}), f64({})},
                  .attrs = {{"packed", kPacked},
                            {"row_elements", 6},
                            {"update_clip", 1.0},
                            {"min_rms", 1e-3},
                            {"weight_decay", 0.1}},
                  .integers_below = 9},
                 {.name = "vector",
                  .inputs = {f64({4}), f64({4}), f64({2}), f64({2}), f64({}), i32({}), f64({})},
                  .attrs = {{"packed", kPacked},
                            {"row_elements", 1},
                            {"update_clip", 1.0},
                            {"min_rms", 1e-3},
                            {"weight_decay", 0.0}},
                  .integers_below = 9}},
};

}  // namespace sextant::ops
