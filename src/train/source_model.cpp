#include "train/source_model.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/files.h"
#include "base/hash.h"
#include "ckpt/model_weights.h"
#include "models/hf_config.h"
#include "models/upcycle.h"

namespace sextant {

namespace {

ModelSpec spec_of_source(const RunConfig& run) {
  std::filesystem::path file = std::filesystem::path(*run.model.from) / "config.json";
  return spec_from_hf_config(read_file(file), file.string());
}

constexpr int64_t kWholeModel = 64 << 20;  // bytes
constexpr size_t kTensorEnd = 64 << 10;    // bytes
constexpr size_t kSampledTensors = 1024;

void add_text(ContentHash& hash, std::string_view text) {
  hash.add(std::as_bytes(std::span(text)));
  hash.add(std::as_bytes(std::span("", 1)));  // where it ends
}

void add_ends(ContentHash& hash, std::span<const std::byte> bytes) {
  size_t length = std::min(kTensorEnd, bytes.size());
  hash.add(bytes.first(length));
  hash.add(bytes.last(length));
}

}  // namespace

std::string identity_of_weights(const std::filesystem::path& directory) {
  WeightsReader weights(directory);
  const std::vector<std::string>& names = weights.names();
  bool whole = weights.total_bytes() <= kWholeModel;
  size_t stride = whole ? 1 : (names.size() + kSampledTensors - 1) / kSampledTensors;
  ContentHash hash;
  for (size_t i = 0; i < names.size(); ++i) {
    TensorView tensor = weights.tensor(names[i]);
    add_text(hash, names[i]);
    add_text(hash, fmt::format("{} {}", name_of(tensor.dtype), tensor.shape.text()));
    if (whole)
      hash.add(tensor.bytes);
    else if (i % stride == 0)
      add_ends(hash, tensor.bytes);
  }
  return hex(hash.value());
}

std::vector<std::string> check_source_model(const RunConfig& run, const ModelSpec& spec) {
  std::filesystem::path directory = *run.model.from;
  WeightsReader weights(directory);
  if (!run.model.given<&ModelSpec::tied_head>()) refuse_other_head(spec, weights);
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
