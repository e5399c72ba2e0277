// Upcycling: a model with experts that starts from a dense one. Every expert starts as a copy of the dense MLP, and
// what the dense model has no weights for, the router and a shared expert, is drawn. With routing weights that sum to 1
// the new model computes what the dense one does (Komatsuzaki et al. 2022).
#pragma once

#include <vector>

#include "models/model_def.h"

namespace sextant {

// The dense model's spec with experts of that architecture, each as wide as the MLP.
ModelSpec upcycled_spec(const ModelSpec& dense, const ModelDef& target);

// The tensors of the dense model's directory as rows of the parameters of the model with experts. UserError where one
// of the two has a part that the other has no place for.
std::vector<HfTensor> upcycled_tensors(const ModelSpec& spec, const ModelSpec& dense);

}  // namespace sextant
