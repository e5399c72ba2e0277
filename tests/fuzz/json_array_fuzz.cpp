// Any bytes as a JSON file with an array of objects: refused with an error, or read to the end.
#include <cstdint>

#include "base/error.h"
#include "data/formats/json_array_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    JsonArrayFile file(open_stream(bytes, Compression::none), "fuzz", {});
    while (file.next()) {
    }
  } catch (const UserError&) {
  } catch (const StreamError&) {
  }
  return 0;
}
