// Writing the weights of a model as Hugging Face lays them out: model.safetensors, or, above the maximal shard size,
// model-0000i-of-0000n.safetensors with an index. Like a single file, the whole is planned before any data is written.
// Meant for the path of a StagedDirectory: by itself it does not survive a crash half-way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ckpt/safetensors_writer.h"

namespace sextant {

struct WeightsOptions {
  Bytes max_shard{5'000'000'000};          // of data; a larger tensor gets a shard of its own
  Metadata metadata = {{"format", "pt"}};  // transformers refuses files that do not name their format
};

struct WeightsPlan {
  struct Shard {
    std::string file_name;
    SafetensorsLayout layout;
  };
  std::vector<Shard> shards;
  std::string index;  // the index file's text; empty when there is one shard
};

// Tensors go to shards in the order given: keep layers together.
WeightsPlan plan_weights(std::vector<TensorSpec> tensors, const WeightsOptions& options = {});

class WeightsWriter {
 public:
  WeightsWriter(const std::filesystem::path& directory, WeightsPlan plan, Share share = Share::whole);

  FileDType dtype_of(std::string_view name) { return shard_of(name).dtype_of(name); }
  void write(std::string_view name, std::span<const std::byte> bytes) { shard_of(name).write(name, bytes); }
  void write_rows(std::string_view name, RowRange rows, std::span<const std::byte> bytes) {
    shard_of(name).write_rows(name, rows, bytes);
  }
  void write_elements(std::string_view name, int64_t first, std::span<const std::byte> bytes) {
    shard_of(name).write_elements(name, first, bytes);
  }
  void stream(std::string_view name, const RowFiller& fill) { shard_of(name).stream(name, fill); }

  void finish();  // flushes to disk

 private:
  SafetensorsWriter& shard_of(std::string_view name);

  std::vector<std::unique_ptr<SafetensorsWriter>> shards_;
  std::map<std::string, size_t, std::less<>> shard_index_;
};

}  // namespace sextant
