// Parquet's two packings of integers, read one at a time in constant memory. What does not fit is a StreamError.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/formats/byte_reader.h"

namespace sextant {

// Bits of a run of packed integers, the lowest bit of the lowest byte first. Reading beyond the end is a StreamError.
class BitReader {
 public:
  BitReader() = default;
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t read(unsigned width);  // up to 64

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;  // in bits
};

// Encoding RLE: runs of one value, or of packed ones, as definition levels and dictionary indices are.
class RunReader {
 public:
  RunReader(std::string_view bytes, unsigned width);  // of a value, up to 32 bits

  uint32_t next();

 private:
  ByteReader in_;
  unsigned width_;
  uint64_t left_in_run_ = 0;
  bool packed_ = false;
  uint32_t repeated_ = 0;
  BitReader bits_;
};

// Encoding DELTA_BINARY_PACKED: blocks of differences, each of mini-blocks with a width of their own.
class DeltaReader {
 public:
  explicit DeltaReader(std::string_view bytes);

  uint64_t count() const { return count_; }
  int64_t next();               // at most count() times
  size_t bytes_in_all() const;  // where the values end, found without reading them

 private:
  void open_block();
  void open_miniblock();

  std::string_view bytes_;
  ByteReader in_;
  uint64_t values_per_block_ = 0, miniblocks_ = 0, values_per_miniblock_ = 0, count_ = 0;
  size_t header_bytes_ = 0;
  uint64_t given_ = 0;
  int64_t value_ = 0, smallest_delta_ = 0;
  std::string_view widths_;  // of the mini-blocks to come in this block
  uint64_t left_in_miniblock_ = 0;
  unsigned width_ = 0;
  BitReader bits_;
};

}  // namespace sextant
