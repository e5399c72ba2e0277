#include "train/source_model.h"

#include <filesystem>

#include "ckpt/model_weights.h"

namespace sextant {

std::vector<std::string> check_source_model(const RunConfig& run, const ModelSpec& spec) {
  std::filesystem::path directory = *run.model.from;
  WeightsReader weights(directory);
  if (!run.model.tied_head) refuse_other_head(spec, weights);
  std::string unread = unread_layers(spec, weights);
  return unread.empty() ? std::vector<std::string>{} : std::vector<std::string>{unread};
}

}  // namespace sextant
