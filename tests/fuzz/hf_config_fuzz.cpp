// Any text as a Hugging Face config.json: it is refused with a UserError, or read and written back as the same model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "models/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
      sextant::eos_in_generation_config(text, "fuzz.json");
    } catch (const sextant::UserError&) {
    }
    sextant::ModelSpec spec = sextant::spec_from_hf_config(text, "fuzz.json");
    if (sextant::spec_from_hf_config(sextant::hf_config_json(spec), "again.json") != spec) std::abort();
    if (sextant::spec_from_hf_config(sextant::hf_config_json(spec, text), "again.json") != spec) std::abort();
    sextant::DropoutRates rates = sextant::hf_dropout_rates(text, "fuzz.json");
    std::string written = sextant::hf_config_json(spec, text, sextant::DType::f32, rates);
    if (sextant::hf_dropout_rates(written, "again.json") != rates) std::abort();
  } catch (const sextant::UserError&) {
  }
  return 0;
}
