// Losses of routers that send every token everywhere alike, in closed form: all scores are 1/experts and all logits 0.
#include <gtest/gtest.h>

#include <cmath>

#include "architecture_data.h"
#include "exec/cpu/cpu_executor.h"
#include "model_results.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {
namespace {

constexpr int64_t kSequences = 2, kSeq = 12, kLayers = 3;

struct RouterMeans {
  double balance = 0, z = 0;
};

RouterMeans of_even_routers(BalanceScope scope, int64_t experts, int64_t per_token, double balance_loss,
                            double z_loss) {
  ModelSpec spec = spec_from_hf_config(read_file(model_fixtures() / "mixtral" / "config.json"), "config.json");
  spec.layers = kLayers;
  spec.experts->count = experts, spec.experts->per_token = per_token;
  spec.experts->balance_scope = scope, spec.experts->balance_loss = balance_loss, spec.experts->z_loss = z_loss;
  std::unique_ptr<Executor> executor = make_cpu_executor(1);
  Program program = lower(build_model(spec, {.batch = kSequences, .seq = kSeq}, single_rank_mesh()), executor->target(),
                          {.train = Optimizer{}});
  std::unique_ptr<Arena> arena = executor->allocate(program.arena_bytes);
  std::unique_ptr<Bound> bound = executor->bind(program, *arena);
  initialize_weights(*bound, 1);
  int routers = 0;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::parameter && value.path.find("router.weight") != std::string::npos) {
      const std::vector<float> zeros(static_cast<size_t>(value.shape.count()));
      bound->write(value, std::as_bytes(std::span(zeros)));
      ++routers;
    }
  EXPECT_EQ(routers, kLayers);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < kSequences * kSeq; ++i) tokens.push_back(i * 5 % 23);
  bound->write(program.at("tokens"), std::as_bytes(std::span(tokens)));
  bound->write(program.at("targets"), std::as_bytes(std::span(tokens)));
  write_value(*bound, program.at("loss_scale"), 1.0f);
  write_value(*bound, program.at("balance_scale"), 1.0f);
  bound->run({.region = RegionKind::forward});
  RouterMeans means;
  if (const Value* balance = program.find("balance_loss")) means.balance = read_value<float>(*bound, *balance);
  if (const Value* z = program.find("router_z_loss")) means.z = read_value<float>(*bound, *z);
  return means;
}

TEST(RouterLossValues, OfEvenRouters) {
  const double coefficient = 0.3, z_coefficient = 0.07;
  for (int64_t experts : {4, 6})
    for (int64_t per_token : {1, 2, 3}) {
      const double z = kLayers * z_coefficient * std::pow(std::log(static_cast<double>(experts)), 2);
      // Values of docs/config.md for each scope where load is balanced, summed over layers where each has its own.
      for (auto [scope, balance] : {std::pair{BalanceScope::all_layers, coefficient * static_cast<double>(per_token)},
                                    std::pair{BalanceScope::layer, coefficient * kLayers},
                                    std::pair{BalanceScope::sequence, coefficient * kLayers}}) {
        RouterMeans found = of_even_routers(scope, experts, per_token, coefficient, z_coefficient);
        EXPECT_NEAR(found.balance, balance, 1e-5 * balance) << experts << " experts, " << per_token << " per token";
        EXPECT_NEAR(found.z, z, 1e-5 * z) << experts << " experts, " << per_token << " per token";
      }
    }
}

}  // namespace
}  // namespace sextant
