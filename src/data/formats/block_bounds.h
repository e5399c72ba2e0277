// Bounds that decoders of blocks share: nothing is allocated before the stated size has passed them.
#pragma once

#include <algorithm>
#include <span>

#include "data/decompress.h"
#include "data/formats/block_codecs.h"

#include <fmt/format.h>

namespace sextant {

[[noreturn]] inline void refuse_block_size(uint64_t size) {
  throw StreamError(fmt::format("the block does not decompress to the {} bytes that are stated", size));
}

inline void check_block_size(std::string_view block, uint64_t size) {
  if (std::max<uint64_t>(block.size(), size) > kMaxBlockBytes)
    throw StreamError(fmt::format("{} bytes in one block, over the limit of 2 GiB", std::max(block.size(), size)));
}

// `most` is what a format makes of one byte at the most, rounded up.
inline void check_expansion(std::string_view block, uint64_t size, uint64_t most) {
  check_block_size(block, size);
  if (size > most * block.size())
    throw StreamError(fmt::format("{} bytes are stated for a block of {}, which can hold {} at the most", size,
                                  block.size(), most * block.size()));
}

// read(span<char>) gives the number of bytes that it wrote, 0 at the end, as ByteStream::read does.
template <class Read>
void read_block(uint64_t size, std::string& out, const Read& read) {
  constexpr size_t kStep = size_t{64} << 10;
  out.clear();
  while (out.size() < size) {
    size_t old = out.size();
    out.resize(old + static_cast<size_t>(std::min<uint64_t>(std::max(kStep, old), size - old)));
    size_t came = read(std::span(out.data() + old, out.size() - old));
    out.resize(old + came);
    if (came == 0) refuse_block_size(size);
  }
  char more = 0;
  if (read(std::span(&more, 1)) != 0) refuse_block_size(size);
}

// Of a build without the library; `package` is Debian's.
[[noreturn]] inline void refuse_without_library(std::string_view format, std::string_view library,
                                                std::string_view package) {
  throw StreamError(fmt::format("the data is compressed with {}, and this build has no {}", format, library),
                    fmt::format("install {} (scripts/setup does) and build again", package));
}

}  // namespace sextant
