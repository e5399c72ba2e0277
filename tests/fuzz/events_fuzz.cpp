// Any text as a line of events.jsonl: it is no event, or it is written back as a line that is the same event.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "events/run_event.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (std::optional<RunEvent> event = parse_event(text))
    if (parse_event(event_line(*event)) != event) std::abort();
  return 0;
}
