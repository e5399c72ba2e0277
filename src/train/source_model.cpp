#include "train/source_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/model_weights.h"
#include "models/hf_config.h"

namespace sextant {

namespace {

void refuse_dropout(const std::filesystem::path& config) {
  std::vector<Complaint> complaints;
  for (const HfDropoutRate& rate : hf_dropout_rates(read_file(config), config.string()))
    complaints.push_back(
        {.place = fmt::format("{} {}", config.string(), rate.key),
         .got = fmt::format("{} (in the file, or transformers' default): dropout is not implemented", rate.rate),
         .expected = "0",
         .hint = "model.dropout=0 trains without dropout"});
  if (!complaints.empty()) throw UserError(complaints);
}

}  // namespace

void check_source_model(const RunConfig& run, const ModelSpec& spec) {
  std::filesystem::path directory = *run.model.from;
  WeightsReader weights(directory);
  if (!run.model.tied_head) refuse_other_head(spec, weights);
  if (!run.model.dropout) refuse_dropout(directory / "config.json");
}

}  // namespace sextant
