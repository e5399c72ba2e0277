#include "data/formats/block_codecs.h"

#include <algorithm>

#include "data/formats/byte_reader.h"

namespace sextant {

namespace {

[[noreturn]] void refuse_block_size(uint64_t size) {
  throw StreamError(fmt::format("what was compressed does not have the {} bytes that are stated", size));
}

void check_block_size(uint64_t size) {
  if (size > kMaxBlockBytes) throw StreamError(fmt::format("{} bytes in one block, over the limit of 2 GiB", size));
}

void decode_by_stream(std::string_view block, Compression compression, uint64_t size, std::string& out) {
  check_block_size(size);
  auto stream = open_stream(block, compression);
  constexpr size_t kStep = size_t{64} << 10;
  out.clear();
  while (out.size() < size) {
    size_t old = out.size();
    out.resize(old + static_cast<size_t>(std::min<uint64_t>(std::max(kStep, old), size - old)));
    size_t came = stream->read({out.data() + old, out.size() - old});
    out.resize(old + came);
    if (came == 0) refuse_block_size(size);
  }
  char more = 0;
  if (stream->read({&more, 1}) != 0) refuse_block_size(size);
}

// Appends `length` bytes that stand `distance` before the end; they may overlap what is being written.
void repeat(uint64_t distance, uint64_t length, uint64_t limit, std::string& out) {
  if (distance == 0 || distance > out.size()) throw StreamError("a copy reaches back before the beginning");
  if (length > limit - out.size()) refuse_block_size(limit);
  if (distance >= length) {
    size_t from = out.size() - static_cast<size_t>(distance);
    out.resize(out.size() + static_cast<size_t>(length));
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(from), length,
                out.end() - static_cast<std::ptrdiff_t>(length));
    return;
  }
  for (; length > 0; --length) out += out[out.size() - static_cast<size_t>(distance)];
}

void append_literal(std::string_view bytes, uint64_t limit, std::string& out) {
  if (bytes.size() > limit - out.size()) refuse_block_size(limit);
  out.append(bytes);
}

// A length of 15 goes on in bytes that are added, as long as they are 255.
uint64_t lz4_length(unsigned nibble, ByteReader& in) {
  uint64_t length = nibble;
  if (nibble == 15)
    for (uint8_t more = 255; more == 255; length += more) more = in.byte();
  return length;
}

// Appends to what earlier blocks left, which copies may reach back to.
void append_lz4(std::string_view block, uint64_t limit, std::string& out) {
  ByteReader in(block);
  while (in.left() > 0) {
    uint8_t token = in.byte();
    append_literal(in.take(lz4_length(token >> 4, in)), limit, out);
    if (in.left() == 0) return;  // the last sequence is literals alone
    uint64_t distance = in.little_endian<uint16_t>();
    constexpr uint64_t kShortestCopy = 4;
    repeat(distance, lz4_length(token & 15, in) + kShortestCopy, limit, out);
  }
}

}  // namespace

void decode_gzip(std::string_view block, uint64_t size, std::string& out) {
  decode_by_stream(block, Compression::gzip, size, out);
}

void decode_zstd(std::string_view block, uint64_t size, std::string& out) {
  decode_by_stream(block, Compression::zstd, size, out);
}

void decode_snappy(std::string_view block, uint64_t size, std::string& out) {
  check_block_size(size);
  out.clear();
  ByteReader in(block);
  if (in.varint() != size) refuse_block_size(size);
  while (in.left() > 0) {
    unsigned tag = in.byte(), kind = tag & 3;
    if (kind == 0) {
      uint64_t length = tag >> 2;
      if (length >= 60) {  // it is in the next one to four bytes
        uint64_t bytes = length - 59;
        length = 0;
        for (uint64_t i = 0; i < bytes; ++i) length |= uint64_t{in.byte()} << (8 * i);
      }
      append_literal(in.take(length + 1), size, out);
    } else if (kind == 1) {
      repeat((uint64_t{tag >> 5} << 8) | in.byte(), ((tag >> 2) & 7) + 4, size, out);
    } else {
      uint64_t distance = kind == 2 ? in.little_endian<uint16_t>() : in.little_endian<uint32_t>();
      repeat(distance, (tag >> 2) + 1, size, out);
    }
  }
  if (out.size() != size) refuse_block_size(size);
}

void decode_lz4_raw(std::string_view block, uint64_t size, std::string& out) {
  check_block_size(size);
  out.clear();
  append_lz4(block, size, out);
  if (out.size() != size) refuse_block_size(size);
}

void decode_lz4_frame(std::string_view block, uint64_t size, std::string& out) {
  constexpr uint32_t kMagic = 0x184D2204, kStored = 0x80000000;
  constexpr unsigned kVersionMask = 0xC0, kVersion = 0x40, kBlockSums = 0x10, kHasSize = 0x08, kHasSum = 0x04,
                     kHasDictionary = 0x01;
  check_block_size(size);
  out.clear();
  ByteReader in(block);
  if (in.little_endian<uint32_t>() != kMagic) throw StreamError("it does not begin as an LZ4 frame");
  unsigned flags = in.byte();
  if ((flags & kVersionMask) != kVersion) throw StreamError("an LZ4 frame of another version");
  if (flags & kHasDictionary) throw StreamError("an LZ4 frame with a dictionary, which is not read");
  in.byte();  // the largest block
  if (flags & kHasSize) in.take(8);
  in.byte();  // checksum of the header
  while (uint32_t length = in.little_endian<uint32_t>()) {
    std::string_view bytes = in.take(length & ~kStored);
    if (length & kStored)
      append_literal(bytes, size, out);
    else
      append_lz4(bytes, size, out);
    if (flags & kBlockSums) in.take(4);
  }
  if (flags & kHasSum) in.take(4);
  if (out.size() != size || in.left() > 0) refuse_block_size(size);
}

}  // namespace sextant
