// Any text as one of the files that say which token ends a document: only UserError may come out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/stated_eos.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    sextant::stated_eos_in({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  } catch (const sextant::UserError&) {
  }
  return 0;
}
