// RunCompanion: what a run offers to other programs while it trains (log.tensorboard, log.prometheus), on a thread of
// its own that follows the files of the run. No step waits for it, and nothing that goes wrong here ends the run.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "watch/http_server.h"
#include "watch/run_set.h"

namespace sextant {

class LiveTensorboard;

class RunCompanion {
 public:
  struct Wishes {
    bool tensorboard = false;
    std::string prometheus;  // [HOST]:PORT; empty: not served
  };
  // UserError for an address that is none, RunError for one that cannot be had. `say` is called from its thread.
  RunCompanion(const std::filesystem::path& run, const Wishes& wishes, std::function<void(const std::string&)> say);
  ~RunCompanion();  // what the run wrote last is still handed on
  RunCompanion(const RunCompanion&) = delete;
  RunCompanion& operator=(const RunCompanion&) = delete;

  int port() const { return server_ ? server_->port() : 0; }

 private:
  void work();
  void follow();

  std::function<void(const std::string&)> say_;
  RunSet runs_;
  std::unique_ptr<LiveTensorboard> tensorboard_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> ending_{false};
  std::thread worker_;
};

// "127.0.0.1" and 9400 of ":9400". UserError at log.prometheus for anything that is no such address.
struct ServedAddress {
  std::string host;
  int port = 0;
};
ServedAddress parse_served_address(std::string_view text, std::string_view place);

}  // namespace sextant
