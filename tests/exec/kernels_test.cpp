// Properties of every kernel, on the examples of its definition and on shapes that cross tile and block boundaries: f32
// agrees with f64, in place agrees with out of place, accumulate adds, threads change nothing.
#include <gtest/gtest.h>

#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

struct Case {
  const OpDef* def;
  Example example;
};

Attrs heads(int64_t q, int64_t kv, int64_t dim) {
  return {{"heads", q}, {"kv_heads", kv}, {"head_dim", dim}};
}

Attrs rope_attrs(int64_t q, int64_t kv, int64_t dim) {
  Attrs attrs = heads(q, kv, dim);
  attrs.set("theta", 10000.0);
  return attrs;
}

std::vector<Case> larger_cases() {
  Attrs adam{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}};
  return {
      {&ops::accumulate, {"long", {f64({3, 16411}), f64({3, 16411})}, {}}},
      {&ops::add, {"long", {f64({3, 16411}), f64({3, 16411})}, {}}},
      {&ops::adamw,
       {"long", {f64({5, 7001}), f64({5, 7001}), f64({5, 7001}), f64({5, 7001}), f64({}), f64({}), i32({})}, adam, 9}},
      {&ops::attention, {"odd", {f64({2, 130, 3 * 3 * 20})}, heads(3, 3, 20)}},
      {&ops::attention, {"long", {f64({1, 577, (4 + 2 * 2) * 16})}, heads(4, 2, 16)}},
      {&ops::attention_backward,
       {"odd", {f64({2, 130, 60}), f64({2, 130, 180}), f64({2, 130, 60}), f64({2, 3, 130})}, heads(3, 3, 20)}},
      {&ops::attention_backward,
       {"long", {f64({1, 577, 64}), f64({1, 577, 128}), f64({1, 577, 64}), f64({1, 4, 577})}, heads(4, 2, 16)}},
      {&ops::attention_cached,
       {"prefill", {f64({2, 131, 60}), f64({2, 1, 300, 12}), f64({2, 1, 300, 12}), i32({})}, heads(3, 1, 12), 160}},
      {&ops::attention_cached,
       {"decode", {f64({1, 1, 8 * 24}), f64({1, 2, 700, 24}), f64({1, 2, 700, 24}), i32({})}, heads(4, 2, 24), 700}},
      {&ops::embedding, {"many", {i32({3, 173}), f64({1000, 130})}, {}, 1000}},
      {&ops::embedding_backward, {"many", {f64({3, 173, 130}), i32({3, 173}), f64({1000, 130})}, {}, 50}},
      {&ops::gelu, {"long", {f64({3, 16411})}, {}}},
      {&ops::gelu_backward, {"long", {f64({3, 16411}), f64({3, 16411})}, {}}},
      {&ops::swish, {"long", {f64({3, 16411})}, {{"beta", 1.702}}}},
      {&ops::swish_backward, {"long", {f64({3, 16411}), f64({3, 16411})}, {{"beta", 1.702}}}},
      {&ops::head_loss, {"many", {f64({3, 173, 50}), f64({1000, 50}), i32({3, 173})}, {{"z_loss", 0.001}}, 1000}},
      {&ops::head_loss, {"chunks", {f64({1, 1100, 8}), f64({300, 8}), i32({1, 1100})}, {{"z_loss", 0.0}}, 300}},
      {&ops::head_loss_backward,
       {"many", {f64({3, 173, 50}), f64({1000, 50}), i32({3, 173}), f64({})}, {{"z_loss", 0.001}}, 1000}},
      {&ops::head_loss_backward,
       {"chunks", {f64({1, 1100, 8}), f64({300, 8}), i32({1, 1100}), f64({})}, {{"z_loss", 0.0}}, 300}},
      {&ops::layer_norm, {"rows", {f64({1, 517, 131}), f64({131}), f64({131})}, {{"eps", 1e-5}}}},
      {&ops::layer_norm_backward,
       {"rows", {f64({1, 517, 131}), f64({1, 517, 131}), f64({131}), f64({1, 517}), f64({1, 517})}, {}}},
      {&ops::linear, {"odd", {f64({3, 173, 131}), f64({389, 131}), f64({389})}, {}}},
      {&ops::linear, {"deep", {f64({1, 70, 1300}), f64({90, 1300})}, {}}},
      {&ops::linear, {"wide", {f64({1, 9, 33}), f64({4500, 33})}, {}}},
      {&ops::linear, {"one_row", {f64({1, 1, 1027}), f64({389, 1027}), f64({389})}, {}}},
      {&ops::linear, {"three_rows", {f64({3, 1, 1027}), f64({389, 1027}), f64({389})}, {}}},
      {&ops::linear_input_gradient, {"odd", {f64({3, 173, 389}), f64({389, 131})}, {}}},
      {&ops::linear_weight_gradient, {"odd", {f64({3, 173, 389}), f64({3, 173, 131})}, {}}},
      {&ops::linear_weight_gradient, {"deep", {f64({3, 700, 45}), f64({3, 700, 37})}, {}}},
      {&ops::linear_bias_gradient, {"odd", {f64({3, 411, 389})}, {}}},
      {&ops::position_embedding, {"start", {f64({3, 130, 70}), f64({200, 70}), i32({})}, {}, 71}},
      {&ops::position_embedding_backward, {"rows", {f64({3, 130, 70}), f64({900, 70})}, {}}},
      {&ops::rms_norm, {"rows", {f64({1, 517, 131}), f64({131})}, {{"eps", 1e-5}}}},
      {&ops::rms_norm_backward, {"rows", {f64({1, 517, 131}), f64({1, 517, 131}), f64({131}), f64({1, 517})}, {}}},
      {&ops::rope, {"start", {f64({2, 130, 10 * 12}), i32({})}, rope_attrs(6, 2, 12), 1000}},
      {&ops::sum_squares, {"long", {f64({3, 16411})}, {}}},
      {&ops::swiglu, {"rows", {f64({3, 173, 2 * 131})}, {}}},
      {&ops::swiglu_backward, {"rows", {f64({3, 173, 131}), f64({3, 173, 2 * 131})}, {}}},
      {&ops::take_position, {"many", {f64({5, 130, 70}), i32({})}, {}, 130}},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const OpDef* def : all_ops())
    for (const Example& example : def->examples)
      if (cpu_kernel(*def).run) cases.push_back({def, example});
  for (Case& c : larger_cases()) cases.push_back(std::move(c));
  return cases;
}

