// A weight in full precision, wherever its bits are: in the parameter itself; where that is bf16, in the parameter and
// the state that holds the low halves (base/halves.h); where it is f16, in the state that holds its f32. The two may
// lie differently on the mesh: ZeRO shards the state first.
#pragma once

#include <span>
#include <vector>

#include "exec/executor.h"

namespace sextant {

// The values that hold a parameter's bits: itself, and behind it its low halves, or its f32, where there are any.
std::vector<const Value*> parts_of_weight(const Program& program, const Value& parameter);

// The elements that this rank holds in full precision, laid out like the last of the parameter's parts.
std::vector<float> read_weight(const StateView& state, const Value& parameter);

// Writes one part from f32 elements that are laid out like it.
void write_weight(Bound& bound, const Value& part, std::span<const float> local);

}  // namespace sextant
