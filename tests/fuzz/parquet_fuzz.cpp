// Any bytes as a Parquet file, for its columns "text" and "id": refused with a UserError, or read to the end.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/formats/parquet/parquet_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* column : {"text", "id"}) {
    try {
      ParquetFile file("fuzz", bytes, {.text_key = column});
      while (file.next()) {
      }
    } catch (const UserError&) {
    }
  }
  return 0;
}
