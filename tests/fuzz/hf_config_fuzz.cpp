// Any text as a Hugging Face config.json: it is refused with a UserError, or read and written back as the same model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "models/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    sextant::ModelSpec spec = sextant::spec_from_hf_config({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (sextant::spec_from_hf_config(sextant::hf_config_json(spec), "again.json") != spec) std::abort();
  } catch (const sextant::UserError&) {
  }
  return 0;
}
