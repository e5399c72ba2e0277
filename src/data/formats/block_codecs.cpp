#include "data/formats/block_codecs.h"

#include "data/formats/block_bounds.h"

namespace sextant {

namespace {

void decode_by_stream(std::string_view block, Compression compression, uint64_t size, std::string& out) {
  check_block_size(block, size);
  auto stream = open_stream(block, compression);
  read_block(size, out, [&](std::span<char> room) { return stream->read(room); });
}

}  // namespace

void decode_gzip(std::string_view block, uint64_t size, std::string& out) {
  decode_by_stream(block, Compression::gzip, size, out);
}

void decode_zstd(std::string_view block, uint64_t size, std::string& out) {
  decode_by_stream(block, Compression::zstd, size, out);
}

}  // namespace sextant
