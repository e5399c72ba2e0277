// Blocks by hand from the formats' descriptions: literals, short copies, copies that overlap what they write; and what
// hostile ones state. Frames of LZ4 are those of its library.
#include "data/formats/block_codecs.h"

#include <gtest/gtest.h>

#ifdef SEXTANT_LZ4
#include <lz4frame.h>
#endif

#include "data/decompress.h"
#include "data/scratch_folder.h"

namespace sextant {
namespace {

constexpr uint64_t kHostileSizes[] = {uint64_t{1} << 24, kMaxBlockBytes, kMaxBlockBytes + 1, UINT64_MAX};

// The message that the block is refused with, or "".
std::string refusal_of(BlockDecoder decode, std::string_view block, uint64_t size) {
  std::string out;
  try {
    decode(block, size, out);
  } catch (const StreamError& error) {
    EXPECT_LT(out.capacity(), size_t{1} << 20) << error.what();
    return error.what();
  }
  return "";
}

std::string decoded(BlockDecoder decode, std::string_view block, uint64_t size) {
  std::string out;
  decode(block, size, out);
  return out;
}

void expect_bounds(BlockDecoder decode) {
  EXPECT_NE(refusal_of(decode, "", 1), "");
  for (uint64_t size : kHostileSizes) EXPECT_NE(refusal_of(decode, "\x0c\x08 something else", size), "") << size;
}

TEST(BlockCodecs, StreamsAreBounded) {
  expect_bounds(decode_gzip);
  expect_bounds(decode_zstd);
}

#ifdef SEXTANT_SNAPPY

TEST(BlockCodecs, Snappy) {
  constexpr std::string_view kBlock{
      "\x0c\x08"
      "abc\x15\x03",
      7};  // three literals, then nine bytes from three back
  EXPECT_EQ(decoded(decode_snappy, kBlock, 12), "abcabcabcabc");
  EXPECT_TRUE(says(refusal_of(decode_snappy, kBlock, 11), {"11 bytes that are stated"}));
  constexpr std::string_view kBeforeTheStart{
      "\x0c\x08"
      "abc\x15\x04",
      7};
  EXPECT_TRUE(says(refusal_of(decode_snappy, kBeforeTheStart, 12), {"Snappy", "damaged"}));
  EXPECT_TRUE(says(refusal_of(decode_snappy, kBlock.substr(0, 6), 12), {"Snappy", "damaged"}));
  EXPECT_TRUE(says(refusal_of(decode_snappy, "\xff\xff", 1), {"does not begin with its size"}));
  // 2 GiB in seven bytes, which its own header states too.
  constexpr std::string_view kHuge{
      "\xff\xff\xff\xff\x07"
      "ab",
      7};
  EXPECT_TRUE(says(refusal_of(decode_snappy, kHuge, kMaxBlockBytes), {"a block of 7", "154 at the most"}));
  expect_bounds(decode_snappy);
}

#endif

#ifdef SEXTANT_LZ4

// Three literals, nine bytes from three back, five literals.
constexpr std::string_view kLz4Block{
    "\x35"
    "abc\x03\x00\x50"
    "final",
    12};
constexpr std::string_view kLz4Text = "abcabcabcabcfinal";

TEST(BlockCodecs, Lz4Blocks) {
  EXPECT_EQ(decoded(decode_lz4_raw, kLz4Block, 17), kLz4Text);
  EXPECT_TRUE(says(refusal_of(decode_lz4_raw, kLz4Block, 16), {"LZ4", "more than 16 bytes"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_raw, kLz4Block, 18), {"18 bytes that are stated"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_raw, kLz4Block, kMaxBlockBytes), {"a block of 12", "3060 at the most"}));
  constexpr std::string_view kBeforeTheStart{
      "\x35"
      "abc\x04\x00\x50"
      "final",
      12};
  EXPECT_TRUE(says(refusal_of(decode_lz4_raw, kBeforeTheStart, 17), {"LZ4", "damaged"}));
  expect_bounds(decode_lz4_raw);
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

TEST(BlockCodecs, Lz4WithHadoopsFrames) {
  const std::string block = big_endian(12) + std::string(kLz4Block);
  const std::string twice(std::string(kLz4Text) + std::string(kLz4Text));
  EXPECT_EQ(decoded(decode_lz4_hadoop, big_endian(17) + block + big_endian(17) + block, 34), twice);
  EXPECT_EQ(decoded(decode_lz4_hadoop, big_endian(34) + block + block, 34), twice);  // two blocks in one piece
  EXPECT_EQ(decoded(decode_lz4_hadoop, "", 0), "");
  EXPECT_TRUE(says(refusal_of(decode_lz4_hadoop, big_endian(17) + block, 18), {"18 bytes that are stated"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_hadoop, big_endian(17) + block, 16), {"16 bytes that are stated"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_hadoop, big_endian(18) + block, 18), {"bytes are needed where 0 are left"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_hadoop, big_endian(17) + big_endian(0), 17), {"LZ4", "damaged"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_hadoop, kLz4Block, 17), {"17 bytes that are stated"}));  // none of Hadoop's
  expect_bounds(decode_lz4_hadoop);
}

std::string lz4_frame(std::string_view text, unsigned dictionary = 0) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  preferences.frameInfo.dictID = dictionary;
  std::string frame(LZ4F_compressFrameBound(text.size(), &preferences), '\0');
  frame.resize(LZ4F_compressFrame(frame.data(), frame.size(), text.data(), text.size(), &preferences));
  return frame;
}

TEST(BlockCodecs, Lz4Frames) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i) + " of many; ";
  const std::string frame = lz4_frame(text);
  EXPECT_EQ(decoded(decode_lz4_frame, frame, text.size()), text);
  EXPECT_EQ(decoded(decode_lz4_frame, lz4_frame(""), 0), "");
  std::string out;
  for (uint64_t size : {text.size() - 1, text.size() + 1})
    EXPECT_THROW(decode_lz4_frame(frame, size, out), StreamError) << size;
  EXPECT_THROW(decode_lz4_frame(std::string_view(frame).substr(0, frame.size() - 1), text.size(), out), StreamError);
  const std::string small = lz4_frame("some text");
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, small.substr(0, 12), 9), {"cut short"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, small + "x", 9), {"1 bytes follow"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, small, kMaxBlockBytes), {"bytes that are stated"}));
  std::string damaged = small;
  damaged[damaged.find("text")] = 'n';
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, damaged, 9), {"damaged", "hecksum"}));
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, lz4_frame("some text", 7), 9), {"dictionary"}));
  constexpr std::string_view kSkippable{
      "\x50\x2a\x4d\x18\x04\x00\x00\x00"
      "abcd",
      12};
  EXPECT_TRUE(says(refusal_of(decode_lz4_frame, kSkippable, 4), {"other data"}));
  expect_bounds(decode_lz4_frame);
}

#endif

}  // namespace
}  // namespace sextant
