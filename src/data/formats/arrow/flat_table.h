// Tables of a FlatBuffer (google.github.io/flatbuffers), read in place with every offset held to the buffer. Fields are
// numbered as the schema lists them; one that is absent has its default. What lies outside is a StreamError.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/decompress.h"
#include "data/little_endian.h"

namespace sextant {

struct FlatVector {
  uint32_t count = 0;
  std::string_view bytes;  // of all elements
};

class FlatTable {
 public:
  static FlatTable root(std::string_view buffer);

  template <class T>
  T scalar(int field, T otherwise) const {
    auto at = place_of(field);
    return at ? load<T>(*at) : otherwise;
  }

  std::optional<FlatTable> table(int field) const;
  std::string_view string(int field) const;  // empty where it is absent
  FlatVector vector(int field, size_t element_bytes) const;
  FlatTable table_in(const FlatVector& tables, uint32_t index) const;  // of a vector of tables (elements of 4 bytes)

 private:
  FlatTable(std::string_view buffer, size_t at);

  std::string_view bytes_at(size_t at, uint64_t count) const;
  size_t follow(size_t at) const;  // the unsigned offset that stands there
  std::optional<size_t> place_of(int field) const;

  template <class T>
  T load(size_t at) const {
    return load_le<T>(reinterpret_cast<const std::byte*>(bytes_at(at, sizeof(T)).data()));
  }

  std::string_view buffer_;
  size_t at_ = 0;
  size_t field_offsets_ = 0;  // where the table's list of them begins
  int fields_ = 0;            // listed
};

}  // namespace sextant
