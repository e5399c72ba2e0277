// The constants of a law of Chinchilla's form that fit runs best: the least sum of Huber(log L(N, D) - log L).
#pragma once

#include <optional>
#include <span>

#include "laws/chinchilla.h"
#include "laws/runs_csv.h"

namespace sextant {

// Starts from a grid and, where given, from `guess` as well. The runs must be positive and vary in size and length.
LawConstants minimise(std::span<const LossRun> runs, double huber_delta, const std::optional<LawConstants>& guess);

}  // namespace sextant
