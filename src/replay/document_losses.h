// Which documents of a step have the highest loss: the one that made a spike stands first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/data/feeder.h"
#include "train/data/step_trace.h"

namespace sextant {

struct DocumentLoss {
  int64_t sample = 0;
  std::string file;   // of tokens
  TracedPiece piece;  // what of the document is in the sample
  double loss = 0;    // mean over its tokens, in nats
};

struct LossesOfStep {
  double median = 0;                    // of samples
  std::vector<DocumentLoss> documents;  // of the samples with the highest loss, from high to low
};

// The mean loss of the targets that count of a microbatch; all ranks call it alike.
using MeasureLoss = std::function<std::optional<double>(const Feeder::Samples& samples)>;

// Samples first … first + count - 1: each is measured on its own, and of the worst each document.
LossesOfStep document_losses(const Dataset& dataset, int64_t first, int64_t count, const MeasureLoss& measure);

}  // namespace sextant
