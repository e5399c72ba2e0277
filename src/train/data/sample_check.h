// Whether the parts of the data hold a sample, said in the words of the config before a sampler is made.
#pragma once

#include <span>

#include "config/run_config.h"
#include "data/sampler.h"

namespace sextant {

// UserError where a source of the training data or of the validation data has fewer tokens than batch.seq + 1.
void require_training_samples(const RunConfig& run, std::span<const SampleSource> sources);
void require_validation_samples(const RunConfig& run, std::span<const SampleSource> sources);

}  // namespace sextant
