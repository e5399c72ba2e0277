// Any text as a file of stacks: it is refused with a UserError, or read, and then every stack is found under its own
// matches or gives way to one that fits as well.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "cost/software_profile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<Stack> stacks = parse_stacks(text, "fuzz.toml");
    for (const Stack& stack : stacks) {
      stack_named(stacks, stack.name);
      for (std::string_view match : stack.matches) {
        size_t cut = match.find(" :: ");
        std::string_view schedule = cut == match.npos ? "" : match.substr(cut + 4);
        if (!match.empty() && !stack_for_source(stacks, match.substr(0, cut), schedule)) std::abort();
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
