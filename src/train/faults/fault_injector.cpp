#include "train/faults/fault_injector.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "base/run_file.h"
#include "ckpt/disk.h"
#include "train/faults/layer_fault.h"
#include "train/faults/memory_fault.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::set<std::string> faults_that_struck(const fs::path& record) {
  std::set<std::string> struck;
  if (!is_there(record)) return struck;
  std::istringstream lines(read_file(record));
  for (std::string line; std::getline(lines, line);) struck.insert(line);
  return struck;
}

void flip_a_bit(Bound& bound) {
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::parameter || value.buffer < 0) continue;
    std::byte lowest{};
    bound.read(value, std::span(&lowest, 1));
    lowest ^= std::byte{1};
    return bound.write(value, std::span(&lowest, 1));
  }
}

[[noreturn]] void refuse_fault(const Fault& fault, const std::string& got, const std::string& expected) {
  throw UserError({.place = fault.text, .got = got, .expected = expected});
}

// A process of its own stops this one and lets it go on, in turns. It has no memory but its stack to touch: it was
// copied from a process with threads.
void throttle_process(int64_t percent) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kTurn = std::chrono::milliseconds(20), kLongest = std::chrono::seconds(2);
  pid_t throttled = ::getpid();
  pid_t child = ::fork();
  if (child != 0) return;
  ::close_range(0, ~0U, 0);  // the lock of the run, and what others wait for the end of
  auto sleep = [](std::chrono::nanoseconds time) {
    timespec spec{.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
    ::nanosleep(&spec, nullptr);
  };
  while (::getppid() == throttled) {
    Clock::time_point start = Clock::now();
    sleep(kTurn * (100 - percent) / 100);
    ::kill(throttled, SIGSTOP);
    // On a machine with much to do this process sleeps longer than it asked for: the share is that of what was.
    sleep(std::min(kLongest, std::chrono::nanoseconds(Clock::now() - start) * percent / (100 - percent)));
    ::kill(throttled, SIGCONT);
  }
  ::_exit(0);
}

constexpr float kFaded = 0x1p-20f;

// Weights are the same on ranks that hold the same: what changes them does so everywhere.
bool strikes_every_rank(FaultKind kind) {
  return kind == FaultKind::fades_layer || kind == FaultKind::grows_logits;
}

bool has_loss_scale(const Program& program) {
  const Value* scale = program.find("loss_scale");
  return scale != nullptr && scale->buffer >= 0;
}

// Between ranks that run the same Program; pipeline stages only send to each other.
bool has_collectives(const Program& program) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (!op.attrs.names("axes").empty() && op.attrs.integer_or("ranks", 1) > 1) return true;
  return false;
}

}  // namespace

FaultInjector::FaultInjector(const Parts& parts)
    : bound_(parts.bound),
      rank_status_(parts.rank_status),
      record_(parts.out / kInjectedFaultsFile),
      layers_(parts.layers),
      lose_local_checkpoints_(parts.lose_local_checkpoints) {
  if (parts.faults.empty()) return;
  std::set<std::string> struck = faults_that_struck(record_);
  std::map<std::string, int> times;
  for (const Fault& fault : parts.faults) {
    if (fault.rank >= parts.ranks)
      refuse_fault(fault,
                   fmt::format("rank {} of a run with {} rank{}", fault.rank, parts.ranks, parts.ranks == 1 ? "" : "s"),
                   fmt::format("a rank from 0 to {}", parts.ranks - 1));
    bool in_collective = fault.kind == FaultKind::aborts_in_collective || fault.kind == FaultKind::delays_sum ||
                         fault.kind == FaultKind::flips_message_bit;
    if (in_collective && parts.ranks == 1)
      refuse_fault(fault, "a run with one rank has no collectives", "a mesh of more ranks, or another fault");
    if (fault.kind == FaultKind::is_throttled && fault.amount > 95)
      refuse_fault(fault, fmt::format("{} percent", fault.amount), "1 to 95 percent");
    if (fault.kind == FaultKind::loses_node && !parts.local_checkpoints)
      refuse_fault(fault, "a run without local checkpoints loses none", "checkpoint.local_every above 0, or kill");
    bool cannot_flip = (fault.kind == FaultKind::flips_gemm_bit && !bound_.checks_gemms()) ||
                       (fault.kind == FaultKind::flips_message_bit && !bound_.checks_messages()) ||
                       (fault.kind == FaultKind::spoils_op && !bound_.is_observed_in_place());
    if (cannot_flip)
      refuse_fault(fault, "the kernels of this device make no faults on request", "device = \"cpu\", or corrupt");
    if (strikes_every_rank(fault.kind)) {
      if (fault.rank != 0)
        refuse_fault(fault, "weights of one rank", "no rank: it strikes all that hold the model's last layer");
      weights_of(fault);
    }
    int number = ++times[fault.text];
    if (fault.rank != bound_.rank() && !strikes_every_rank(fault.kind)) continue;
    if (fault.kind == FaultKind::spoils_gradients && !has_loss_scale(bound_.program()))
      refuse_fault(fault, fmt::format("rank {} computes no loss", fault.rank), "a rank of the last pipeline stage");
    if (fault.kind == FaultKind::spoils_op) require_op_of(fault, bound_);
    if (fault.kind == FaultKind::flips_message_bit && !has_collectives(bound_.program()))
      refuse_fault(fault, "this mesh has no collectives whose messages are checked", "mesh.dp, tp or cp above 1");
    std::string id = number == 1 ? fault.text : fmt::format("{} ({})", fault.text, number);
    if (!struck.contains(id)) pending_.push_back({fault, id});
  }
}

