#include "bench/memory.h"

#include <fmt/format.h>

#include "base/units.h"
#include "bench/tries.h"

namespace sextant {

void bench_memory(const MemoryRequest& request, BenchReport& report, const Watch& watch) {
  constexpr std::pair<Stream, const char*> kStreams[] = {
      {Stream::copy, "copy"}, {Stream::triad, "triad"}, {Stream::read, "read"}, {Stream::write, "write"}};
  Tries tries(report);
  size_t done = 0, all = std::size(kStreams) * request.sizes.size();
  for (const auto& [stream, name] : kStreams)
    for (int64_t size : request.sizes) {
      if (watch.stop()) return;
      std::string what = fmt::format("memory {} {}", name, human(Bytes{size}));
      watch.say(fmt::format("{} ({} of {})", what, ++done, all));
      tries.run(what, [&] {
        std::unique_ptr<TimedWork> work = request.probe.stream(stream, size);
        BenchResult result{
            .kind = "memory",
            .name = name,
            .shape = human(Bytes{size}),
            .dtype = "fp32",
            .size = {static_cast<double>(size)},
            .samples = repeated_together([&](int n) { return work->run_many(n); }, request.repeat, watch),
            .bytes = bytes_of(stream, static_cast<double>(size))};
        if (result.samples.empty()) return;
        result.error = work->error();
        if (request.peak_bytes_per_s > 0) result.peak_share = result.bytes_per_s() / request.peak_bytes_per_s;
        report.results.push_back(std::move(result));
      });
    }
  tries.finish();
}

void bench_launch(const MemoryRequest& request, BenchReport& report, const Watch& watch) {
  constexpr int64_t kTiny = 16;  // bytes
  if (watch.stop()) return;
  watch.say("a tiny kernel");
  std::unique_ptr<TimedWork> work = request.probe.stream(Stream::write, kTiny);
  BenchResult result{.kind = "launch",
                     .name = "tiny kernel",
                     .shape = human(Bytes{kTiny}),
                     .dtype = "fp32",
                     .size = {static_cast<double>(kTiny)},
                     .samples = repeated_together([&](int n) { return work->run_many(n); }, request.repeat, watch),
                     .bytes = bytes_of(Stream::write, kTiny)};
  if (result.samples.empty()) return;
  result.error = work->error();
  report.results.push_back(std::move(result));
}

}  // namespace sextant
