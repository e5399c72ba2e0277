// Any text as the description of a local checkpoint: only UserError may come out, and what is read is written as it
// was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "train/save/local_copy.h"
#include "train/save/run_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    sextant::LocalManifest manifest =
        sextant::parse_local_manifest({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    std::string text = sextant::local_manifest_json(manifest);
    if (sextant::local_manifest_json(sextant::parse_local_manifest(text, "again.json")) != text) std::abort();
    sextant::parse_run_state(manifest.state, "fuzz.bytes");
  } catch (const sextant::UserError&) {
  }
  return 0;
}
