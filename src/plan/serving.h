// Requirements of serving a model: weights, key-value caches, how many sequences fit, time to the first token and for
// each further one. All come from the Programs that generation runs, priced as a training step is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "models/spec.h"

namespace sextant {

struct ServingRequest {
  const ModelSpec& spec;
  const Machine& machine;
  const SoftwareProfile& profile;
  int64_t tp = 1;          // devices that share the model
  int64_t prompt = 1024;   // positions
  int64_t context = 4096;  // positions kept, the prompt among them
};

struct ServingBatch {
  int64_t sequences = 1;
  double first_token_s = 0;  // of a prompt alone
  double per_token_s = 0;    // for all sequences together
  double tokens_per_s = 0;
};

struct Serving {
  int64_t tp = 1, prompt = 0, context = 0;
  int64_t weight_bytes = 0;              // on each device
  int64_t cache_bytes_per_token = 0;     // of one sequence, on all devices together
  int64_t cache_bytes_per_sequence = 0;  // of a full context, on each device
  int64_t room_bytes = 0;                // what the device has, without its context
  int64_t most_sequences = 0;            // that fit
  std::vector<ServingBatch> batches;     // 1, and powers of two up to what fits

  bool fits() const { return most_sequences > 0; }
};

Serving plan_serving(const ServingRequest& request);

std::string serving_text(const Serving& serving);
std::string serving_json(const Serving& serving);  // one object

}  // namespace sextant
