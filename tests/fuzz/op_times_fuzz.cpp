// Any lines as plan.json and ops/rank-N.jsonl of a run: what they say of ops is compared, or is nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "watch/op_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::string plan = lines.empty() ? "" : lines.front();
  OpComparison found = compare_op_lines(plan, lines);
  op_comparison_text(found);
  if (!nlohmann::json::accept(op_comparison_json(found))) std::abort();
  return 0;
}
