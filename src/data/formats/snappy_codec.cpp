#ifdef SEXTANT_SNAPPY
#include <snappy.h>
#endif

#include "data/formats/block_bounds.h"

namespace sextant {

#ifdef SEXTANT_SNAPPY

void decode_snappy(std::string_view block, uint64_t size, std::string& out) {
  constexpr uint64_t kMost = 22;  // three bytes copy up to 64
  check_expansion(block, size, kMost);
  size_t stated = 0;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &stated))
    throw StreamError("the Snappy block does not begin with its size");
  if (stated != size) refuse_block_size(size);
  out.resize(static_cast<size_t>(size));
  if (!snappy::RawUncompress(block.data(), block.size(), out.data())) throw StreamError("the Snappy block is damaged");
}

#else

void decode_snappy(std::string_view, uint64_t, std::string&) {
  refuse_without_library("Snappy", "libsnappy", "libsnappy-dev");
}

#endif

}  // namespace sextant
