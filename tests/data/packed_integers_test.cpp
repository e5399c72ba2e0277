// Parquet's packings of integers: numbers of every width, packed here as the format's description says, are read back;
// so is where they end.
#include "data/formats/parquet/packed_integers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace sextant {
namespace {

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_zigzag(std::string& out, int64_t value) {
  put_varint(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

// The lowest bit first, from byte to byte.
void put_bits(std::string& out, const std::vector<uint64_t>& values, unsigned width) {
  std::vector<bool> bits;
  for (uint64_t value : values)
    for (unsigned bit = 0; bit < width; ++bit) bits.push_back((value >> bit & 1) != 0);
  bits.resize((bits.size() + 7) / 8 * 8);
  for (size_t at = 0; at < bits.size(); at += 8) {
    unsigned byte = 0;
    for (unsigned bit = 0; bit < 8; ++bit) byte |= static_cast<unsigned>(bits[at + bit]) << bit;
    out += static_cast<char>(byte);
  }
}

unsigned width_of(uint64_t value) {
  unsigned width = 0;
  for (; value > 0; value >>= 1) ++width;
  return width;
}

TEST(PackedIntegers, BitsOfEveryWidth) {
  std::mt19937_64 random(1);
  for (unsigned width = 0; width <= 64; ++width) {
    std::vector<uint64_t> values(37);
    for (uint64_t& value : values) value = width == 0 ? 0 : random() >> (64 - width);
    std::string bytes;
    put_bits(bytes, values, width);
    BitReader reader(bytes);
    for (uint64_t value : values) ASSERT_EQ(reader.read(width), value) << width << " bits";
    if (width > 7) {
      EXPECT_THROW(reader.read(width), StreamError);
    }
  }
}

// Runs of one value and of packed ones in turn, in every width: a repeated value has as many bytes as its bits need.
TEST(PackedIntegers, RunsOfEveryWidth) {
  std::mt19937_64 random(2);
  for (unsigned width = 1; width <= 32; ++width) {
    std::string bytes;
    std::vector<uint32_t> expected;
    for (int run = 0; run < 12; ++run) {
      auto value = [&] {
        return static_cast<uint32_t>((random() | uint64_t{1} << 63) >> (64 - width));
      };  // its highest bit set
      if (run % 2 == 0) {
        uint64_t count = 1 + random() % 200;
        uint32_t repeated = value();
        put_varint(bytes, count << 1);
        for (unsigned at = 0; at < width; at += 8) bytes += static_cast<char>(repeated >> at);
        expected.insert(expected.end(), count, repeated);
      } else {
        std::vector<uint64_t> packed(8 * (1 + random() % 20));
        for (uint64_t& one : packed) one = value();
        put_varint(bytes, packed.size() / 8 << 1 | 1);
        put_bits(bytes, packed, width);
        expected.insert(expected.end(), packed.begin(), packed.end());
      }
    }
    RunReader reader(bytes, width);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(reader.next(), expected[i]) << width << " bits, number " << i;
  }
}

struct Delta {
  uint64_t per_block = 128, miniblocks = 4;
};

// Mini-blocks behind the last value have a width, which is anything, and no bytes.
std::string delta_packed(const std::vector<int64_t>& values, const Delta& shape) {
  std::string out;
  put_varint(out, shape.per_block), put_varint(out, shape.miniblocks), put_varint(out, values.size());
  put_zigzag(out, values.empty() ? 0 : values[0]);
  std::vector<int64_t> deltas;
  for (size_t i = 1; i < values.size(); ++i)
    deltas.push_back(static_cast<int64_t>(static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(values[i - 1])));
  const uint64_t per_miniblock = shape.per_block / shape.miniblocks;
  for (size_t block = 0; block < deltas.size(); block += shape.per_block) {
    size_t end = std::min(deltas.size(), block + shape.per_block);
    int64_t least =
        *std::min_element(deltas.begin() + static_cast<int64_t>(block), deltas.begin() + static_cast<int64_t>(end));
    put_zigzag(out, least);
    std::string widths, packed;
    for (uint64_t m = 0; m < shape.miniblocks; ++m) {
      std::vector<uint64_t> above;
      for (size_t i = block + m * per_miniblock; i < std::min(end, block + (m + 1) * per_miniblock); ++i)
        above.push_back(static_cast<uint64_t>(deltas[i]) - static_cast<uint64_t>(least));
      unsigned width = above.empty() ? 11 : width_of(*std::max_element(above.begin(), above.end()));
      widths += static_cast<char>(width);
      if (above.empty()) continue;
      above.resize(per_miniblock);
      put_bits(packed, above, width);
    }
    out += widths + packed;
  }
  return out;
}

TEST(PackedIntegers, DifferencesOfEveryLengthAndSize) {
  std::mt19937_64 random(3);
  for (const Delta& shape :
       {Delta{}, Delta{.per_block = 256, .miniblocks = 8}, Delta{.per_block = 128, .miniblocks = 1}})
    for (size_t count : {0, 1, 2, 8, 31, 32, 33, 34, 64, 65, 96, 128, 129, 130, 161, 300})
      for (unsigned bits : {1U, 9U, 31U, 47U, 64U}) {
        std::vector<int64_t> values(count);
        for (int64_t& value : values) value = static_cast<int64_t>(random() >> (64 - bits)) - (bits < 60 ? 1 << 3 : 0);
        std::string bytes = delta_packed(values, shape), followed = bytes + "what comes behind";
        DeltaReader reader(followed);
        ASSERT_EQ(reader.count(), count);
        EXPECT_EQ(reader.bytes_in_all(), bytes.size()) << count << " numbers of " << bits << " bits";
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(reader.next(), values[i]) << count << " of " << bits << " bits, number " << i;
        EXPECT_THROW(reader.next(), StreamError);
      }
}

}  // namespace
}  // namespace sextant
