// Any text as a schedule's CSV: it is refused with a UserError, or read, and then written and read back as the same
// schedule.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "schedule/check.h"
#include "schedule/from_csv.h"
#include "schedule/timing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    PipelineSchedule schedule = schedule_from_csv(text);
    if (schedule_from_csv(csv_text(schedule)) != schedule) std::abort();
    simulate_schedule(schedule, uniform_durations(schedule.shape));
    if (gradient_slots(schedule) > schedule.shape.microbatches) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
