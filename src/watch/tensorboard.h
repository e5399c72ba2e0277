// Event files of TensorBoard: records with checksums (TFRecord) of Event messages (protobuf) with scalars.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/run_set.h"

namespace sextant {

// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);

// Length, its checksum, the bytes, their checksum.
std::string tensorboard_record(std::string_view bytes);

// Event messages: the first of a file, and one with a Summary.
std::string tensorboard_version(double wall_time);
std::string tensorboard_event_of(double wall_time, int64_t step, std::string_view summary);

// Of "2026-11-17T18:03:54.123Z", as events have it; seconds since 1970.
std::optional<double> seconds_of_event_time(const std::string& time);

struct TensorboardScalar {
  std::string_view tag;
  float value = 0;
};
// An Event message with these scalars.
std::string tensorboard_event(double wall_time, int64_t step, const std::vector<TensorboardScalar>& scalars);

// All steps of a run as an event file. Metrics have no time of day: steps stand behind the run's first event by the
// time spent in steps, or, without events, end when the file was last written.
std::string tensorboard_file(const WatchedRun& run);

// OUT/RUN/events.out.tfevents.0.sextant for every run; an older one is replaced. How many were written.
size_t write_tensorboard(const RunSet& runs, const std::filesystem::path& out);

}  // namespace sextant
