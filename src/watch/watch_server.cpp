#include "watch/watch_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sextant {

namespace {

// In one round: pages are answered between rounds while large files are read.
constexpr std::chrono::milliseconds kReadTime{20};
constexpr std::chrono::milliseconds kTellEvery{300};  // meanwhile; a page asks for its curves again when it is told

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
  std::vector<int> changed = runs_.poll_for(kReadTime);
  changed_.insert(changed.begin(), changed.end());
  if (changed_.empty() || (runs_.is_loading() && now - told_ < kTellEvery)) return;
  told_ = now;
  server_.publish("change", fmt::format("{{\"runs\":[{}]}}", fmt::join(changed_, ",")));
  changed_.clear();
}

}  // namespace sextant