void FaultInjector::remember(const Pending& pending) const {
  Descriptor file(open_run_file(record_, O_WRONLY | O_APPEND));
  std::string line = pending.id + "\n";
  if (!file.is_open() || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fsync(file.get()) != 0)
    throw_disk_error(record_, "cannot write", errno);
}

// The run has gone back, and comes to these steps again; each fault strikes once.
void FaultInjector::leave_behind() {
  spoiled_step_ = op_fault_step_ = -1;
  flip_gemm_before_ = flip_message_before_ = 0;
  disk_full_before_.store(0, std::memory_order_relaxed);
}

void FaultInjector::before_step(int64_t step) {
  if (step <= last_step_) leave_behind();
  last_step_ = step;
  while (true) {
    auto due = std::ranges::find(pending_, step, [](const Pending& pending) { return pending.fault.step; });
    if (due == pending_.end()) break;
    Pending now = *due;
    pending_.erase(due);
    remember(now);
    strike(now.fault);
  }
  for (const Scaled& scaled : scaled_) scale_weights(bound_, scaled.weights, scaled.factor);
  if (!scaled_.empty() && bound_.has_checksums()) bound_.record_checksums();
}

// None where this rank holds no part of the layer.
std::vector<ValueId> FaultInjector::weights_of(const Fault& fault) const {
  const Program& program = bound_.program();
  const int64_t layer = layers_ - 1;
  std::vector<ValueId> weights =
      fault.kind == FaultKind::fades_layer ? output_weights(program, layer) : logit_weights(program, layer);
  if (weights.empty() && holds_layer(program, layer))
    refuse_fault(fault, fmt::format("layer {} reads no such weights as they are", layer),
                 "a model with attention and linears, not in fp8");
  if (!can_scale(program, weights))
    refuse_fault(fault, "weights in bf16 are not changed on request", "train.precision f32 or fp16");
  return weights;
}

void FaultInjector::slow_down(RankStatus& rank_status) const {
  if (slow_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms_));
  if (sum_delay_ms_ > 0) rank_status.delay_next_sum(sum_delay_ms_);
}

void FaultInjector::strike(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::throws:
      throw RunError("injected fault", fmt::format("{}: this rank was asked to fail", fault.text));
    case FaultKind::stalls:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case FaultKind::is_killed:
      std::raise(SIGKILL);
      return;
    case FaultKind::is_stopped:
      ::kill(::getpid(), SIGSTOP);  // the process, with all ranks that are its threads
      return;
    case FaultKind::corrupts:
      return flip_a_bit(bound_);
    case FaultKind::flips_memory_bit:
      return flip_state_bit(bound_, fault.amount);
    case FaultKind::flips_gemm_bit:
      flip_gemm_before_ = fault.step + fault.amount;
      return;
    case FaultKind::flips_message_bit:
      flip_message_before_ = fault.step + fault.amount;
      return;
    case FaultKind::spoils_gradients:
      spoiled_step_ = fault.step;
      return;
    case FaultKind::spoils_op:
      op_fault_.emplace(fault, nullptr);
      op_fault_step_ = fault.step;
      return;
    case FaultKind::is_slow:
      slow_ms_ = fault.amount;
      return;
    case FaultKind::has_slow_input:
      slow_input_ms_ = fault.amount;
      return;
    case FaultKind::delays_sum:
      sum_delay_ms_ = fault.amount;
      return;
    case FaultKind::is_throttled:
      return throttle_process(fault.amount);
    case FaultKind::fades_layer:
      scaled_.push_back({weights_of(fault), kFaded});
      return;
    case FaultKind::grows_logits:
      scaled_.push_back({weights_of(fault), 1 + static_cast<float>(fault.amount) / 100});
      return;
    case FaultKind::loses_node:
      lose_local_checkpoints_(fault.rank, static_cast<int>(fault.amount));
      std::raise(SIGKILL);
      return;
    case FaultKind::fills_disk:
      disk_full_from_.store(fault.step, std::memory_order_relaxed);
      disk_full_before_.store(fault.step + fault.amount, std::memory_order_relaxed);
      return;
    case FaultKind::aborts_in_collective:
      return abort_in_collective();
  }
}

// A thread looks at what the rank does and strikes when that is a collective. It holds on to nothing but the status,
// which lives as long as the rank does; the process ends before that.
void FaultInjector::abort_in_collective() {
  std::thread([&status = rank_status_] {
    for (;;) {
      StatusSnapshot seen = status.seen();
      if (seen.place.find(" over ") != seen.place.npos || seen.waiting_for >= 0) std::abort();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }).detach();
}

void FullDiskView::read(const Value&, std::span<std::byte>, int64_t) const {
  throw_disk_error(place_, "cannot write (injected fault)", ENOSPC);
}

}  // namespace sextant
