#include "sweep/sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/error.h"
#include "base/run_file.h"
#include "ckpt/disk.h"
#include "events/run_event.h"
#include "supervise/cause.h"
#include "supervise/child_process.h"
#include "supervise/stop_signals.h"
#include "sweep/halving.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr int64_t kEarliestRung = 10;  // steps: before that losses say nothing

// Whether the last attempt at a run ended because its loss or gradients were not finite.
bool ended_non_finite(const fs::path& out) {
  std::vector<RunEvent> events = read_events(out);
  return !events.empty() && events.back().kind == EventKind::failure &&
         events.back().details.integer("exit_code") == number_of(ExitCode::non_finite);
}

class Sweep {
 public:
  explicit Sweep(const SweepRequest& request) : request_(request) {
    for (const SweepRun& run : request.runs) {
      runs_.push_back({.run = run, .out = request.out / run.name});
      last_step_ = std::max(last_step_, run.steps);
    }
  }

  SweepResult run() {
    fs::create_directories(request_.out);
    std::vector<SweptRun*> racing;
    for (SweptRun& run : runs_) racing.push_back(&run);
    for (const Rung& rung : rungs_of(runs_.size(), last_step_, request_.keep_one_in, kEarliestRung)) {
      if (rung.runs < racing.size()) rank(racing);
      for (size_t i = rung.runs; i < racing.size(); ++i)
        if (racing[i]->state == SweepState::waiting) racing[i]->state = SweepState::halted;
      racing.resize(std::min(racing.size(), rung.runs));
      std::erase_if(racing, [](const SweptRun* run) { return run->state == SweepState::failed; });
      if (rung.until < last_step_) say(fmt::format("{} runs to step {}", racing.size(), rung.until));
      run_to(racing, rung.until);
      if (stop_.stop_asked()) break;
    }
    return result();
  }

 private:
  struct Job {
    SweptRun* run;
    Descriptor log;
    std::unique_ptr<ChildProcess> process;
  };

  void say(const std::string& line) const {
    if (request_.say) request_.say(line);
  }

  // Where all of them have been validated, that is what they are ranked by; of another tokenizer or other data losses
  // of training say nothing.
  static LossBasis ranking_of(const std::vector<SweptRun*>& runs) {
    auto all_have = [&](LossMeasure measure) {
      return std::ranges::all_of(runs,
                                 [&](const SweptRun* run) { return run->score.in(measure) || run->score.diverged; });
    };
    std::vector<RunText> texts;
    for (const SweptRun* run : runs) texts.push_back(text_of(run->out, run->run.name));
    LossBasis basis = loss_basis_of(texts);
    if (basis.measure == LossMeasure::loss && all_have(LossMeasure::validation_loss))
      basis.measure = LossMeasure::validation_loss;
    if (basis.measure && !basis.why.empty() && !all_have(*basis.measure))
      return {std::nullopt, fmt::format("{}, and not all have {}", basis.why, field_of(*basis.measure))};
    return basis;
  }

  void rank(std::vector<SweptRun*>& runs) const {
    LossBasis basis = ranking_of(runs);
    if (!basis.measure)
      throw UserError({.place = request_.config,
                       .got = "the best of the runs cannot be told: " + basis.why,
                       .expected = "one measure for all runs, to end the worse ones early",
                       .hint = "give all runs the same data.validation, or let all of them run to their end"});
    std::ranges::stable_sort(runs, {}, [&](const SweptRun* run) { return run->score.value(*basis.measure); });
  }

  // The state of a run that has done what it was to do until then.
  static SweepState state_at(const SweptRun& run, int64_t until) {
    return until >= run.run.steps ? SweepState::finished : SweepState::waiting;
  }
  static bool is_at(const SweptRun& run, int64_t until) { return run.score.steps >= std::min(until, run.run.steps); }

  void run_to(const std::vector<SweptRun*>& runs, int64_t until) {
    std::deque<SweptRun*> waiting;
    for (SweptRun* run : runs) {
      run->score = score_of(run->out);
      if (run->score.diverged |= ended_non_finite(run->out); run->score.diverged)
        run->state = SweepState::diverged;
      else if (is_at(*run, until))
        run->state = state_at(*run, until);
      else
        waiting.push_back(run);
    }
    std::vector<Job> jobs;
    while (!jobs.empty() || (!waiting.empty() && !stop_.stop_asked())) {
      while (!waiting.empty() && std::ssize(jobs) < request_.jobs && !stop_.stop_asked()) {
        jobs.push_back(start(*waiting.front(), until));
        waiting.pop_front();
      }
      wait_for_any(jobs, until);
    }
    for (SweptRun* run : waiting) run->state = SweepState::stopped;
  }

