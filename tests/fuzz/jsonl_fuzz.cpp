// Any bytes as a JSONL stream, plain, gzip or zstd by the first byte: refused with an error, or read to the end.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/jsonl.h"
#include "data/record_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  if (size == 0) return 0;
  constexpr Compression kCompressions[] = {Compression::none, Compression::gzip, Compression::zstd};
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  JsonText text("text");
  try {
    RecordReader lines(open_stream(bytes, kCompressions[data[0] % 3]), "\n", 1 << 20);
    while (auto line = lines.next()) {
      try {
        text.parse(*line, {.file = "fuzz.jsonl", .number = lines.number()});
      } catch (const UserError&) {  // one bad line does not hide the next
      }
    }
  } catch (const StreamError&) {
  }
  return 0;
}
