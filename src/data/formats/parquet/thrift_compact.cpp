#include "data/formats/parquet/thrift_compact.h"

#include <limits>

namespace sextant {

namespace {

constexpr int kDeepestThrift = 32;  // Parquet's own structs are six deep

ThriftType thrift_type_of(unsigned code) {
  if (code > static_cast<unsigned>(ThriftType::uuid))
    throw StreamError(fmt::format("the metadata has a value of unknown type {}", code));
  return static_cast<ThriftType>(code);
}

}  // namespace

void ThriftReader::require(ThriftType type, ThriftType wanted) {
  if (type != wanted)
    throw StreamError(fmt::format("the metadata has a value of type {} where type {} belongs", static_cast<int>(type),
                                  static_cast<int>(wanted)));
}

void ThriftReader::enter() {
  if (++depth_ > kDeepestThrift)
    throw StreamError(fmt::format("the metadata is nested deeper than {}", kDeepestThrift));
}

ThriftType ThriftReader::read_field_header(int& id) {
  unsigned header = in_.byte();
  ThriftType type = thrift_type_of(header & 15);
  if (type == ThriftType::stop) return type;
  int64_t next = header >> 4 ? id + int64_t{header >> 4} : in_.zigzag();
  if (next < std::numeric_limits<int16_t>::min() || next > std::numeric_limits<int16_t>::max())
    throw StreamError(fmt::format("the metadata has a field numbered {}", next));
  id = static_cast<int>(next);
  return type;
}

uint64_t ThriftReader::read_list_header(ThriftType& element) {
  unsigned header = in_.byte();
  element = thrift_type_of(header & 15);
  uint64_t count = header >> 4;
  if (count == 15) count = in_.varint();
  if (count > in_.left())  // an element takes a byte at least
    throw StreamError(fmt::format("the metadata has a list of {} where {} bytes are left", count, in_.left()));
  return count;
}

int32_t ThriftReader::read_i32(ThriftType type) {
  require(type, ThriftType::i32);
  int64_t value = in_.zigzag();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    throw StreamError(fmt::format("the metadata has {} where 32 bits are allowed", value));
  return static_cast<int32_t>(value);
}

int64_t ThriftReader::read_i64(ThriftType type) {
  require(type, ThriftType::i64);
  return in_.zigzag();
}

bool ThriftReader::read_bool(ThriftType type) const {
  if (type != ThriftType::no) require(type, ThriftType::yes);
  return type == ThriftType::yes;
}

std::string_view ThriftReader::read_binary(ThriftType type) {
  require(type, ThriftType::binary);
  return in_.take(in_.varint());
}

void ThriftReader::skip(ThriftType type) {
  switch (type) {
    case ThriftType::stop:
    case ThriftType::yes:
    case ThriftType::no:
      return;
    case ThriftType::i8:
      in_.take(1);
      return;
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64:
      in_.varint();
      return;
    case ThriftType::real:
      in_.take(8);
      return;
    case ThriftType::uuid:
      in_.take(16);
      return;
    case ThriftType::binary:
      in_.take(in_.varint());
      return;
    case ThriftType::record:
      read_struct([&](int, ThriftType field) { skip(field); });
      return;
    case ThriftType::list:
    case ThriftType::set: {
      enter();
      ThriftType element;
      for (uint64_t count = read_list_header(element); count > 0; --count) skip_element(element);
      leave();
      return;
    }
    case ThriftType::map: {
      enter();
      uint64_t count = in_.varint();
      if (count > in_.left()) throw StreamError(fmt::format("the metadata has a map of {}", count));
      unsigned types = count > 0 ? in_.byte() : 0;
      for (; count > 0; --count) {
        skip_element(thrift_type_of(types >> 4));
        skip_element(thrift_type_of(types & 15));
      }
      leave();
      return;
    }
  }
}

void ThriftReader::skip_element(ThriftType type) {
  if (type == ThriftType::yes || type == ThriftType::no || type == ThriftType::stop)
    in_.take(1);
  else
    skip(type);
}

}  // namespace sextant
