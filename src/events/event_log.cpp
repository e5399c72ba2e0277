#include "events/event_log.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace sextant {

std::optional<std::string> EventLog::record(RunEvent event) {
  if (event.time.empty()) event.time = utc_now();  // the same in the file and for the command
  hook_.post(event_line(event));
  try {
    append_event(directory_, event);
  } catch (const RunError& error) {
    if (!std::exchange(failed_, true)) return fmt::format("warning: an event is lost: {}", error.what());
  }
  return std::nullopt;
}

}  // namespace sextant
