#include "data/formats/arrow/flat_table.h"

#include <fmt/format.h>

namespace sextant {

FlatTable FlatTable::root(std::string_view buffer) {
  FlatTable start(buffer, 0);
  return {buffer, start.follow(0)};
}

// At the table's own place stands how far back its list of fields begins: size of the list, size of the table, offsets.
FlatTable::FlatTable(std::string_view buffer, size_t at) : buffer_(buffer), at_(at) {
  if (at == 0) return;  // the buffer itself, before its root is known
  int64_t list = static_cast<int64_t>(at) - load<int32_t>(at);
  if (list < 0 || list > std::ssize(buffer)) throw StreamError("the metadata points outside itself");
  constexpr size_t kSizes = 4;
  auto bytes = load<uint16_t>(static_cast<size_t>(list));
  if (bytes < kSizes) throw StreamError("the metadata has a table without its sizes");
  bytes_at(static_cast<size_t>(list), bytes);
  field_offsets_ = static_cast<size_t>(list) + kSizes;
  fields_ = static_cast<int>((bytes - kSizes) / 2);
}

std::string_view FlatTable::bytes_at(size_t at, uint64_t count) const {
  if (at > buffer_.size() || count > buffer_.size() - at)
    throw StreamError(
        fmt::format("the metadata is cut short: {} bytes from byte {} on of {}", count, at, buffer_.size()));
  return buffer_.substr(at, static_cast<size_t>(count));
}

size_t FlatTable::follow(size_t at) const {
  size_t to = at + load<uint32_t>(at);
  if (to == 0) throw StreamError("the metadata points at itself");
  bytes_at(to, 4);
  return to;
}

std::optional<size_t> FlatTable::place_of(int field) const {
  if (field >= fields_) return std::nullopt;
  auto offset = load<uint16_t>(field_offsets_ + static_cast<size_t>(field) * 2);
  if (offset == 0) return std::nullopt;
  return at_ + offset;
}

std::optional<FlatTable> FlatTable::table(int field) const {
  auto at = place_of(field);
  if (!at) return std::nullopt;
  return FlatTable(buffer_, follow(*at));
}

std::string_view FlatTable::string(int field) const {
  return vector(field, 1).bytes;
}

FlatVector FlatTable::vector(int field, size_t element_bytes) const {
  auto at = place_of(field);
  if (!at) return {};
  size_t begin = follow(*at);
  auto count = load<uint32_t>(begin);
  return {.count = count, .bytes = bytes_at(begin + sizeof count, uint64_t{count} * element_bytes)};
}

FlatTable FlatTable::table_in(const FlatVector& tables, uint32_t index) const {
  size_t at = static_cast<size_t>(tables.bytes.data() - buffer_.data()) + size_t{index} * 4;
  return {buffer_, follow(at)};
}

}  // namespace sextant
