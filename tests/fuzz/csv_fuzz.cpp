// Any bytes as comma- and as tab-separated values: refused with an error, or read to the end.
#include <cstdint>

#include "base/error.h"
#include "data/formats/csv_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (char separator : {',', '\t'}) {
    try {
      CsvFile file(open_stream(bytes, Compression::none), {.name = "fuzz", .separator = separator});
      while (file.next()) {
      }
    } catch (const UserError&) {
    } catch (const StreamError&) {
    }
  }
  return 0;
}
