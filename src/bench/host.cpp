#include "bench/host.h"

#include <fmt/format.h>

#include <functional>

#include "base/units.h"
#include "bench/tries.h"

namespace sextant {

void bench_host(const HostRequest& request, BenchReport& report, const Watch& watch) {
  struct Stretch {
    const char *kind, *name;
    double bytes;  // that go over it
    std::function<std::unique_ptr<TimedWork>()> work;
  };
  double once = static_cast<double>(request.bytes);
  auto link = [&](HostCopy direction) {
    return [&request, direction] { return request.device.host_copy(direction, request.bytes); };
  };
  const Stretch stretches[] = {{"host link", "to device", once, link(HostCopy::to_device)},
                               {"host link", "to host", once, link(HostCopy::to_host)},
                               {"host memory", "copy", bytes_of(Stream::copy, once),
                                [&] { return request.host.stream(Stream::copy, request.bytes); }}};
  Tries tries(report);
  for (const Stretch& stretch : stretches) {
    if (watch.stop()) return;
    std::string what = fmt::format("{} {} {}", stretch.kind, stretch.name, human(Bytes{request.bytes}));
    watch.say(what);
    tries.run(what, [&] {
      std::unique_ptr<TimedWork> work = stretch.work();
      BenchResult result{.kind = stretch.kind,
                         .name = stretch.name,
                         .shape = human(Bytes{request.bytes}),
                         .dtype = "fp32",
                         .size = {once},
                         .samples = repeated_together([&](int n) { return work->run_many(n); }, request.repeat, watch),
                         .bytes = stretch.bytes};
      if (result.samples.empty()) return;
      result.error = work->error();
      report.results.push_back(std::move(result));
    });
  }
  tries.finish();
}

}  // namespace sextant
