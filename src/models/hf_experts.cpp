#include "models/hf_experts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant {

ExpertsSpec read_experts(HfReader& reader, const ExpertKeys& keys, const ExpertsSpec& otherwise) {
  ExpertsSpec experts = otherwise;
  experts.count = reader.integer(keys.count, experts.count);
  experts.per_token = reader.integer("num_experts_per_tok", experts.per_token);
  experts.balance_loss = reader.number("router_aux_loss_coef", experts.balance_loss);
  if (!keys.width.empty()) experts.ffn = reader.integer(keys.width, experts.ffn);
  if (!keys.normalise.empty()) experts.normalise = reader.flag(keys.normalise, experts.normalise);
  if (!keys.every.empty()) experts.every = reader.integer(keys.every, experts.every);
  if (!keys.shared_width.empty()) experts.shared_ffn = reader.integer(keys.shared_width, experts.shared_ffn);
  if (!keys.dense_layers.empty() && reader.has(keys.dense_layers)) {
    experts.dense_layers = reader.integers(keys.dense_layers);
    std::sort(experts.dense_layers.begin(), experts.dense_layers.end());
  }
  return experts;
}

void write_experts(const ModelSpec& spec, const ExpertKeys& keys, nlohmann::json& out) {
  const ExpertsSpec& experts = *spec.experts;
  out[keys.count] = experts.count;
  out["num_experts_per_tok"] = experts.per_token;
  out["router_aux_loss_coef"] = experts.balance_loss;
  if (!keys.width.empty()) out[keys.width] = experts.ffn;
  if (!keys.normalise.empty()) out[keys.normalise] = experts.normalise;
  if (!keys.every.empty()) out[keys.every] = experts.every;
  if (!keys.shared_width.empty()) out[keys.shared_width] = experts.shared_ffn;
  if (!keys.dense_layers.empty()) out[keys.dense_layers] = experts.dense_layers;
}

std::vector<HfName> expert_names(const ExpertKeys& keys) {
  std::vector<HfName> names{{"experts.count", keys.count},
                            {"experts.per_token", "num_experts_per_tok"},
                            {"experts.balance_loss", "router_aux_loss_coef"},
                            {"experts.ffn", keys.width.empty() ? "intermediate_size" : keys.width}};
  if (!keys.normalise.empty()) names.push_back({"experts.normalise", keys.normalise});
  if (!keys.every.empty()) names.push_back({"experts.every", keys.every});
  if (!keys.shared_width.empty()) names.push_back({"experts.shared_ffn", keys.shared_width});
  return names;
}

}  // namespace sextant
