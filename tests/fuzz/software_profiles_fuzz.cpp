// Any text as a file of software profiles: it is refused with a UserError, or read, and then every one is found under
// its own matches or gives way to one that fits as well.
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
    std::vector<SoftwareProfile> profiles = parse_profiles(text, "fuzz.toml");
    for (const SoftwareProfile& profile : profiles) {
      profile_named(profiles, profile.name);
      for (std::string_view match : profile.matches) {
        size_t cut = match.find(" :: ");
        std::string_view schedule = cut == match.npos ? "" : match.substr(cut + 4);
        if (!match.empty() && !profile_for_source(profiles, match.substr(0, cut), schedule)) std::abort();
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
