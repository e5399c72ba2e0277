#include "watch/tensorboard_summary.h"

#include <algorithm>
#include <charconv>

#include "watch/protobuf_wire.h"

namespace sextant {

namespace {

constexpr size_t kBuckets = 30;

// Value: 1 tag, 8 tensor, 9 metadata. SummaryMetadata: 1 plugin_data. PluginData: 1 plugin_name, 2 content.
// TensorProto: 1 dtype, 2 tensor_shape, 8 string_val. TensorShapeProto: 2 dim. Dim: 1 size.
std::string metadata_of(std::string_view plugin, std::string_view content) {
  return protobuf::field(1, protobuf::field(1, plugin) + protobuf::field(2, content));
}

std::string string_tensor(std::string_view text) {
  constexpr uint64_t kString = 7;
  std::string one_dim = protobuf::field(2, protobuf::field(1, uint64_t{1}));
  return protobuf::field(1, kString) + protobuf::field(2, one_dim) + protobuf::field(8, text);
}

// google.protobuf.Value: 2 number_value, 3 string_value, 4 bool_value.
std::string value_of(const std::string& toml) {
  if (toml == "true" || toml == "false") return protobuf::field(4, uint64_t{toml == "true"});
  double number = 0;
  auto [end, error] = std::from_chars(toml.data(), toml.data() + toml.size(), number);
  if (error == std::errc() && end == toml.data() + toml.size()) return protobuf::field(2, number);
  bool quoted = toml.size() >= 2 && toml.front() == '"' && toml.back() == '"';
  return protobuf::field(3, std::string_view(toml).substr(quoted ? 1 : 0, toml.size() - (quoted ? 2 : 0)));
}

}  // namespace

std::string text_summary(std::string_view tag, std::string_view markdown) {
  return protobuf::field(1, protobuf::field(1, tag) + protobuf::field(8, string_tensor(markdown)) +
                                protobuf::field(9, metadata_of("text", "")));
}

// HistogramProto: 1 min, 2 max, 3 num, 4 sum, 5 sum_squares, 6 bucket_limit, 7 bucket.
std::string histogram_summary(std::string_view tag, std::span<const double> values) {
  if (values.empty()) return "";
  auto [low, high] = std::ranges::minmax(values);
  double width = high > low ? (high - low) / kBuckets : 1, sum = 0, squares = 0;
  std::vector<double> limits, counts(kBuckets, 0.0);
  for (size_t i = 1; i <= kBuckets; ++i) limits.push_back(low + width * static_cast<double>(i));
  for (double value : values) {
    auto bucket = std::min(kBuckets - 1, static_cast<size_t>((value - low) / width));
    counts[bucket] += 1;
    sum += value;
    squares += value * value;
  }
  std::string histogram = protobuf::field(1, low) + protobuf::field(2, high) +
                          protobuf::field(3, static_cast<double>(values.size())) + protobuf::field(4, sum) +
                          protobuf::field(5, squares) + protobuf::field(6, std::span<const double>(limits)) +
                          protobuf::field(7, std::span<const double>(counts));
  return protobuf::field(1, protobuf::field(1, tag) + protobuf::field(5, histogram));
}

// HParamsPluginData: 1 version, 3 session_start_info. SessionStartInfo: 1 hparams (a map), 5 start_time_secs.
std::string hparams_summary(const std::vector<std::pair<std::string, std::string>>& values, double start_time) {
  std::string session;
  for (const auto& [name, value] : values)
    session += protobuf::field(1, protobuf::field(1, std::string_view(name)) + protobuf::field(2, value_of(value)));
  session += protobuf::field(5, start_time);
  std::string content = protobuf::field(1, uint64_t{0}) + protobuf::field(3, session);
  return protobuf::field(1, protobuf::field(1, std::string_view("_hparams_/session_start_info")) +
                                protobuf::field(9, metadata_of("hparams", content)));
}

}  // namespace sextant
