#include "comm/leader_first.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/threads.h"

namespace sextant {

namespace {

constexpr const char* kBusy = "busy";
constexpr const char* kDone = "done";

// Sends the others, until it is destroyed, that the leader is busy.
class KeepAlive {
 public:
  KeepAlive(HostGroup& group, std::chrono::milliseconds interval) : group_(group), interval_(interval) {
    thread_ = start_thread("leader keep-alive", [this] { send(); });
  }
  ~KeepAlive() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void send() {
    std::unique_lock lock(mutex_);
    try {
      while (!changed_.wait_for(lock, interval_, [this] { return over_; })) group_.from_leader(kBusy);
    } catch (const RunError&) {
      // The rank that ended the run has reported why; the leader meets the same error in its next message.
    }
  }

  HostGroup& group_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

void leader_first(HostGroup& group, std::chrono::milliseconds interval, const std::function<void()>& work) {
  if (group.size() == 1) return work();
  if (!group.leads()) {
    while (group.from_leader("") == kBusy) continue;
    return work();
  }
  {
    KeepAlive keep_alive(group, interval);
    work();
  }
  group.from_leader(kDone);
}

}  // namespace sextant
