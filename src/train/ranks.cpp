#include "train/ranks.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/thread_transport.h"

namespace sextant {

namespace {

using Work = std::function<void(const RankSeat&)>;

// For the others to hear that the run has ended. They need do nothing more: what they had saved is whole.
constexpr std::chrono::milliseconds kPatience{500};

// How the ranks came back.
class Homecoming {
 public:
  explicit Homecoming(int ranks) : missing_(ranks) {}

  void back() {
    std::lock_guard lock(mutex_);
    --missing_;
    changed_.notify_all();
  }

  void failed(std::exception_ptr error, const std::string& what, const std::string& place) {
    std::lock_guard lock(mutex_);
    if (!cause_) cause_ = std::move(error), what_ = what, place_ = place;
    changed_.notify_all();
  }

  // Ended by another's failure.
  void left_waiting(std::exception_ptr error, const std::string& place) {
    std::lock_guard lock(mutex_);
    if (!echo_) echo_ = std::move(error), left_at_ = place;
  }

  // False when the run has failed and some rank does not come back.
  bool all_are_back(std::optional<std::chrono::milliseconds> patience) {
    std::unique_lock lock(mutex_);
    auto all = [this] { return missing_ == 0; };
    changed_.wait(lock, [&] { return all() || (cause_ && patience); });
    return !patience || changed_.wait_for(lock, *patience, all);
  }

  std::string text() {
    std::lock_guard lock(mutex_);
    std::string text = what_.starts_with("rank ") ? what_ : place_ + ": " + what_;
    return left_at_.empty() ? text : text + "; " + left_at_ + " was left waiting";
  }

  void rethrow() {
    if (!cause_) cause_ = echo_;
    if (!cause_) return;
    try {
      std::rethrow_exception(cause_);
    } catch (const RunError&) {
      throw RunError("", text());  // other kinds say what is wrong with what was given, or with us, wherever it was met
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  std::exception_ptr cause_, echo_;
  std::string what_, place_, left_at_;
};

void run_one(const RankSeat& seat, const Work& work, Homecoming& home) {
  Transport& transport = *seat.transport;
  auto here = [&] {
    std::string at = transport.whereabouts().seen().text();
    return fmt::format("rank {}{}{}", seat.rank, at.empty() ? "" : " ", at);
  };
  try {
    work(seat);
  } catch (const RunEnded&) {
    home.left_waiting(std::current_exception(), here());
  } catch (const std::exception& error) {
    home.failed(std::current_exception(), error.what(), here());
    transport.abort(fmt::format("{} failed: {}", here(), error.what()));
  }
  home.back();
}

void run_threads(const Launch& launch, const RankTeam& team, const Work& work) {
  ThreadHub hub(team.ranks, team.timeout);
  Homecoming home(team.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < team.ranks; ++rank)
    threads.emplace_back([&, rank] { run_one({rank, &hub.transport(rank)}, work, home); });
  if (!home.all_are_back(launch.end_process ? std::optional(kPatience) : std::nullopt)) launch.end_process(home.text());
  for (std::thread& thread : threads) thread.join();
  home.rethrow();
}

}  // namespace

void run_ranks(const Launch& launch, const RankTeam& team, const Work& work) {
  if (!launch.process) return team.ranks == 1 ? work({}) : run_threads(launch, team, work);
  try {
    work({launch.process->rank(), launch.process});
  } catch (const RunEnded&) {
    throw;  // it names the place, and whose failure it was
  } catch (const RunError& error) {
    std::string at = launch.process->whereabouts().seen().text(), what = error.what();
    if (what.starts_with("rank ")) throw;
    throw RunError(fmt::format("rank {}{}{}", launch.process->rank(), at.empty() ? "" : " ", at), what);
  }
}

}  // namespace sextant
