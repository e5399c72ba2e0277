// Any text as the manifest of a checkpoint: only UserError may come out, and what is read is written as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "ckpt/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    sextant::Manifest manifest = sextant::parse_manifest({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    std::string text = sextant::manifest_json(manifest);
    if (sextant::manifest_json(sextant::parse_manifest(text, "again.json")) != text) std::abort();
  } catch (const sextant::UserError&) {
  }
  return 0;
}
