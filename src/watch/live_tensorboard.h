// LiveTensorboard: an event file of TensorBoard that grows with a run: scalars, lists as histograms, events of the run
// and its config as text, hyperparameters. It follows metrics.jsonl, so no step waits for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "ckpt/disk.h"
#include "watch/line_tail.h"
#include "watch/metrics_line.h"

namespace sextant {

class LiveTensorboard {
 public:
  // RUN/tensorboard; files of an earlier attempt at the run are removed: what counts of their steps is written again.
  explicit LiveTensorboard(const std::filesystem::path& run);

  // Writes what is new; says whether there was anything. RunError where it cannot be written.
  bool follow();

 private:
  void begin();
  void flush();
  void write(const std::string& event);
  void add_step(std::string_view line);
  void add_event(std::string_view line);

  std::filesystem::path run_;
  LineTail metrics_, events_;
  MetricsLine line_;
  Descriptor file_;
  std::string pending_;           // what is still to be written to it
  double start_ = 0, spent_ = 0;  // seconds since 1970; in steps
  int64_t files_ = 0, last_step_ = 0;
};

}  // namespace sextant
