// `watch` as a server: follows the runs and tells open pages what changed.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "watch/access.h"
#include "watch/http_server.h"
#include "watch/run_set.h"
#include "watch/watch_api.h"

namespace sextant {

struct WatchIntervals {
  std::chrono::milliseconds poll{500}, rescan{2000};
};

class WatchServer {
 public:
  WatchServer(RunSet& runs, Access access, const std::string& host, int port, HttpLimits limits = {},
              WatchIntervals intervals = {});

  int port() const { return server_.port(); }
  // Until `stop` says so; it is asked several times a second.
  void serve(const std::function<bool()>& stop);

 private:
  void follow_runs();

  RunSet& runs_;
  WatchApi api_;
  HttpServer server_;
  WatchIntervals intervals_;
  std::chrono::steady_clock::time_point polled_{}, rescanned_{}, told_{};
  std::set<int> changed_;  // runs that open pages have not been told of
  std::chrono::steady_clock::duration scan_took_{};
};

}  // namespace sextant
