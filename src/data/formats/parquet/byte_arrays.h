// The byte arrays of a Parquet page, in the encodings that strings are written in, one at a time. Enter the page's
// bytes after its levels; what does not fit is a StreamError.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace sextant {

class ByteArrays {
 public:
  virtual ~ByteArrays() = default;
  virtual std::string_view next() = 0;  // holds until the next call
};

// Both must outlive what is returned. `dictionary` is nullptr where the chunk has none.
std::unique_ptr<ByteArrays> open_byte_arrays(int32_t encoding, std::string_view bytes,
                                             const std::vector<std::string_view>* dictionary);

// A dictionary page's entries, in `bytes`.
std::vector<std::string_view> read_dictionary(int32_t encoding, std::string_view bytes, int32_t count);

}  // namespace sextant
