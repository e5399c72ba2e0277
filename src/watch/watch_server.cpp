#include "watch/watch_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sextant {

namespace {

// Of each run in one round: pages are answered between rounds while large files are read.
constexpr size_t kReadBudget = 2 << 20;

}  // namespace

WatchServer::WatchServer(RunSet& runs, Access access, const std::string& host, int port, HttpLimits limits,
                         WatchIntervals intervals)
    : runs_(runs),
      api_(runs, std::move(access)),
      server_(host, port, limits, [this](const HttpRequest& request) { return api_.answer(request); }),
      intervals_(intervals) {}

void WatchServer::serve(const std::function<bool()>& stop) {
  while (!stop()) {
    follow_runs();
    server_.turn(runs_.is_loading() ? std::chrono::milliseconds(0) : std::chrono::milliseconds(100));
  }
}

void WatchServer::follow_runs() {
  auto now = std::chrono::steady_clock::now();
  // Folders on slow storage are looked through less often.
  constexpr int kShareOfTime = 50;
  if (now - rescanned_ >= std::max<std::chrono::steady_clock::duration>(intervals_.rescan, kShareOfTime * scan_took_)) {
    rescanned_ = now;
    if (runs_.rescan()) server_.publish("runs", "{}");
    scan_took_ = std::chrono::steady_clock::now() - now;
  }
  if (now - polled_ < intervals_.poll && !runs_.is_loading()) return;
  polled_ = now;
  std::vector<int> changed = runs_.poll(kReadBudget);
  if (!changed.empty()) server_.publish("change", fmt::format("{{\"runs\":[{}]}}", fmt::join(changed, ",")));
}

}  // namespace sextant
