// Blocks of bytes that tables are compressed in, each with a size that is known beforehand. Enters a block and that
// size; leave exactly so many bytes, else a StreamError. Memory grows with what comes out: a false size costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

constexpr uint64_t kMaxBlockBytes = uint64_t{2} << 30;  // of what comes out; Parquet allows no more

using BlockDecoder = void (*)(std::string_view block, uint64_t size, std::string& out);

void decode_gzip(std::string_view block, uint64_t size, std::string& out);
void decode_zstd(std::string_view block, uint64_t size, std::string& out);
void decode_snappy(std::string_view block, uint64_t size, std::string& out);     // the format without frames
void decode_lz4_raw(std::string_view block, uint64_t size, std::string& out);    // one block
void decode_lz4_frame(std::string_view block, uint64_t size, std::string& out);  // checksums are not looked at

}  // namespace sextant
