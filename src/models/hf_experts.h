// Keys of config.json about experts. Families have their own names for some of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "models/hf_type.h"

namespace sextant {

// Empty: the type has no such key.
struct ExpertKeys {
  std::string_view count;
  std::string_view width = {};  // empty: intermediate_size
  std::string_view normalise = {};
  std::string_view every = {}, dense_layers = {};
  std::string_view shared_width = {};
};

// num_experts_per_tok, router_aux_loss_coef and those keys. What is absent is as `otherwise`.
ExpertsSpec read_experts(HfReader& reader, const ExpertKeys& keys, const ExpertsSpec& otherwise);
void write_experts(const ModelSpec& spec, const ExpertKeys& keys, nlohmann::json& out);
std::vector<HfName> expert_names(const ExpertKeys& keys);

}  // namespace sextant
