// Any bytes as an Arrow file or stream, for its column "text": refused with a UserError, or read to the end.
#include <cstdint>

#include "base/error.h"
#include "data/formats/arrow/arrow_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  try {
    ArrowFile file("fuzz", {reinterpret_cast<const char*>(data), size}, {});
    while (file.next()) {
    }
  } catch (const UserError&) {
  }
  return 0;
}
