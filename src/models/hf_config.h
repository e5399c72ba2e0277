// Hugging Face config.json <-> ModelSpec, for the model types gpt2, gpt_neox, opt, bloom, mpt, llama, mistral, qwen2, qwen3
// and nemotron; and palm, which is ours: transformers has no such model.
// Reading accepts files old (rope_theta, rope_scaling) and new (rope_parameters), fills what is absent with the
// defaults of `transformers`, and refuses by name what our models do not compute. Dropout rates are not part of a
// spec: they are ignored when read and written as 0.
#pragma once

#include <string>
#include <string_view>

#include "models/spec.h"

namespace sextant {

// UserError with every complaint about the text, each at "PLACE key". `place` is what to call the text.
ModelSpec spec_from_hf_config(std::string_view json, std::string_view place);

// The text `transformers` loads as the same model, weights in float32. The spec must be without problems_of and
// have its vocab.
std::string hf_config_json(const ModelSpec& spec);

}  // namespace sextant
