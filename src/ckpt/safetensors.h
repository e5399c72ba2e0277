// Reading safetensors files: u64 header length, JSON header, data. What enters may be hostile; what leaves is checked:
// every tensor has a known type, its bytes match its shape, and the tensors cover the data exactly, without overlap.
// All else is a UserError that names the file and the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "ckpt/tensor_file.h"

namespace sextant {

constexpr int64_t kMaxSafetensorsHeader = 100'000'000;  // bytes; the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

struct TensorEntry {
  std::string name;
  FileDType dtype = FileDType::f32;
  GlobalShape shape;
  int64_t begin = 0;  // bytes, from the start of the data
  int64_t end = 0;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;  // in the order of the file

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their data
  Metadata metadata;
  int64_t data_begin = 0;  // byte of the file at which the data starts
};

// `file` is the whole file; `place` names it in messages.
SafetensorsHeader parse_safetensors(std::string_view place, std::span<const std::byte> file);

// A file, mapped: tensors are read from disk when they are touched.
class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override { return index_.find(name) != index_.end(); }
  TensorView tensor(std::string_view name) const override;

 private:
  std::string place_;
  MappedFile file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;  // name to position in header_.tensors
};

}  // namespace sextant
