// The weights of a model directory as Hugging Face lays them out: one file, or shards named by an index; safetensors,
// or, where there are none, files of torch.save. What leaves is one set of named tensors, each in exactly one mapped
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/tensor_file.h"

namespace sextant {

constexpr std::string_view kWeightsFile = "model.safetensors";
constexpr std::string_view kWeightsIndexFile = "model.safetensors.index.json";
constexpr std::string_view kTorchWeightsFile = "pytorch_model.bin";
constexpr std::string_view kTorchWeightsIndexFile = "pytorch_model.bin.index.json";

// The weight_map of an index: tensor name to file name. File names are plain: they cannot lead out of the directory.
// The sums under "metadata" are not read: in published models they are often wrong.
std::map<std::string, std::string, std::less<>> parse_weights_index(std::string_view place, std::string_view text);

class WeightsReader {
 public:
  // A model directory, an index, or a single file, which is one of torch.save where its name ends in .bin. UserError
  // when something is missing or does not fit.
  explicit WeightsReader(const std::filesystem::path& path);

  const std::vector<std::string>& names() const { return names_; }  // sorted
  bool contains(std::string_view name) const { return file_of_.find(name) != file_of_.end(); }
  TensorView tensor(std::string_view name) const;  // UserError when there is none of this name
  size_t file_count() const { return files_.size(); }
  int64_t total_bytes() const;

 private:
  void open_single(const std::filesystem::path& file);
  void open_sharded(const std::filesystem::path& index);

  std::string place_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, size_t, std::less<>> file_of_;  // name to position in files_
  std::vector<std::string> names_;
};

}  // namespace sextant
