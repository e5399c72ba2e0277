// Writing safetensors files. The layout is known before any data: names, types and shapes give the header and the
// offset of every tensor, so data can be written in any order, from any thread, by many ranks, with no second copy of
// the model in memory. The order of tensors and the padding are those of the format's own writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/disk.h"
#include "ckpt/safetensors.h"

namespace sextant {

struct TensorSpec {
  std::string name;
  FileDType dtype = FileDType::f32;
  GlobalShape shape;
};

// Names are UTF-8 and differ; each tensor is a whole number of bytes.
struct SafetensorsLayout {
  std::string header;                // the first bytes of the file: length, JSON, padding
  std::vector<TensorEntry> tensors;  // in the order of their data
  int64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
  int64_t file_bytes() const { return static_cast<int64_t>(header.size()) + data_bytes(); }
};

SafetensorsLayout plan_safetensors(std::vector<TensorSpec> tensors, const Metadata& metadata = {});

// whole: this writer writes every byte, which finish() checks. part: one of several writers, in this process or others,
// that fill the same file; each writes the same header, so none needs to come first.
enum class Share { whole, part };

// Fills `block` with the rows of a tensor, as bytes of the file.
using RowFiller = std::function<void(RowRange rows, std::span<std::byte> block)>;

class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, SafetensorsLayout layout, Share share = Share::whole);

  FileDType dtype_of(std::string_view name) const { return entry(name).dtype; }
  void write(std::string_view name, std::span<const std::byte> bytes);
  void write_rows(std::string_view name, RowRange rows, std::span<const std::byte> bytes);
  // Elements of a tensor from `first` on, in the order of the file; types of whole bytes only.
  void write_elements(std::string_view name, int64_t first, std::span<const std::byte> bytes);
  // Asks for the tensor in blocks of some MB, top to bottom, and writes each.
  void stream(std::string_view name, const RowFiller& fill);

  void finish();  // flushes to disk

 private:
  const TensorEntry& entry(std::string_view name) const;
  void write_data(int64_t offset, std::span<const std::byte> bytes);

  SafetensorsLayout layout_;
  Share share_;
  OutputFile file_;
  std::map<std::string_view, size_t> index_;  // into layout_.tensors
  std::atomic<int64_t> written_{0};           // bytes of data
};

}  // namespace sextant
