// Hugging Face config.json <-> ModelSpec, for the model types of all definitions. Reading accepts files old
// (rope_theta, rope_scaling) and new (rope_parameters), fills what is absent with the defaults of `transformers`, and
// refuses by name what our models do not compute and what a file says in two ways that differ. Dropout rates are not
// part of a spec: training asks for them by hf_dropout_rates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "models/dropout_rates.h"
#include "models/spec.h"

namespace sextant {

// UserError with every complaint about the text, each at "PLACE key". `place` is what to call the text.
ModelSpec spec_from_hf_config(std::string_view json, std::string_view place);

// The dropout rates that transformers would train this model with. UserError where one is not in [0, 1), and where it
// would leave out what our training cannot.
DropoutRates hf_dropout_rates(std::string_view json, std::string_view place);

// Ids that end a text, in a generation_config.json: one, several or none.
std::vector<int64_t> eos_in_generation_config(std::string_view json, std::string_view place);

// The text `transformers` loads as the same model, with weights of a type that is f32, bf16 or f16. The spec must be
// without problems_of and have its vocab. `base` is the config.json that the model came with, or empty: what it says
// beside the spec is kept. Of the dropout rates those are written that the model type has keys for.
std::string hf_config_json(const ModelSpec& spec, std::string_view base = {}, DType weights = DType::f32,
                           const DropoutRates& dropout = {});

}  // namespace sextant
