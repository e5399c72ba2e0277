// Any text as a machine's file: it is refused with a UserError, or read, and then written and read back as the same
// machine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "cost/machine_file.h"
#include "cost/validator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  // It would let the input choose files.
  if (text.find("device_from") != text.npos) return 0;
  try {
    Machine machine = parse_machine(text, "fuzz.toml");
    if (parse_machine(machine_text(machine), "fuzz.toml") != machine) std::abort();
    problems_of(machine);
  } catch (const UserError&) {
  }
  return 0;
}
