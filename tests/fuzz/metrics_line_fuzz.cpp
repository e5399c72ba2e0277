// Any text as a line of metrics.jsonl: what a JSON library takes for an object is read, with the same numbers.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "watch/run_columns.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find('\0') != text.npos) return 0;
  MetricsLine line;
  bool read = line.parse(text);
  RunColumns columns;
  columns.add_line(text);
  columns.add_line(text);
  if (columns.rows() > 1) std::abort();  // the same step again
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return 0;
  if (!read) {
    // Only for its depth.
    if (text.find("[[[[[[[[") == text.npos && text.find("{") == text.rfind("{")) std::abort();
    return 0;
  }
  for (const MetricsLine::Number& number : line.numbers()) {
    auto found = json.find(std::string(number.name));
    if (found == json.end()) std::abort();
    if (!found->is_number()) continue;  // a name that stands twice
    double value = found->get<double>();
    const double* last = line.number(number.name);
    if (*last != value && !(std::isinf(*last) && std::fabs(value) < 1e-300) && found->is_number_float() &&
        std::isfinite(*last))
      std::abort();
  }
  return 0;
}
