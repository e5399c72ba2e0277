// Blocks of bytes that tables are compressed in, each with a size that is known beforehand. Enters a block and that
// size; leave exactly so many bytes, else a StreamError. A false size costs little memory: gzip, zstd and LZ4 frames
// take memory as bytes come out, Snappy and LZ4 blocks no more than their format can make of the block's bytes. A build
// without libsnappy or liblz4 refuses the blocks of that format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

constexpr uint64_t kMaxBlockBytes = INT32_MAX;  // of a block and of what comes out; Parquet allows no more

using BlockDecoder = void (*)(std::string_view block, uint64_t size, std::string& out);

void decode_gzip(std::string_view block, uint64_t size, std::string& out);
void decode_zstd(std::string_view block, uint64_t size, std::string& out);
void decode_snappy(std::string_view block, uint64_t size, std::string& out);      // the format without frames
void decode_lz4_raw(std::string_view block, uint64_t size, std::string& out);     // one block
void decode_lz4_hadoop(std::string_view block, uint64_t size, std::string& out);  // pieces, each with its sizes before
void decode_lz4_frame(std::string_view block, uint64_t size, std::string& out);

}  // namespace sextant
