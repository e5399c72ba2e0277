// Reads the normalizer of a tokenizer.json.
#pragma once

#include "text/json_field.h"
#include "text/normalize/normalizer.h"

namespace sextant {

// Null where there is none. UserError names a kind that is not supported.
NormalizerPtr read_normalizer(const JsonField& field);

}  // namespace sextant
