// Answers of the server of `watch`: the page, the API that it reads, and Prometheus. Requests name runs by id; no
// request names a file.
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
