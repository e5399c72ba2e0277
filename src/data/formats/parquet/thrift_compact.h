// Thrift's compact protocol, in which Parquet writes its metadata. Fields come as (id, type) and are either read or
// skipped by whoever asked for the struct. What does not fit the protocol is a StreamError.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/formats/byte_reader.h"

namespace sextant {

enum class ThriftType : uint8_t {
  stop,
  yes,
  no,
  i8,
  i16,
  i32,
  i64,
  real,
  binary,
  list,
  set,
  map,
  record,
  uuid,
};

class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : in_(bytes) {}

  // Calls on_field(int id, ThriftType type) for every field of a struct; it must read the value or skip(type).
  template <class OnField>
  void read_struct(const OnField& on_field) {
    enter();
    int id = 0;
    for (ThriftType type = read_field_header(id); type != ThriftType::stop; type = read_field_header(id))
      on_field(id, type);
    leave();
  }

  // Calls on_element() so often as the list is long; it must read one element of `element` type.
  template <class OnElement>
  void read_list(ThriftType type, ThriftType element, const OnElement& on_element) {
    require(type, ThriftType::list);
    ThriftType found;
    uint64_t count = read_list_header(found);
    if (count > 0) require(found, element);
    for (uint64_t i = 0; i < count; ++i) on_element();
  }

  // Of the type that was announced; StreamError when that is another.
  int32_t read_i32(ThriftType type);
  int64_t read_i64(ThriftType type);
  bool read_bool(ThriftType type) const;
  std::string_view read_binary(ThriftType type);

  void skip(ThriftType type);
  size_t at() const { return in_.at(); }

 private:
  static void require(ThriftType type, ThriftType wanted);
  ThriftType read_field_header(int& id);
  uint64_t read_list_header(ThriftType& element);
  void skip_element(ThriftType type);  // of a list, where a boolean takes a byte
  void enter();
  void leave() { --depth_; }

  ByteReader in_;
  int depth_ = 0;
};

}  // namespace sextant
