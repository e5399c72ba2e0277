#include "comm/ranks.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "comm/thread_transport.h"

namespace sextant {

namespace {

using Work = std::function<void(const RankContext&)>;

// For the others to hear that the run has ended. They need do nothing more: what they had saved is whole.
constexpr std::chrono::milliseconds kPatience{500};

struct Failure {
  std::exception_ptr error;
  std::string what;
  ExitCode code;
  std::string place;  // "rank 2 in step 7, F 0 3, at …"
};

// How the ranks came back.
class RankOutcomes {
 public:
  explicit RankOutcomes(int ranks) : missing_(ranks) {}

  void back() {
    std::lock_guard lock(mutex_);
    --missing_;
    changed_.notify_all();
  }

  void failed(Failure failure) { keep(cause_, std::move(failure)); }
  void was_ended(Failure failure) { keep(echo_, std::move(failure)); }  // by another's failure

  // False when the run has failed and some rank does not come back.
  bool all_are_back(std::optional<std::chrono::milliseconds> patience) {
    std::unique_lock lock(mutex_);
    auto all = [this] { return missing_ == 0; };
    changed_.wait(lock, [&] { return all() || (patience && (cause_ || echo_)); });
    return all() || changed_.wait_for(lock, *patience, all);
  }

  ExitCode code() {
    std::lock_guard lock(mutex_);
    return cause_ ? cause_->code : echo_->code;  // an echo has the code of its cause
  }

  std::string text() {
    std::lock_guard lock(mutex_);
    if (!cause_) return echo_->what;  // the cause was met on another lane of that rank; its echo repeats it
    std::string text = cause_->what.starts_with("rank ") ? cause_->what : cause_->place + ": " + cause_->what;
    return echo_ ? text + "; " + echo_->place + " was left waiting" : text;
  }

  void rethrow() {
    if (!cause_ && !echo_) return;
    try {
      std::rethrow_exception(cause_ ? cause_->error : echo_->error);
    } catch (const RunError& error) {
      // Other kinds say what is wrong with what was given, or with us, wherever it was met.
      throw RunError("", text(), "", error.exit_code());
    }
  }

 private:
  void keep(std::optional<Failure>& first, Failure failure) {
    std::lock_guard lock(mutex_);
    if (!first) first = std::move(failure);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  std::optional<Failure> cause_, echo_;
};

void run_one(const RankContext& context, const Work& work, RankOutcomes& home) {
  Transport& transport = *context.transport;
  try {
    work(context);
  } catch (const RunEnded& error) {
    home.was_ended({std::current_exception(), error.what(), error.exit_code(), transport.here()});
  } catch (const std::exception& error) {
    home.failed({std::current_exception(), error.what(), exit_code_of(error), transport.here()});
    transport.abort(fmt::format("{} failed: {}", transport.here(), error.what()), exit_code_of(error));
  }
  home.back();
}

void run_threads(const Launch& launch, const RankTeam& team, const Work& work) {
  ThreadHub hub(team.ranks, team.timeout);
  RankOutcomes home(team.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < team.ranks; ++rank) {
    RankContext context{rank, &hub.transport(rank)};
    try {
      threads.push_back(
          start_thread(fmt::format("rank {} of {}", rank, team.ranks), [&, context] { run_one(context, work, home); }));
    } catch (const std::exception&) {
      // As if that rank had failed at once: those that did start must not wait for it.
      run_one(
          context, [](const RankContext&) { throw; }, home);
    }
  }
  if (!home.all_are_back(launch.end_process ? std::optional(kPatience) : std::nullopt))
    launch.end_process(home.text(), home.code());
  for (std::thread& thread : threads) thread.join();
  home.rethrow();
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (auto* wrong = dynamic_cast<const UserError*>(&error)) return wrong->exit_code();
  if (auto* failed = dynamic_cast<const RunError*>(&error)) return failed->exit_code();
  return dynamic_cast<const std::logic_error*>(&error) ? ExitCode::internal_error : ExitCode::run_failed;
}

void run_ranks(const Launch& launch, const RankTeam& team, const Work& work) {
  if (!launch.process) return team.ranks == 1 ? work({}) : run_threads(launch, team, work);
  try {
    work({launch.process->rank(), launch.process});
  } catch (const RunEnded&) {
    throw;  // it names the place, and whose failure it was
  } catch (const RunError& error) {
    std::string what = error.what();
    if (what.starts_with("rank ")) throw;
    throw RunError(launch.process->here(), what, "", error.exit_code());
  }
}

}  // namespace sextant
