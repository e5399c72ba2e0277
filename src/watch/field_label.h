// Readable name of a field of metrics.jsonl, for the page and the log.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace sextant {

inline std::string field_label(std::string_view field) {
  using Label = std::pair<std::string_view, std::string_view>;
  constexpr std::array kLabels{Label{"lr", "learning rate"}, Label{"grad_norm", "gradient norm"},
                               Label{"grad_noise_scale", "gradient noise scale"}, Label{"tokens_per_s", "tokens/s"},
                               Label{"mfu", "MFU"}, Label{"arena_bytes", "memory of rank 0"},
                               Label{"step_s", "step time"}, Label{"input_s", "time for input"},
                               Label{"processor_s", "processor time"},
                               // Lists, beside which stands of what.
                               Label{"own_s_by_rank", "own time"}, Label{"message_s_by_rank", "time in messages"},
                               Label{"arena_bytes_by_rank", "memory"}};
  auto known = std::ranges::find(kLabels, field, &Label::first);
  std::string label(known == kLabels.end() ? field : known->second);
  std::ranges::replace(label, '_', ' ');
  return label;
}

}  // namespace sextant
