#include "ckpt/weights_writer.h"

#include "base/error.h"
#include "ckpt/json_walk.h"
#include "ckpt/weights_reader.h"

namespace sextant {

namespace {

// Fills each shard until the next tensor would not fit.
std::vector<std::vector<TensorSpec>> split_into_shards(std::vector<TensorSpec> tensors, int64_t max_bytes) {
  std::vector<std::vector<TensorSpec>> shards(1);
  int64_t filled = 0;
  for (TensorSpec& tensor : tensors) {
    int64_t bytes = bytes_of(tensor.dtype, tensor.shape).value_or(0);  // plan_safetensors refuses what has no size
    if (!shards.back().empty() && bytes > max_bytes - filled) {
      shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

std::string index_text(const std::vector<WeightsPlan::Shard>& shards) {
  int64_t bytes = 0, parameters = 0;
  std::map<std::string_view, std::string_view> files;
  for (const WeightsPlan::Shard& shard : shards) {
    bytes += shard.layout.data_bytes();
    for (const TensorEntry& tensor : shard.layout.tensors) {
      parameters += tensor.shape.count();
      bool is_new = files.emplace(tensor.name, shard.file_name).second;
      BUG_IF(!is_new, "tensor name {} is taken", shown(tensor.name));
    }
  }
  std::string map;
  for (const auto& [name, file] : files)
    map += fmt::format("{}    {}: {}", map.empty() ? "\n" : ",\n", json_string(name), json_string(file));
  return fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_parameters\": {},\n    \"total_size\": {}\n  }},\n"
      "  \"weight_map\": {{{}\n  }}\n}}\n",
      parameters, bytes, map);
}

}  // namespace

WeightsPlan plan_weights(std::vector<TensorSpec> tensors, const WeightsOptions& options) {
  std::vector<std::vector<TensorSpec>> shards = split_into_shards(std::move(tensors), options.max_shard.n);
  WeightsPlan plan;
  for (size_t i = 0; i < shards.size(); ++i)
    plan.shards.push_back({shards.size() == 1 ? std::string(kWeightsFile)
                                              : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()),
                           plan_safetensors(std::move(shards[i]), options.metadata)});
  if (shards.size() > 1) plan.index = index_text(plan.shards);
  return plan;
}

WeightsWriter::WeightsWriter(const std::filesystem::path& directory, WeightsPlan plan, Share share) {
  for (WeightsPlan::Shard& shard : plan.shards) {
    for (const TensorEntry& tensor : shard.layout.tensors) shard_index_.emplace(tensor.name, shards_.size());
    shards_.push_back(std::make_unique<SafetensorsWriter>(directory / shard.file_name, std::move(shard.layout), share));
  }
  if (plan.index.empty()) return;
  OutputFile index(directory / kWeightsIndexFile, static_cast<int64_t>(plan.index.size()),
                   share == Share::whole ? Creation::fresh : Creation::shared);
  index.write_at(0, std::as_bytes(std::span(plan.index)));
  index.flush();
}

SafetensorsWriter& WeightsWriter::shard_of(std::string_view name) {
  auto found = shard_index_.find(name);
  BUG_IF(found == shard_index_.end(), "{} is not among the tensors of this model", shown(name));
  return *shards_[found->second];
}

void WeightsWriter::finish() {
  for (const std::unique_ptr<SafetensorsWriter>& shard : shards_) shard->finish();
}

}  // namespace sextant
