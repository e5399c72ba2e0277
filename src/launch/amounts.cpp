// Memory and volumes as they are typed.
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "launch/launchers.h"

namespace sextant {

MemoryAmount memory_amount(const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr int64_t kMost = 1'000'000'000'000;
  MemoryAmount amount;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, amount.count);
  bool number = error == std::errc() && amount.count > 0 && amount.count <= kMost;
  if (!number || last - end != 1 || kUnits.find(*end) == std::string_view::npos)
    refuse_request("memory", fmt::format("\"{}\"", text), "a whole number and K, M, G or T, such as 64G");
  size_t unit = kUnits.find(*end);
  for (; unit + 1 < kUnits.size() && amount.count % 1024 == 0; ++unit) amount.count /= 1024;
  amount.unit = kUnits[unit];
  return amount;
}

VolumeSource volume_source(const std::string& text) {
  size_t colon = text.rfind(':');
  VolumeSource volume;
  bool whole = colon != std::string::npos && colon > 0 && text.compare(colon + 1, 1, "/") == 0 &&
               text.find_first_not_of('/', colon + 1) != std::string::npos && text.find_first_of("\n\t\r") == text.npos;
  if (!whole)
    refuse_request("volume", fmt::format("\"{}\"", text), "CLAIM:PATH or /PATH/ON/NODES:PATH, such as runs:/runs",
                   "CLAIM is the name of a PersistentVolumeClaim, the second PATH is where pods see it.");
  (text.starts_with('/') ? volume.host_path : volume.claim) = text.substr(0, colon);
  volume.mount = text.substr(colon + 1);
  return volume;
}

}  // namespace sextant
