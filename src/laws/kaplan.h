// The laws of Kaplan et al. 2020 (arXiv:2001.08361): WebText2, N counts parameters without embeddings, losses in nats
// per token of GPT-2's tokenizer. `C_min` is the compute of training with batches far below the critical one; at the
// critical batch a run spends twice as much.
#pragma once

#include "laws/split.h"

namespace sextant {

constexpr double kPetaflopDay = 1e15 * 86400;

double kaplan_loss_of_compute(double min_compute);  // FLOPs, divided best

// Of 6·N·D FLOPs spent at the critical batch, so that C_min is half of them.
ComputeSplit kaplan_split();
double kaplan_loss_at_optimum(double compute);

}  // namespace sextant
