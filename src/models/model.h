// From a ModelSpec to its Graph.
#pragma once

#include <cstdint>

#include "models/models.h"

namespace sextant {

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh);

// Exact, from the Graph's own parameters.
int64_t parameter_count(const Graph& graph);

// One rank: every axis has size 1.
Mesh single_rank_mesh();

}  // namespace sextant
