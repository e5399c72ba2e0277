#include "data/formats/parquet/packed_integers.h"

#include <algorithm>

namespace sextant {

namespace {

// Of the mini-blocks, only those with values in them have bytes.
uint64_t bytes_of_miniblock(uint64_t values, uint8_t width) {
  if (width > 64) throw StreamError(fmt::format("integers are packed in {} bits each", width));
  return values / 8 * width;
}

}  // namespace

uint64_t BitReader::read(unsigned width) {
  if (at_ + width > uint64_t{bytes_.size()} * 8) throw StreamError("packed integers end before the last one");
  uint64_t value = 0;
  for (unsigned got = 0; got < width;) {
    auto byte = static_cast<uint8_t>(bytes_[static_cast<size_t>(at_ / 8)]);
    unsigned shift = static_cast<unsigned>(at_ % 8), count = std::min(8 - shift, width - got);
    value |= uint64_t{(byte >> shift) & ((1U << count) - 1)} << got;
    got += count;
    at_ += count;
  }
  return value;
}

RunReader::RunReader(std::string_view bytes, unsigned width) : in_(bytes), width_(width) {
  if (width > 32) throw StreamError(fmt::format("integers are packed in {} bits each", width));
}

uint32_t RunReader::next() {
  while (left_in_run_ == 0) {
    uint64_t header = in_.varint();
    packed_ = header & 1;
    if (packed_) {
      uint64_t groups = header >> 1;
      if (groups > uint64_t{in_.left()} + 1 && width_ > 0) groups = uint64_t{in_.left()} + 1;  // no overflow below
      left_in_run_ = std::min<uint64_t>(groups, uint64_t{1} << 40) * 8;
      bits_ = BitReader(in_.take(std::min<uint64_t>(groups * width_, in_.left())));  // the last run may be cut
    } else {
      left_in_run_ = header >> 1;
      repeated_ = 0;
      for (unsigned i = 0; i < (width_ + 7) / 8; ++i) repeated_ |= uint32_t{in_.byte()} << (8 * i);
    }
  }
  --left_in_run_;
  return packed_ ? static_cast<uint32_t>(bits_.read(width_)) : repeated_;
}

DeltaReader::DeltaReader(std::string_view bytes) : bytes_(bytes), in_(bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  values_per_block_ = in_.varint();
  miniblocks_ = in_.varint();
  count_ = in_.varint();
  value_ = in_.zigzag();
  header_bytes_ = in_.at();
  if (values_per_block_ == 0 || values_per_block_ > kMost || miniblocks_ == 0 || miniblocks_ > values_per_block_ ||
      values_per_block_ % miniblocks_ != 0 || values_per_block_ / miniblocks_ % 8 != 0 || count_ > kMost)
    throw StreamError(
        fmt::format("{} differences are packed in blocks of {} in {} parts", count_, values_per_block_, miniblocks_));
  values_per_miniblock_ = values_per_block_ / miniblocks_;
}

int64_t DeltaReader::next() {
  if (given_ == count_) throw StreamError("packed integers end before the last one");
  if (given_++ == 0) return value_;
  if (left_in_miniblock_ == 0) open_miniblock();
  --left_in_miniblock_;
  // Differences wrap around, as the format has it.
  value_ =
      static_cast<int64_t>(static_cast<uint64_t>(value_) + static_cast<uint64_t>(smallest_delta_) + bits_.read(width_));
  return value_;
}

void DeltaReader::open_block() {
  smallest_delta_ = in_.zigzag();
  widths_ = in_.take(miniblocks_);
}

void DeltaReader::open_miniblock() {
  if (widths_.empty()) open_block();
  width_ = static_cast<uint8_t>(widths_[0]);
  widths_.remove_prefix(1);
  bits_ = BitReader(in_.take(bytes_of_miniblock(values_per_miniblock_, static_cast<uint8_t>(width_))));
  left_in_miniblock_ = values_per_miniblock_;
}

size_t DeltaReader::bytes_in_all() const {
  ByteReader in(bytes_);
  in.take(header_bytes_);
  for (uint64_t left = count_ > 0 ? count_ - 1 : 0; left > 0;) {
    in.zigzag();
    for (char width : in.take(miniblocks_)) {
      if (left == 0) break;
      in.take(bytes_of_miniblock(values_per_miniblock_, static_cast<uint8_t>(width)));
      left -= std::min(left, values_per_miniblock_);
    }
  }
  return in.at();
}

}  // namespace sextant
