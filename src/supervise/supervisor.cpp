#include "supervise/supervisor.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "config/mesh_axes.h"
#include "events/event_log.h"
#include "supervise/blame.h"
#include "supervise/child_process.h"
#include "supervise/event_tail.h"
#include "supervise/leftover.h"
#include "supervise/preflight.h"
#include "supervise/run_log.h"
#include "supervise/smaller_mesh.h"
#include "supervise/steady_wall.h"
#include "supervise/step_judge.h"
#include "supervise/step_verdict.h"
#include "supervise/stop_relay.h"
#include "supervise/stopped_ranks.h"
#include "supervise/suspect_hosts.h"
#include "supervise/timed_command.h"
#include "train/health/hang_report.h"
#include "train/health/heartbeat.h"
#include "train/health/switches.h"
#include "train/health/time_limits.h"
#include "train/save/local_copy.h"
#include "train/save/local_folder.h"
#include "train/save/run_lock.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::milliseconds kLeftoverPatience{30'000};
constexpr std::chrono::milliseconds kLockPatience{500};  // with those that only look whether it is free
constexpr std::chrono::milliseconds kPreflightLimit{300'000};
constexpr std::chrono::milliseconds kRemoteEnd{5000};   // for mpirun and srun to end ranks on other hosts
constexpr std::chrono::milliseconds kLauncherEnd{500};  // once no rank is left
constexpr std::chrono::seconds kHostsLook{2};

class Supervisor {
 public:
  Supervisor(const SuperviseRequest& request, const StopSignals& signals)
      : request_(request),
        signals_(signals),
        out_(request.out),
        lock_(held_directory(request.out), RunLock::kSupervisorFile, kLockPatience),
        log_(out_, request.echo ? RunLog::Echo::standard_output : RunLog::Echo::none),
        events_(out_, request.run.log.on_event),
        policy_(request.retry, newest_checkpoint()),
        hosts_(request.run, request.hosts, out_) {}

  RunReport run() {
    adopt_orphans();
    end_leftover(out_, kLeftoverPatience, [this](const std::string& line) { log_.say(line); });
    { RunLock refused_while_another_run_has_it(out_, RunLock::kRunFile, kLockPatience); }
    if (request_.run.checkpoint.every == 0) log_.say("checkpoint.every is 0: after a failure the run begins anew");
    began_ = wall_now();
    report_.first_step = std::max<int64_t>(0, newest_checkpoint());
    for (int64_t number = 1; !is_over_; ++number) {
      if (asked_to_stop()) {
        stop(fmt::format("asked to stop{}", stop_file_exists(out_)
                                                ? fmt::format("; remove {} to go on", (out_ / kStopFile).string())
                                                : ""));
        break;
      }
      // A start would create the directory again, and that is another run.
      if (!lock_.is_there() && !log_.is_there()) {
        give_up(ExitCode::run_failed, fmt::format("{} was removed or moved while the run was there", out_.string()));
        break;
      }
      try {
        take_attempt(number);
      } catch (const UserError&) {
        throw;
      } catch (const std::runtime_error& error) {
        outlive(number, error);
      }
    }
    finish_report();
    fs::path local = local_folder();
    if (std::error_code ignored; !local.empty() && fs::exists(local, ignored))
      log_.say(fmt::format("local checkpoints are left in {}; the next start resumes from them, or removes them",
                           local.string()));
    forget_child(out_);
    return report_;
  }

 private:
  static fs::path held_directory(const fs::path& out) {
    std::error_code error;
    fs::create_directories(out, error);
    if (error)
      throw RunError(out.string(), fmt::format("cannot create the run's directory: {}", error.message()),
                     "choose another with --out, or change who may write there");
    return out;
  }

  // Where the directory cannot be listed this time, as it was the last time.
  int64_t newest_checkpoint() {
    try {
      std::optional<Checkpoint> newest = latest_checkpoint(out_, kRunStateFile);
      newest_seen_ = newest ? newest->step : -1;
    } catch (const RunError& error) {
      log_.say(error.what());
    }
    return newest_seen_;
  }

  fs::path local_folder() {
    try {
      return known_local_folder(out_);
    } catch (const RunError& error) {
      log_.say(error.what());
      return {};
    }
  }

  // The newest step that a restart can go on from, as far as this host knows.
  int64_t newest_kept() {
    int64_t newest = newest_checkpoint();
    std::vector<std::string> ignored;
    fs::path folder = local_folder();
    if (folder.empty()) return newest;
    for (const LocalCopy& copy : list_local_copies(folder, ignored)) newest = std::max(newest, copy.manifest.step);
    return newest;
  }

  bool asked_to_stop() const { return signals_.stop_asked() || stop_file_exists(out_); }

  void stop(std::string why) {
    report_.outcome = ExitCode::stopped;
    report_.why = std::move(why);
    is_over_ = true;
  }

  void give_up(ExitCode code, std::string why) {
    log_.say(fmt::format("given up: {}", why));
    report_.outcome = code;
    report_.why = std::move(why);
    is_over_ = true;
  }

  void record(const RunEvent& event) {
    if (std::optional<std::string> warning = events_.record(event)) log_.say(*warning);
  }

  // The mesh that can run on the available hosts; nullopt when they do not suffice for any mesh.
  std::optional<MeshChoice> choose_mesh() const {
    int64_t room = hosts_.are_named() ? slots_of(hosts_.available()) : ranks_of(request_.run.mesh);
    return mesh_for(request_.run, room);
  }

  StartRequest start_of(const MeshChoice& mesh) const {
    StartRequest start = request_.start;
    start.ranks = mesh.ranks;
    if (hosts_.are_named()) {
      fs::path active = out_ / "active-hosts";
      write_file_atomically(active, hosts_text(first_hosts(hosts_.available(), mesh.ranks)));
      start.hostfile = active.string();
    }
    return start;
  }

  std::vector<std::string> train_words(const MeshChoice& mesh) {
    std::vector<std::string> words{"train", request_.config};
    words.insert(words.end(), request_.overrides.begin(), request_.overrides.end());
    if (!mesh.setting.empty()) words.push_back(mesh.setting);
    // A run that is told where to begin resumes from its own checkpoints once it has some.
    if (!request_.run.checkpoint.resume.is_latest() && !report_.attempts.empty() && newest_checkpoint() >= 0)
      words.push_back("checkpoint.resume=auto");
    words.insert(words.end(), {"--out", out_.string(), "--supervised-by", RunLock::own_name()});
    for (const std::string& fault : request_.faults) words.insert(words.end(), {"--inject", fault});
    return words;
  }

  void take_attempt(int64_t number) {
    std::optional<MeshChoice> mesh = choose_mesh();
    if (!mesh)
      return give_up(ExitCode::rank_lost,
                     fmt::format("the hosts that are left have {} slots, too few for any mesh of this run",
                                 slots_of(hosts_.available())));
    is_smaller_ = !mesh->setting.empty();
    if (is_smaller_ || was_smaller_) log_.say(fmt::format("mesh: {}", mesh->text));
    was_smaller_ = is_smaller_;
    active_ranks_ = mesh->ranks;
    StartRequest start = start_of(*mesh);
    Attempt attempt{.number = number, .mesh = is_smaller_ ? mesh->text : "", .started = wall_now()};
    if (!request_.preflight || is_healthy(start, attempt)) train_once(start, *mesh, attempt);
    conclude(attempt);
  }

  // Doctor's checks on the hosts of the run.
  bool is_healthy(const StartRequest& start, Attempt& attempt) {
    log_.say(fmt::format("preflight of attempt {}", attempt.number));
    WallTime from = wall_now();
    std::vector<std::string> words{"doctor", out_.string(), "-q", "--json"};
    if (request_.burn.count() > 0)
      words.insert(words.end(), {"--burn", fmt::format("{}", request_.burn.count()), "--device",
                                 std::string(word_of(request_.run.device))});
    fs::path printed = out_ / "preflight.json";
    auto until =
        SteadyClock::now() + kPreflightLimit + std::chrono::duration_cast<SteadyClock::duration>(request_.burn);
    std::optional<int> status =
        run_to_file(start_command(start, words), printed, {until, [this] { return asked_to_stop(); }});
    attempt.ended = wall_now();
    outage_.preflight += seconds_between(from, attempt.ended);
    std::vector<PreflightFinding> findings;
    if (std::error_code ignored; fs::exists(printed, ignored)) findings = preflight_findings(read_file(printed));
    for (const PreflightFinding& finding : findings) log_.say(finding.text);
    if (asked_to_stop()) {
      attempt.cause = {.kind = CauseKind::stopped};
      attempt.done_step = last_metrics_step(out_);
      return false;
    }
    Cause cause = status ? cause_of_status(*status) : Cause{.kind = CauseKind::hang, .detail = "doctor did not end"};
    if (cause.kind == CauseKind::finished) return true;
    if (findings.empty())
      log_.say(fmt::format("doctor ended with {}; {} has its output", cause.text(), printed.string()));
    cause.kind = CauseKind::unhealthy;
    attempt.cause = cause;
    attempt.done_step = last_metrics_step(out_);
    hosts_.blame(findings, attempt);
    return false;
  }

  void train_once(const StartRequest& start, const MeshChoice& mesh, Attempt& attempt) {
    std::vector<std::string> words = start_command(start, train_words(mesh));
    clear_heartbeats(out_);  // those of the last attempt have been read
    log_begin_ = log_.size();
    EventTail events(out_);
    log_.say(fmt::format("attempt {}, {}: {}", attempt.number, utc_now(), fmt::join(words, " ")));
    WallTime spawned = wall_now();
    ChildProcess child(words, log_.file());
    note_child(out_, child.id());
    watch_child(child, events, attempt);
    attempt.ended = wall_now();
    take_events(events, attempt);
    // A request that came when all was done met a process that no longer handles it.
    if (attempt.says_it_is_done && attempt.cause.signal == SIGUSR1) attempt.cause = {.kind = CauseKind::finished};
    end_processes(child, attempt);
    log_.echo();
    WallTime gone = wall_now();
    attempt.done_step = last_metrics_step(out_);
    if (attempt.trained) {
      WallTime progress = last_progress(out_, request_.run).value_or(*attempt.trained);
      WallTime failing_since = time_within(progress, clock_.set_by(), *attempt.trained, attempt.ended);
      outage_ = {.detecting = seconds_between(failing_since, attempt.ended)};
    }
    if (!attempt.trained) outage_.starting += seconds_between(spawned, attempt.ended);
    outage_.ending += seconds_between(attempt.ended, gone);
    for (const LastBeat& beat : last_beats(out_)) attempt.at_step = std::max(attempt.at_step, beat.snapshot.step);
  }

  // Until it has ended, or has to be ended; the cause is known then.
  void watch_child(ChildProcess& child, EventTail& events, Attempt& attempt) {
    spawned_ = wall_now();
    HeartbeatWatch::Limits limits = request_.watch;
    limits.failing = TimeLimits::end_of(TimeLimits(request_.run).in_step()) + kLauncherEnd;
    HeartbeatWatch watch(out_, limits, SteadyClock::now());
    StoppedRanks stopped(request_.start.binary, limits.stopped);
    auto glance = std::clamp<SteadyClock::duration>(request_.watch.stale / 4, 50ms, 1s);
    auto next_look = SteadyClock::now() + glance, next_hosts = SteadyClock::now() + kHostsLook;
    StopRelay relay(child);
    for (;;) {
      if (std::optional<int> status = child.wait(kPoll)) {
        attempt.cause = cause_of_status(*status);
        return;
      }
      log_.echo();
      take_events(events, attempt);
      if (signals_.end_asked()) {
        attempt.cause = {.kind = CauseKind::killed, .signal = SIGKILL};
        return;
      }
      auto now = SteadyClock::now();
      if (is_smaller_ && !regrows_ && now >= next_hosts) {
        next_hosts = now + kHostsLook;
        regrows_ = has_more_hosts(attempt);
      }
      if (attempt.says_it_leaves) relay.answered();
      if (asked_to_stop() || regrows_) {
        if (!relay.has_asked())
          log_.say(regrows_ ? "hosts have returned: the run is asked to save and stop, and goes on with more ranks"
                            : "the run is asked to save and stop");
        relay.ask(now);
      }
      if (attempt.trained) watch.expect(active_ranks_, now);
      if (now < next_look) continue;
      next_look = now + glance;
      if (std::optional<std::string> what = watch.look(now)) {
        attempt.cause = {.kind = CauseKind::hang, .detail = *what};
        report_hang(attempt);
        return;
      }
      if (std::optional<pid_t> process = stopped.look(now)) {
        attempt.cause = {.kind = CauseKind::hang,
                         .detail = fmt::format("process {} has been stopped by a signal for {:.3g} s", *process,
                                               std::chrono::duration<double>(limits.stopped).count())};
        report_hang(attempt);
        return;
      }
      if (request_.start.starter != Starter::process && watch.launcher_is_left(now)) {
        log_.say("every rank has ended, and what started them has not: it is killed");
        take_events(events, attempt);
        attempt.cause = attempt.told_code ? cause_of_status(*attempt.told_code << 8)
                                          : Cause{.kind = CauseKind::hang, .detail = "the launcher did not end"};
        return;
      }
    }
  }

  // While its processes are still there to be looked at.
  void report_hang(Attempt& attempt) {
    auto now = std::chrono::system_clock::now().time_since_epoch();  // as heartbeats have it
    int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    std::optional<HangReport> report = hang_report(last_beats(out_), now_ms);
    if (!report) return;
    for (const std::string& line : report->chain) log_.say(line);
    attempt.rank = report->late_rank;
    attempt.host = report->late_host;
    record(report->event());
  }

  bool has_more_hosts(const Attempt& attempt) const try {
    std::optional<MeshChoice> now = choose_mesh();
    return attempt.trained && now && (now->setting.empty() || now->ranks > active_ranks_);
  } catch (const std::runtime_error&) {
    return false;  // somebody is writing the hostfile at this moment, or it cannot be read
  }

  // When it trains again, the interruption is over.
  void take_events(EventTail& events, Attempt& attempt) {
    for (const RunEvent& event : events.take()) {
      if (event.kind == EventKind::hang)
        if (auto late = event.details.integer("late_rank")) attempt.rank = static_cast<int>(*late);
      if (event.kind == EventKind::failure && !attempt.told_code)
        if (auto code = event.details.integer("exit_code")) {
          attempt.told_code = static_cast<int>(*code);
          attempt.told = event.text;
        }
      if (event.kind == EventKind::corruption) attempt.corrupt_rank = event.details.integer("rank");
      attempt.says_it_is_done |= event.kind == EventKind::finish;
      attempt.says_it_leaves |= event.kind == EventKind::finish || event.kind == EventKind::stop;
      if (attempt.trained || (event.kind != EventKind::start && event.kind != EventKind::resume)) continue;
      attempt.trained = wall_now();
      attempt.from_step = event.step.value_or(1) - 1;
      double starting = seconds_between(spawned_, *attempt.trained);
      if (report_.attempts.empty()) {
        report_.first_start_seconds = seconds_between(began_, *attempt.trained);
        report_.first_step = attempt.from_step;
        outage_ = {};
        continue;
      }
      outage_.starting += starting;
      int64_t repeated = std::max<int64_t>(0, done_step_ - attempt.from_step);
      report_.steps_repeated += repeated;
      report_.lost += outage_;
      report_.attempts.back().lost = outage_;
      record({.kind = EventKind::restart,
              .step = attempt.from_step + 1,
              .text = fmt::format("attempt {} resumes from step {}, {} step{} to be done again, {:.1f} s lost",
                                  attempt.number, attempt.from_step, repeated, repeated == 1 ? "" : "s", outage_.sum()),
              .details = {{"attempt", attempt.number},
                          {"from_step", attempt.from_step},
                          {"steps_repeated", repeated},
                          {"seconds_lost", outage_.sum()},
                          {"seconds", EventJson{lost_json(outage_).dump()}}}});
      outage_ = {};
    }
  }

  // Nothing of an attempt may be there when the next one starts.
  void end_processes(ChildProcess& child, const Attempt& attempt) {
    bool elsewhere = request_.start.starter == Starter::srun || hosts_.are_named();
    bool living = attempt.cause.kind == CauseKind::hang || signals_.end_asked();
    if (living && elsewhere) {
      child.send(SIGTERM);
      for (auto until = SteadyClock::now() + kRemoteEnd; SteadyClock::now() < until && !child.wait(kPoll);) continue;
    }
    child.kill_all();
  }

  void conclude(Attempt& attempt) {
    const Cause& cause = attempt.cause;
    done_step_ = attempt.done_step;
    if (cause.kind != CauseKind::finished) blame(attempt, out_, log_.text_from(log_begin_));
    bool asked = asked_to_stop(), grown = std::exchange(regrows_, false);
    bool left_when_asked = cause.kind == CauseKind::stopped || cause.signal == SIGUSR1 ||
                           (signals_.end_asked() && cause.signal == SIGKILL);
    if (cause.kind != CauseKind::finished && !((asked || grown) && left_when_asked)) report_failure(attempt);
    if (cause.kind == CauseKind::non_finite && !asked) judge_last_step(attempt);
    report_.attempts.push_back(attempt);
    if (cause.kind == CauseKind::finished) {
      is_over_ = true;
      return;
    }
    if (asked && left_when_asked)
      return stop(signals_.end_asked() ? "asked to stop, and ended at once"
                                       : fmt::format("asked to stop at step {}", attempt.done_step));
    if (asked && info_of(cause.kind).response == Response::retry)
      return stop(fmt::format("asked to stop; the run ended by {} before it had saved, and resumes from step {}",
                              cause.text(), std::max<int64_t>(0, newest_kept())));
    if (grown && left_when_asked) return;
    if (std::optional<std::chrono::milliseconds> wait = patience_with(attempt)) {
      for (const std::string& line : hosts_.note(attempt, policy_.failures_without_progress())) log_.say(line);
      if (*wait > 0ms) wait_for(*wait);
    }
  }

  // How long the next attempt waits; nothing where there is none.
  std::optional<std::chrono::milliseconds> patience_with(const Attempt& attempt) {
    const Cause& cause = attempt.cause;
    RetryPolicy::Decision next = policy_.after(cause, attempt.at_step, newest_kept());
    if (next.retry) return next.wait;
    give_up(cause.as_exit_code(),
            fmt::format("{}: {}{}", cause.text(), next.why,
                        cause.kind == CauseKind::reproducible_non_finite ? "; " + cause.detail : ""));
    return std::nullopt;
  }

  // An error of the supervisor, not of the run (a directory that cannot be listed, a process that cannot be started),
  // may not occur the next time.
  void outlive(int64_t number, const std::runtime_error& error) {
    log_.say(error.what());
    Attempt attempt{.number = number, .started = wall_now(), .ended = wall_now(), .done_step = done_step_};
    attempt.cause = {.kind = CauseKind::run_failed, .exit_code = number_of(ExitCode::run_failed)};
    if (report_.attempts.empty() || report_.attempts.back().number < number) report_.attempts.push_back(attempt);
    if (asked_to_stop()) return;
    std::optional<std::chrono::milliseconds> wait = patience_with(attempt);
    if (wait && *wait > 0ms) wait_for(*wait);
  }

  // Hardware, or data and software? The policy of a run that was not finite follows from it.
  void judge_last_step(Attempt& attempt) {
    std::optional<int64_t> step = first_non_finite_step(out_);
    if (request_.replay_limit == 0ms || !step) return;
    WallTime from = wall_now();
    StepJudge judge(request_, hosts_, [this] { return asked_to_stop(); });
    log_.say(fmt::format("step {} was not finite: it is run again {}, for at most {:.3g} s", *step, judge.place(),
                         std::chrono::duration<double>(request_.replay_limit).count()));
    StepVerdict verdict = judge.judge(*step);
    outage_.waiting += seconds_between(from, wall_now());
    log_.say(verdict.text);
    record(verdict.event());
    bool spike_policy = request_.run.train.spike.action != SpikeAction::none;
    if (verdict.cause == CauseKind::reproducible_non_finite && spike_policy) return;  // which it has a rule for
    attempt.cause.kind = verdict.cause;
    attempt.cause.detail = verdict.text;
    if (verdict.cause == CauseKind::faulty_device && !judge.host().empty()) {
      attempt.host = judge.host();
      hosts_.prove(attempt.host);
    }
  }

  void report_failure(const Attempt& attempt) {
    const Cause& cause = attempt.cause;
    std::string who = attempt.rank ? fmt::format("; rank {} on {}", *attempt.rank, attempt.host) : "";
    std::string why = attempt.told.empty() ? "" : fmt::format(": {}", attempt.told);
    std::string text = fmt::format("attempt {} failed at step {}: {}{}{}", attempt.number,
                                   std::max(attempt.at_step, attempt.done_step), cause.text(), who, why);
    log_.say(text);
    EventDetails details{{"attempt", attempt.number}, {"cause", std::string(info_of(cause.kind).name)}};
    if (cause.exit_code >= 0) details.set("exit_code", int64_t{cause.exit_code});
    if (cause.signal != 0) details.set("signal", int64_t{cause.signal});
    if (attempt.rank) details.set("rank", int64_t{*attempt.rank});
    if (!attempt.host.empty()) details.set("host", attempt.host);
    record({.kind = EventKind::failure,
            .step = std::max(attempt.at_step, attempt.done_step),
            .text = text,
            .details = std::move(details)});
  }

  void wait_for(std::chrono::milliseconds time) {
    log_.say(fmt::format("next attempt in {:.3g} s", std::chrono::duration<double>(time).count()));
    WallTime from = wall_now();
    for (auto until = SteadyClock::now() + time; SteadyClock::now() < until && !asked_to_stop();)
      std::this_thread::sleep_for(std::min<SteadyClock::duration>(kPoll, until - SteadyClock::now()));
    outage_.waiting += seconds_between(from, wall_now());
  }

  void finish_report() {
    report_.seconds = seconds_between(began_, wall_now());
    report_.last_step = std::max(report_.first_step, last_metrics_step(out_));
    report_.productive_seconds = productive_seconds(out_, report_.first_step);
    std::optional<WallTime> last_step = last_step_time(out_);
    bool trained_to_the_end = !report_.attempts.empty() && report_.attempts.back().trained;
    if (report_.outcome == ExitCode::finished && last_step && trained_to_the_end) {
      WallTime now = wall_now();
      report_.end_seconds = seconds_between(time_within(*last_step, clock_.set_by(), began_, now), now);
    }
    // The last attempt's end is no interruption where the run finished or was stopped.
    if (report_.outcome != ExitCode::finished && report_.outcome != ExitCode::stopped) {
      report_.lost += outage_;
      if (!report_.attempts.empty()) report_.attempts.back().lost = outage_;
    }
  }

  WallTime wall_now() const { return clock_.now(); }

  const SuperviseRequest& request_;
  const StopSignals& signals_;
  SteadyWall clock_;
  fs::path out_;
  RunLock lock_;
  RunLog log_;
  EventLog events_;
  int64_t newest_seen_ = -1;  // checkpoint, by its step
  RetryPolicy policy_;
  SuspectHosts hosts_;
  RunReport report_;
  LostSeconds outage_;
  WallTime began_, spawned_;
  int64_t done_step_ = 0;
  int64_t active_ranks_ = 0;
  int64_t log_begin_ = 0;  // of the attempt's own output in run.log
  bool is_over_ = false, is_smaller_ = false, was_smaller_ = false, regrows_ = false;
};

}  // namespace

RunReport supervise(const SuperviseRequest& request, const StopSignals& signals) {
  return Supervisor(request, signals).run();
}

}  // namespace sextant
