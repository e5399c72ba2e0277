#include "train/leader_first.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/threads.h"

namespace sextant {

namespace {

constexpr const char* kBusy = "busy";
constexpr const char* kDone = "done";

// Tells the others, until it goes, that the leader is busy.
class SignsOfLife {
 public:
  SignsOfLife(Crew& crew, std::chrono::milliseconds interval) : crew_(crew), interval_(interval) {
    thread_ = start_thread("the leader's signs of life", [this] { tell(); });
  }
  ~SignsOfLife() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void tell() {
    std::unique_lock lock(mutex_);
    try {
      while (!changed_.wait_for(lock, interval_, [this] { return over_; })) crew_.from_leader(kBusy);
    } catch (const RunError&) {
      // Whoever ended the run has said why; the leader meets the same error in its next message.
    }
  }

  Crew& crew_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

void leader_first(Crew& crew, std::chrono::milliseconds sign_of_life, const std::function<void()>& work) {
  if (crew.size() == 1) return work();
  if (!crew.leads()) {
    while (crew.from_leader("") == kBusy) continue;
    return work();
  }
  {
    SignsOfLife signs(crew, sign_of_life);
    work();
  }
  crew.from_leader(kDone);
}

}  // namespace sextant
