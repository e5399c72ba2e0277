// Heartbeats: OUT/heartbeat/rank-N.json tells where each rank of the run was last seen. They are for a run that nobody
// could ask any more: a process that was killed, a machine that went away. The next start reads them.
//
// A beat is one write of some hundred bytes without flushing, at the start of every step and twice a second; it never
// ends a run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/rank_status.h"
#include "train/health/rank_times.h"

namespace sextant {

// Lives as long as the rank works.
class Heartbeat {
 public:
  Heartbeat(const std::filesystem::path& out, int rank, const RankStatus& rank_status);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void beat();
  void note_times(const RankTimes& times);  // of the last step
  void finish();
  void fail(const std::string& reason);
  void end();  // by the failure of another

 private:
  void open();
  void open_again_if_removed();
  void write(const std::string& state, const std::string& reason);
  void close_with(const std::string& state, const std::string& reason);
  void keep_beating();

  std::filesystem::path path_;
  const RankStatus& rank_status_;
  std::string host_;
  int64_t thread_;  // that made this object
  // Written at every step: what stays the same is kept, and only the bytes that the last two beats have are written.
  std::string who_, text_;
  std::chrono::sys_seconds second_;
  std::string second_text_;
  size_t end_ = 0;  // of the last beat in the file; behind it are spaces
  int file_ = -1;
  std::mutex mutex_;
  std::condition_variable ended_;
  RankTimes times_;
  bool over_ = false;
  std::thread watcher_;
};

// Where a rank of the run in `out` was last seen, by its file; nothing known when there is none.
StatusLookup heartbeat_status_lookup(const std::filesystem::path& out);

std::string own_host_name();  // as heartbeats have it

// Content of a rank's heartbeat file, as far as it can be read.
struct LastBeat {
  int rank = -1;
  std::string host, time;
  std::string state;  // running, finished, failed, or ended by the failure of another
  std::string reason;
  int64_t pid = 0;
  StatusSnapshot snapshot;
  int64_t thread = 0;   // that computes, in the process; 0: not known
  int64_t time_ms = 0;  // of the wall clock
};
std::vector<LastBeat> last_beats(const std::filesystem::path& out);  // by rank

// Failures in the heartbeat files of an earlier run, one line each; empty when it did not fail.
std::vector<std::string> previous_failures(const std::filesystem::path& out);

std::filesystem::path heartbeat_directory(const std::filesystem::path& out);

// Removes them; a run begins.
void clear_heartbeats(const std::filesystem::path& out);

}  // namespace sextant
