#include "train/monitors/monitors.h"

namespace sextant {

std::vector<std::unique_ptr<Monitor>> make_monitors(RankServices& rank, const std::vector<MakeMonitor>& more) {
  std::vector<MakeMonitor> makers{
#define MONITOR(name) make_##name##_monitor,
#include "train/monitors/monitors.def"
#undef MONITOR
  };
  makers.insert(makers.end(), more.begin(), more.end());
  std::vector<std::unique_ptr<Monitor>> monitors;
  for (const MakeMonitor& make : makers)
    if (std::unique_ptr<Monitor> monitor = make(rank)) monitors.push_back(std::move(monitor));
  return monitors;
}

}  // namespace sextant