  Job start(SweptRun& run, int64_t until) const {
    fs::create_directories(run.out);
    fs::path log = run.out / "run.log";
    Descriptor file(open_run_file(log, O_WRONLY | O_APPEND));
    if (!file.is_open()) throw RunError(log.string(), fmt::format("cannot open for writing: {}", ::strerror(errno)));
    std::vector<std::string> words{request_.binary, "train", request_.config};
    words.insert(words.end(), run.run.overrides.begin(), run.run.overrides.end());
    bool threads_given = std::ranges::any_of(
        run.run.overrides, [](const std::string& pair) { return pair.starts_with("train.threads="); });
    if (request_.threads > 0 && !threads_given) words.push_back(fmt::format("train.threads={}", request_.threads));
    words.insert(words.end(), {"--out", run.out.string()});
    if (until < run.run.steps) words.insert(words.end(), {"--until", std::to_string(until)});
    say(fmt::format("start   {}", run.run.name));
    auto process = std::make_unique<ChildProcess>(words, file.get());
    return {&run, std::move(file), std::move(process)};
  }

  void wait_for_any(std::vector<Job>& jobs, int64_t until) {
    if (stop_.stop_asked() && !asked_) {
      asked_ = true;
      for (const Job& job : jobs) job.process->send(SIGUSR1);
    }
    if (stop_.end_asked())
      for (const Job& job : jobs) job.process->send(SIGKILL);
    for (size_t i = 0; i < jobs.size(); ++i) {
      std::optional<int> status = jobs[i].process->wait(kLook / std::ssize(jobs));
      if (!status) continue;
      end(*jobs[i].run, *status, until);
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  void end(SweptRun& run, int status, int64_t until) const {
    Cause cause = cause_of_status(status);
    run.exit_code = cause.signal != 0 ? 128 + cause.signal : WEXITSTATUS(status);
    run.score = score_of(run.out);
    if (cause.kind == CauseKind::non_finite)
      run.state = SweepState::diverged, run.score.diverged = true;
    else if (is_at(run, until) && (cause.kind == CauseKind::finished || cause.kind == CauseKind::stopped))
      run.state = state_at(run, until);
    else
      run.state = cause.kind == CauseKind::stopped ? SweepState::stopped : SweepState::failed;
    std::string what = run.state == SweepState::failed
                           ? fmt::format("failed: {}; see {}", cause.text(), (run.out / "run.log").string())
                       : run.score.loss ? fmt::format("step {}, loss {:.4f}", run.score.steps, *run.score.loss)
                                        : "no step";
    say(fmt::format("end     {}: {}", run.run.name, what));
  }

  SweepResult result() {
    SweepResult out;
    std::vector<SweptRun*> all;
    for (SweptRun& run : runs_) all.push_back(&run);
    // Those that went furthest first: a loss after more steps is not one to rank beside others.
    out.ranked_by = ranking_of(all);
    std::ranges::stable_sort(all, [&](const SweptRun* a, const SweptRun* b) {
      if (a->score.steps != b->score.steps && !a->score.diverged && !b->score.diverged)
        return a->score.steps > b->score.steps;
      return out.ranked_by.measure && a->score.value(*out.ranked_by.measure) < b->score.value(*out.ranked_by.measure);
    });
    for (const SweptRun* run : all) out.runs.push_back(*run);
    auto any = [&](SweepState state) { return std::ranges::count(out.runs, state, &SweptRun::state) > 0; };
    out.outcome = stop_.stop_asked()        ? ExitCode::stopped
                  : any(SweepState::failed) ? ExitCode::run_failed
                                            : ExitCode::finished;
    return out;
  }

  const SweepRequest& request_;
  StopSignals stop_;
  bool asked_ = false;
  std::vector<SweptRun> runs_;
  int64_t last_step_ = 0;
};

}  // namespace

std::string_view name_of(SweepState state) {
  constexpr std::string_view kNames[] = {
#define SWEEP_STATE(name) #name,
#include "sweep/sweep_states.def"
#undef SWEEP_STATE
  };
  return kNames[static_cast<size_t>(state)];
}

SweepResult sweep(const SweepRequest& request) {
  return Sweep(request).run();
}

}  // namespace sextant
