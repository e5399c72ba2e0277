#include "train/source_model.h"

#include <filesystem>

#include "base/files.h"
#include "ckpt/model_weights.h"
#include "models/hf_config.h"
#include "models/upcycle.h"

namespace sextant {

namespace {

ModelSpec spec_of_source(const RunConfig& run) {
  std::filesystem::path file = std::filesystem::path(*run.model.from) / "config.json";
  return spec_from_hf_config(read_file(file), file.string());
}

}  // namespace

std::vector<std::string> check_source_model(const RunConfig& run, const ModelSpec& spec) {
  std::filesystem::path directory = *run.model.from;
  WeightsReader weights(directory);
  if (!run.model.tied_head) refuse_other_head(spec, weights);
  refuse_other_copies(spec, weights);
  if (ModelSpec own = spec_of_source(run); is_upcycled(spec, own)) upcycled_tensors(spec, own);
  std::vector<std::string> unread{unread_layers(spec, weights), unread_models(spec, weights)};
  std::erase(unread, "");
  return unread;
}

bool is_upcycled(const ModelSpec& spec, const ModelSpec& source) {
  return spec.experts && !source.experts;
}

SourceModel load_source_model(Bound& bound, const RunConfig& run, const ModelSpec& spec) {
  WeightsReader weights(*run.model.from);
  ModelSpec own = spec_of_source(run);
  if (!is_upcycled(spec, own)) {
    load_weights(bound, spec, weights);
    return SourceModel::same;
  }
  initialize_weights(bound, static_cast<uint64_t>(run.train.seed));
  load_upcycled_weights(bound, spec, own, weights);
  return SourceModel::upcycled;
}

}  // namespace sextant
