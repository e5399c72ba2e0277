// Several fuzz targets in one libFuzzer program, which is much smaller than one each. SEXTANT_FUZZ_TARGET chooses one.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
#include "packed_targets.inc"
#undef FUZZ_TARGET

namespace {

using Target = int (*)(const uint8_t*, size_t);

Target chosen_target() {
  const char* wanted = std::getenv("SEXTANT_FUZZ_TARGET");
  std::string_view name = wanted ? wanted : "";
#define FUZZ_TARGET(known) \
  if (name == #known) return fuzz_##known;
#include "packed_targets.inc"
#undef FUZZ_TARGET
  std::fprintf(stderr, "SEXTANT_FUZZ_TARGET is '%s'; expected one of:", wanted ? wanted : "");
#define FUZZ_TARGET(known) std::fprintf(stderr, " %s", #known);
#include "packed_targets.inc"
#undef FUZZ_TARGET
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Target target = chosen_target();
  return target(data, size);
}