KernelRun run_of(const Case& c) {
  return {.def = *c.def, .attrs = c.example.attrs, .types = c.example.inputs, .inputs = draw_inputs(*c.def, c.example)};
}

class Kernels : public testing::TestWithParam<Case> {};

TEST_P(Kernels, SinglePrecisionAgreesWithDouble) {
  KernelRun run = run_of(GetParam());
  std::vector<Numbers> exact = run_kernel(run);
  run.real = DType::f32;
  std::vector<Numbers> single = run_kernel(run);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_error(single[i], exact[i]), 3e-6) << "output " << i;
}

TEST_P(Kernels, ThreadsChangeNoBit) {
  for (DType real : {DType::f32, DType::f64}) {
    KernelRun run = run_of(GetParam());
    run.real = real;
    std::vector<Numbers> one = run_kernel(run);
    for (int threads : {2, 3}) {
      run.threads = threads;
      EXPECT_EQ(run_kernel(run), one) << threads << " threads";
    }
  }
}

TEST_P(Kernels, InPlaceAgreesWithOutOfPlace) {
  for (const Alias& alias : GetParam().def->alias) {
    bool left_out = alias.input >= static_cast<int>(GetParam().example.inputs.size());
    if (alias.rule == Alias::Rule::must || left_out) continue;
    KernelRun run = run_of(GetParam());
    run.real = DType::f32;
    std::vector<Numbers> apart = run_kernel(run);
    run.over_input = alias.input;
    EXPECT_EQ(run_kernel(run), apart) << "over input " << alias.input;
  }
}

TEST_P(Kernels, AccumulateAddsOntoTheFirstOutput) {
  if (GetParam().def->accumulate == Accumulate::unsupported) return;
  for (DType real : {DType::f32, DType::f64}) {
    KernelRun run = run_of(GetParam());
    run.real = real;
    std::vector<Numbers> fresh = run_kernel(run);
    run.attrs.set("accumulate", int64_t{1});
    run.first_output = fresh[0];
    for (double& x : run.first_output) x = 1 - 2 * x;
    std::vector<Numbers> added = run_kernel(run);
    for (double& x : fresh[0]) x = 1 - x;
    for (size_t i = 0; i < fresh.size(); ++i)
      EXPECT_LT(relative_error(added[i], fresh[i]), real == DType::f32 ? 3e-6 : 1e-13) << "output " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernels, testing::ValuesIn(all_cases()), [](const auto& info) {
  return fmt::format("{}_{}_{}", info.param.def->name, info.param.example.name, info.index);
});

}  // namespace
}  // namespace sextant
