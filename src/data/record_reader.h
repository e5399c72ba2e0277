// Cuts a byte stream at a separator. Enters a stream; leave its records one by one, without the separator, in a buffer
// that grows to the longest record and no further. A record over the limit is a RecordTooLong.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/decompress.h"

namespace sextant {

// A record that is longer than the limit: the stream itself is whole, and reading may go on after discard_record().
class RecordTooLong : public StreamError {
 public:
  using StreamError::StreamError;
};

class RecordReader {
 public:
  // An empty separator makes the whole stream one record.
  RecordReader(std::unique_ptr<ByteStream> stream, std::string separator, int64_t max_record_bytes);

  // The view holds until the next call. The last record needs no separator after it; an empty one is not reported.
  std::optional<std::string_view> next();

  // After a RecordTooLong: reads over the rest of that record, in bounded memory.
  void discard_record();

  int64_t number() const { return number_; }  // of the record that next() returned, or failed to read, from 1
  int64_t offset() const { return offset_; }  // of its first byte in the stream

 private:
  bool read_more();  // appends to the buffer; false at the end of the stream
  std::string_view take(size_t length, size_t separator_length);
  void skip_to(size_t place);  // in the buffer

  std::unique_ptr<ByteStream> stream_;
  std::string separator_;
  size_t max_record_bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of the record being read, in the buffer
  size_t end_ = 0;    // of the bytes read into the buffer
  int64_t number_ = 0;
  int64_t offset_ = 0;  // of the record that was taken last
  int64_t taken_ = 0;   // bytes of the stream before begin_
};

}  // namespace sextant
