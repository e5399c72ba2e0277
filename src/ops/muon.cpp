// muon_momentum, orthogonalize, muon_step: the parts of a step of Muon (Jordan et al. 2024) on one matrix. The momentum
// and the step work on what a rank holds; the matrix between them is whole. scale = 0 means skip: weights and momentum
// stay as they are.
//
// No row but the implied ones for orthogonalize: singular values are a property of the whole matrix.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef muon_momentum{
    .name = "muon_momentum",
    .contract =
        "g' = scale·g; m = momentum·m + (1−momentum)·g'; u = momentum·m + (1−momentum)·g' with nesterov (of the new "
        "m), "
        "else u = m.",
    .operands = "g[*], m[*], scale[] -> u[*], m_next[*]",
    .attrs = {"momentum", "nesterov"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[0], in[1]};
    },
    .rows = {"*"},
    .cost = streaming_cost(6),
    .alias = {{.output = 1, .input = 1, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({})},
                  .attrs = {{"momentum", 0.9}, {"nesterov", 0}}},
                 {.name = "nesterov",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({})},
                  .attrs = {{"momentum", 0.9}, {"nesterov", 1}}}},
};

namespace {

// Per step: the Gram matrix of the shorter side, its square, and their product with the matrix.
Cost orthogonalize_cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out) {
  std::vector<Gemm> gemms;
  auto columns = static_cast<double>(in[0].shape[1]);
  for (int64_t rows : attrs.integers("packed")) {
    double shorter = std::min(static_cast<double>(rows), columns),
           longer = std::max(static_cast<double>(rows), columns);
    for (int64_t step = 0; step < attrs.integer("steps"); ++step) {
      gemms.push_back({.rows = shorter, .columns = shorter, .depth = longer, .of = Gemm::Of::optimizer});
      gemms.push_back({.rows = shorter, .columns = shorter, .depth = shorter, .of = Gemm::Of::optimizer});
      gemms.push_back({.rows = shorter, .columns = longer, .depth = shorter, .of = Gemm::Of::optimizer});
    }
  }
  Cost cost = gemms_cost(std::move(gemms), in, out);
  if (attrs.integer_or("bf16", 0) != 0) cost.computes_in = DType::bf16;
  return cost;
}

}  // namespace

const OpDef orthogonalize{
    .name = "orthogonalize",
    .contract =
        "Each packed matrix x of `packed` rows: x / ‖x‖, then `steps` times x ← a·x + (b·xxᵀ + c·(xxᵀ)²)·x; y is the "
        "result times the factor that `adjust` names. With bf16, a GPU may round between GEMMs.",
    .operands = "x[o i] -> y[o i]",
    .attrs = {"packed", "steps", "adjust", "bf16"},
    .cost = orthogonalize_cost,
    .recompute = Recompute::never,
    .examples =
        {{.name = "packed",
          .inputs = {f64({8, 6})},
          .attrs = {{"packed", std::vector<int64_t>{5, 3}}, {"steps", 5}, {"adjust", std::string("original")}}},
         {.name = "tall",
          .inputs = {f64({7, 3})},
          .attrs = {{"packed", std::vector<int64_t>{7}}, {"steps", 3}, {"adjust", std::string("match_rms_adamw")}}}},
};

const OpDef muon_step{
    .name = "muon_step",
    .contract = "p −= lr·(u + weight_decay·p).",
    .operands = "p[*], u[*], lr[], scale[], low?[*] -> p_next[*], low_next?[*]",
    .attrs = {"weight_decay"},
    .shape = [](const Attrs&, auto in) { return updated_types(in, {0}, 4); },
    .rows = {"*"},
    .cost = streaming_cost(4),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 4, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({}), f64({})},
                  .attrs = {{"weight_decay", 0.1}}}},
};

}  // namespace sextant::ops
