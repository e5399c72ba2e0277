#include "ckpt/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "base/units.h"
#include "ckpt/json_walk.h"

namespace sextant {

namespace {

constexpr int64_t kBlockBytes = 8 << 20;
constexpr int64_t kAlignment = 8;

std::vector<TensorEntry> place_tensors(std::vector<TensorSpec> specs) {
  std::sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return std::tie(b.dtype, a.name) < std::tie(a.dtype, b.name);
  });
  std::vector<TensorEntry> entries;
  entries.reserve(specs.size());
  int64_t offset = 0;
  for (TensorSpec& spec : specs) {
    std::optional<int64_t> bytes = bytes_of(spec.dtype, spec.shape);
    int64_t end = 0;
    BUG_IF(!bytes || __builtin_add_overflow(offset, *bytes, &end), "tensor {} of shape {} has no size",
           shown(spec.name), spec.shape.text());
    entries.push_back({std::move(spec.name), spec.dtype, std::move(spec.shape), offset, end});
    offset = end;
  }
  return entries;
}

void check_names(const std::vector<TensorEntry>& tensors) {
  std::unordered_set<std::string_view> taken{kMetadataKey};
  for (const TensorEntry& tensor : tensors)
    BUG_IF(!taken.insert(tensor.name).second, "tensor name {} is taken", shown(tensor.name));
}

std::string header_json(const std::vector<TensorEntry>& tensors, const Metadata& metadata) {
  std::string json = "{";
  auto key = [&](std::string_view name) {
    if (json.back() != '{') json += ',';
    json += json_string(name) + ':';
  };
  if (!metadata.empty()) {
    key(kMetadataKey);
    json += '{';
    for (const auto& [name, value] : metadata) {
      key(name);
      json += json_string(value);
    }
    json += '}';
  }
  for (const TensorEntry& t : tensors) {
    key(t.name);
    json += fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name_of(t.dtype),
                        fmt::join(t.shape.dims(), ","), t.begin, t.end);
  }
  json += '}';
  return json;
}

}  // namespace

SafetensorsLayout plan_safetensors(std::vector<TensorSpec> specs, const Metadata& metadata) {
  SafetensorsLayout layout;
  layout.tensors = place_tensors(std::move(specs));
  check_names(layout.tensors);
  std::string json = header_json(layout.tensors, metadata);
  json.resize(static_cast<size_t>(round_up(static_cast<int64_t>(json.size()), kAlignment)), ' ');
  auto length = static_cast<uint64_t>(json.size());
  BUG_IF(length > static_cast<uint64_t>(kMaxSafetensorsHeader),
         "a safetensors header of {} bytes; the format allows {}", length, kMaxSafetensorsHeader);
  layout.header.assign(sizeof length, '\0');
  std::memcpy(layout.header.data(), &length, sizeof length);
  layout.header += json;
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, SafetensorsLayout layout, Share share)
    : layout_(std::move(layout)),
      share_(share),
      file_(path, layout_.file_bytes(), share == Share::whole ? Creation::fresh : Creation::shared) {
  for (size_t i = 0; i < layout_.tensors.size(); ++i) index_.emplace(layout_.tensors[i].name, i);
  file_.write_at(0, std::as_bytes(std::span(layout_.header)));
}

const TensorEntry& SafetensorsWriter::entry(std::string_view name) const {
  auto found = index_.find(name);
  BUG_IF(found == index_.end(), "{} is not among the tensors of {}", shown(name), file_.path().string());
  return layout_.tensors[found->second];
}

void SafetensorsWriter::write_data(int64_t offset, std::span<const std::byte> bytes) {
  file_.write_at(static_cast<int64_t>(layout_.header.size()) + offset, bytes);
  written_ += static_cast<int64_t>(bytes.size());
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  const TensorEntry& tensor = entry(name);
  BUG_IF(static_cast<int64_t>(bytes.size()) != tensor.end - tensor.begin, "{} bytes given for tensor {} of {}",
         bytes.size(), shown(name), tensor.end - tensor.begin);
  write_data(tensor.begin, bytes);
}

void SafetensorsWriter::write_rows(std::string_view name, RowRange rows, std::span<const std::byte> bytes) {
  const TensorEntry& tensor = entry(name);
  int64_t row_bits = row_length(tensor.shape) * bits_of(tensor.dtype);
  BUG_IF(rows.begin < 0 || rows.begin > rows.end || rows.end > row_count(tensor.shape), "rows {} to {} of tensor {} {}",
         rows.begin, rows.end, shown(name), tensor.shape.text());
  BUG_IF(row_bits % 8 != 0, "a row of tensor {} ends inside a byte", shown(name));
  BUG_IF(static_cast<int64_t>(bytes.size()) != rows.count() * (row_bits / 8), "{} bytes given for {} rows of tensor {}",
         bytes.size(), rows.count(), shown(name));
  write_data(tensor.begin + rows.begin * (row_bits / 8), bytes);
}

void SafetensorsWriter::write_elements(std::string_view name, int64_t first, std::span<const std::byte> bytes) {
  const TensorEntry& tensor = entry(name);
  BUG_IF(bits_of(tensor.dtype) % 8 != 0, "an element of tensor {} ends inside a byte", shown(name));
  int64_t begin = tensor.begin + first * (bits_of(tensor.dtype) / 8), end = begin + static_cast<int64_t>(bytes.size());
  BUG_IF(first < 0 || end > tensor.end, "bytes {} to {} of tensor {}", begin, end, shown(name));
  write_data(begin, bytes);
}

void SafetensorsWriter::stream(std::string_view name, const RowFiller& fill) {
  const TensorEntry& tensor = entry(name);
  if (tensor.begin == tensor.end) return;
  int64_t rows = row_count(tensor.shape);
  int64_t row_bytes = (tensor.end - tensor.begin) / rows;
  int64_t step = std::min(rows, std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, row_bytes)));
  std::vector<std::byte> block(static_cast<size_t>(step * row_bytes));
  for (int64_t begin = 0; begin < rows; begin += step) {
    RowRange range{begin, std::min(begin + step, rows)};
    std::span<std::byte> part = std::span(block).first(static_cast<size_t>(range.count() * row_bytes));
    fill(range, part);
    write_rows(name, range, part);
  }
}

void SafetensorsWriter::finish() {
  BUG_IF(share_ == Share::whole && written_ != layout_.data_bytes(), "{} bytes of data written to {}, which holds {}",
         written_.load(), file_.path().string(), layout_.data_bytes());
  file_.flush();
}

}  // namespace sextant
