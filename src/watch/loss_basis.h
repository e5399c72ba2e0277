// In which measure the losses of runs may be set beside each other. Nats per token mean the same only under one
// tokenizer, and a loss of training only on the same text; bits per byte are of the text itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/changes.h"

namespace sextant {

// Facts of one run's directory that decide which losses are comparable.
struct RunText {
  std::string name;
  std::optional<ConfigValues> config;  // of config.toml; nothing: there is none that can be read
  std::string remark;                  // why there is no config
  // Hashes that the run noted when it began; nothing in runs of earlier versions. An empty one: no tokenizer.
  std::optional<std::string> tokenizer, data;
};
RunText text_of(const std::filesystem::path& run, std::string name);

enum class LossMeasure : uint8_t {
  loss,             // of training
  validation_loss,  // the same text is measured, under one tokenizer
  bits_per_byte,    // the same text is measured
};
std::string_view field_of(LossMeasure measure);  // of metrics.jsonl
std::string_view unit_of(LossMeasure measure);   // "nats per token", "bits per byte"
std::string_view words_of(LossMeasure measure);  // as in "-0.2 in bits per byte"

struct LossBasis {
  std::optional<LossMeasure> measure = LossMeasure::loss;
  std::string why;  // not the loss of training, or none at all; empty where it is
};
// Runs whose text is not known (no config, no hashes) count as the same.
LossBasis loss_basis_of(const std::vector<RunText>& runs);

}  // namespace sextant
