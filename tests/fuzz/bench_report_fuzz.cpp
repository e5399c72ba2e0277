// Any text as a report of `sextant bench`: it is refused with a UserError, or read, and then written and read back as
// the same report; a report that can be read can be shown and compared with itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "bench/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    BenchReport report = parse_report(text, "fuzz.json");
    if (parse_report(report_json(report), "fuzz.json") != report) std::abort();
    report_text(report);
    report_html(report, "fuzz");
    comparison_text(compare_reports(report, report));
  } catch (const UserError&) {
  }
  return 0;
}
