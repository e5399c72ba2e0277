// Any text as a hostfile: it is refused, or it is written back as one that is the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "supervise/host_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  try {
    std::vector<HostSlots> hosts = parse_hosts({reinterpret_cast<const char*>(data), size}, "hosts");
    if (parse_hosts(hosts_text(hosts), "hosts") != hosts) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
