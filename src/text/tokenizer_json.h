// The parts of a tokenizer.json, each read by a file of its own into the TokenizerParts. UserError names what is not
// supported.
#pragma once

#include "text/json_field.h"
#include "text/tokenizer_parts.h"

namespace sextant {

// Its stages, and whether the vocabulary is of bytes or of characters.
void read_pre_tokenizer(const JsonField& field, TokenizerParts& parts);

// After the pre-tokenizer.
void read_model(const JsonField& model, TokenizerParts& parts);

}  // namespace sextant
