// What the server of `watch` answers: the page, the API it reads, and Prometheus. Runs are asked for by id; no request
// names a file.
#pragma once

#include "watch/access.h"
#include "watch/http_server.h"
#include "watch/run_set.h"

namespace sextant {

class WatchApi {
 public:
  WatchApi(const RunSet& runs, Access access) : runs_(runs), access_(std::move(access)) {}
  HttpResponse answer(const HttpRequest& request) const;

 private:
  const RunSet& runs_;
  Access access_;
};

}  // namespace sextant
