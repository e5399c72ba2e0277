// From a ModelSpec to its Graph.
#pragma once

#include <cstdint>

#include "models/models.h"

namespace sextant {

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh);

// Exact, from the Graph's own parameters: those that are trained, as everybody counts.
int64_t parameter_count(const Graph& graph);

// Those that one token goes through: of experts, as many as it is sent to. Both ways of counting are in use.
struct ActiveParameters {
  int64_t all = 0;
  int64_t without_embedding = 0;  // of the input; a head that is tied to it counts
};
ActiveParameters active_parameters(const Graph& graph);

// One rank: every axis has size 1.
Mesh single_rank_mesh();

}  // namespace sextant
