// How a Hugging Face directory holds the matrices of experts. transformers 5 keeps those of a layer as two tensors of
// three dims and may write them so; released files hold most families' one by one, and some families' transposed.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model_def.h"

namespace sextant {

enum class ExpertFiles : uint8_t {
  as_listed,           // as ModelDef::tensors lists them: what the authors of the architecture released
  stacked,             // gate_up_proj [experts, 2·width, hidden] and down_proj [experts, hidden, width]
  stacked_transposed,  // gate_up_proj [experts, hidden, 2·width] and down_proj [experts, width, hidden]
};

// The tensors of the spec's model in such files.
std::vector<HfTensor> tensors_in(const ModelSpec& spec, ExpertFiles files);

}  // namespace sextant
