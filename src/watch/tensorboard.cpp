#include "watch/tensorboard.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/files.h"
#include "watch/protobuf_wire.h"

namespace sextant {

namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82F63B78u : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

// TensorFlow's: a checksum of data that holds checksums is weak.
std::string masked_crc(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return protobuf::little_endian<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8u);
}

}  // namespace

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary. Summary: 1 value. Value: 1 tag, 2 simple_value.
std::string tensorboard_version(double wall_time) {
  return protobuf::field(1, wall_time) + protobuf::field(3, std::string_view("brain.Event:2"));
}

std::string tensorboard_event_of(double wall_time, int64_t step, std::string_view summary) {
  return protobuf::field(1, wall_time) + protobuf::field(2, static_cast<uint64_t>(step)) + protobuf::field(5, summary);
}

std::optional<double> seconds_of_event_time(const std::string& time) {
  std::tm utc{};
  double seconds = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%lfZ", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
                  &utc.tm_min, &seconds) != 6)
    return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<double>(::timegm(&utc)) + seconds;
}

namespace {

double first_step_time(const WatchedRun& run) {
  if (!run.events().empty())
    if (std::optional<double> seconds = seconds_of_event_time(run.events().front().time)) return *seconds;
  const RunColumns& columns = run.columns();
  double spent = columns.rows() > 0 ? columns.x(XAxis::seconds, columns.rows() - 1) : 0;
  return static_cast<double>(run.modified()) - spent;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ byte) & 0xff];
  return ~crc;
}

std::string tensorboard_record(std::string_view bytes) {
  std::string length = protobuf::little_endian<uint64_t>(bytes.size());
  return length + masked_crc(length) + std::string(bytes) + masked_crc(bytes);
}

std::string tensorboard_event(double wall_time, int64_t step, const std::vector<TensorboardScalar>& scalars) {
  std::string summary;
  for (const TensorboardScalar& scalar : scalars)
    summary += protobuf::field(1, protobuf::field(1, scalar.tag) + protobuf::field(2, scalar.value));
  return tensorboard_event_of(wall_time, step, summary);
}

std::string tensorboard_file(const WatchedRun& run) {
  const RunColumns& columns = run.columns();
  double start = first_step_time(run);
  std::string out = tensorboard_record(tensorboard_version(start));
  std::vector<TensorboardScalar> scalars;
  for (size_t row = 0; row < columns.rows(); ++row) {
    scalars.clear();
    for (const MetricColumn& column : columns.columns()) {
      size_t i = column.first_at_or_after(row);
      if (i < column.size() && column.row(i) == row && !std::isnan(column.value(i)))
        scalars.push_back({column.name(), column.value(i)});
    }
    out += tensorboard_record(tensorboard_event(start + columns.x(XAxis::seconds, row),
                                                static_cast<int64_t>(columns.x(XAxis::step, row)), scalars));
  }
  return out;
}

size_t write_tensorboard(const RunSet& runs, const std::filesystem::path& out) {
  for (const auto& run : runs.runs()) {
    std::filesystem::path folder = out / run->name();
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "events.out.tfevents.0.sextant", tensorboard_file(*run));
  }
  return runs.runs().size();
}

}  // namespace sextant
