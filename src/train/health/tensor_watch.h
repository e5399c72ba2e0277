// TensorWatch: looks at the statistics of layers (log.tensor_stats_every) for what ruins runs: gradients that round to
// zero, numbers at the end of their format, attention logits that grow, updates that explode or die away. Each has an
// event of its own (docs/tensors.md says when).
//
// A number is compared with the layer's own history: the median of up to kHistory measurements, without the newest
// kLag, and the noise between neighbours, by which a trend is not taken for noise. It must be beyond its limit kInRow
// times in a row. One cause often has effects that another detector would tell of: where several would, the first kind
// in the order of Kind does.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/run_event.h"
#include "train/tensor_statistics.h"

namespace sextant {

struct TensorAlarm {
  EventKind kind = EventKind::underflow;
  int64_t step = 0;
  int layer = 0;     // the one that is furthest beyond its limit
  std::string text;  // "layer 3: 61 % of gradients round to zero, 1.2 % before"
};

class TensorWatch {
 public:
  static constexpr size_t kHistory = 100, kLeastHistory = 20, kLag = 10, kInRow = 3, kRest = 50;

  // After each measuring step, in turn. `lr`: of the step.
  std::vector<TensorAlarm> note(int64_t step, double lr, const TensorStatistics& tensors);

 private:
  // One number of one layer, over the measurements.
  struct Series {
    std::deque<double> values;  // the newest last
    size_t beyond = 0;          // how often in a row
  };
  struct Detector;
  static const std::vector<Detector>& detectors();
  std::optional<double> excess(const Detector& detector, const Series& series, double value, std::string& text) const;

  std::map<std::pair<const Detector*, size_t>, Series> series_;  // by detector and layer
  std::map<EventKind, size_t> rest_;  // measurements within all limits until a kind may be told of again
};

}  // namespace sextant
