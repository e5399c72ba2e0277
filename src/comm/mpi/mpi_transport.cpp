#include "comm/mpi/mpi_transport.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/exit_within.h"
#include "comm/launcher.h"
#include "comm/message.h"
#include "comm/tags.h"

namespace sextant {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAbortGrace{500};         // for the others to receive the abort, and to report it
constexpr milliseconds kTellingOthers{200};      // for our own reason to leave this process
constexpr size_t kPieceBytes = size_t{1} << 30;  // MPI counts in int

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<size_t>(length)};
}

int error_class(int code) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind;
}

// One call of send or receive: one piece per GiB, and before them a time stamp when messages are delayed.
struct Message {
  MessageFacts facts;
  std::vector<MPI_Request> requests;  // empty when unused
  std::vector<MPI_Status> statuses;
  int64_t sent_at_ns = 0;
  int32_t slot = 0;
  bool arrived = false;
};

// Message that a rank sends to the others when it ends the run.
struct Notice {
  ExitCode code = ExitCode::run_failed;
  std::array<char, 1020> reason{};
};

// Hosts agree on the wall clock, not on a steady one.
int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Large messages move on only while somebody looks. So a waiter looks all the time, but offers its core at every look,
// as long as the message may be on its way at 1 GB/s; then ever more rarely, which costs up to an eighth more time but
// no core.
void back_off(Clock::duration waited, size_t bytes) {
  Clock::duration on_its_way = std::chrono::microseconds(200) + std::chrono::nanoseconds(bytes);
  if (waited < on_its_way) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min<Clock::duration>(waited / 8, milliseconds(1)));
}

class MpiTransport : public Transport {
 public:
  MpiTransport(MpiSession& session, milliseconds timeout, StatusLookup status_lookup);
  ~MpiTransport() override;

  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }
  Ticket send(int to, int tag, std::span<const std::byte> bytes) override;
  Ticket receive(int from, int tag, std::span<std::byte> bytes) override;
  void wait(Ticket ticket) override;

 private:
  void end_run(const std::string& reason, ExitCode code) override;
  // All with the lock held: MPI is called by one thread at a time, which every MPI library can bear.
  Message& begin(const MessageFacts& facts);
  void begin_piece(Message& message, void* bytes, size_t count);
  void begin_pieces(Message& message, std::byte* bytes);
  Message& message_at(Ticket ticket);
  bool has_arrived(Message& message);
  void require_sizes(const Message& message);
  void listen();
  void end(const std::string& reason, ExitCode code);
  void notify_peers();
  void cancel_receives();
  void require(int code);
  [[noreturn]] void fail(const std::string& reason, ExitCode code);
  [[noreturn]] void throw_ended() const;

  MpiSession& session_;
  milliseconds delay_;
  StatusLookup status_lookup_;
  int largest_tag_ = 32767;
  MPI_Comm data_ = MPI_COMM_NULL, control_ = MPI_COMM_NULL;
  std::mutex mutex_;
  std::deque<Message> messages_;  // by slot; a deque, for MPI holds their addresses
  std::vector<int32_t> unused_;
  bool ended_ = false;
  std::string reason_;
  ExitCode code_ = ExitCode::run_failed;
  Notice heard_, told_;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
};

MpiTransport::MpiTransport(MpiSession& session, milliseconds timeout, StatusLookup status_lookup)
    : Transport(timeout),
      session_(session),
      delay_(message_delay_from_environment()),
      status_lookup_(std::move(status_lookup)) {
  MPI_Comm_dup(MPI_COMM_WORLD, &data_);
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);
  // Calls on several requests report to the world or to self, depending on the library.
  for (MPI_Comm each : {data_, control_, MPI_COMM_WORLD, MPI_COMM_SELF})
    MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
  int* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(data_, MPI_TAG_UB, &bound, &known);
  if (known) largest_tag_ = *bound;
  MPI_Irecv(&heard_, sizeof heard_, MPI_BYTE, MPI_ANY_SOURCE, 0, control_, &hearing_);
}

MpiTransport::~MpiTransport() {
  if (hearing_ != MPI_REQUEST_NULL) MPI_Cancel(&hearing_);
  if (ended_) return;  // the session ends every process; nothing here may wait for another
  MPI_Wait(&hearing_, MPI_STATUS_IGNORE);
  MPI_Comm_free(&control_);
  MPI_Comm_free(&data_);
}

Message& MpiTransport::begin(const MessageFacts& facts) {
  BUG_IF(facts.peer < 0 || facts.peer >= size(), "rank {} has no peer {} among {} ranks", rank(), facts.peer, size());
  BUG_IF(facts.tag < 0 || facts.tag > largest_tag_, "tag {} is beyond {}, the largest of this MPI", facts.tag,
         largest_tag_);
  if (ended_) throw_ended();
  if (unused_.empty()) {
    unused_.push_back(static_cast<int32_t>(messages_.size()));
    messages_.emplace_back().slot = unused_.back();
  }
  Message& message = messages_[static_cast<size_t>(unused_.back())];
  unused_.pop_back();
  message.facts = facts;
  message.arrived = false;
  message.requests.clear();
  return message;
}

void MpiTransport::begin_piece(Message& message, void* bytes, size_t count) {
  const MessageFacts& facts = message.facts;
  MPI_Request& request = message.requests.emplace_back(MPI_REQUEST_NULL);
  require(facts.direction == Direction::send
              ? MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, facts.peer, facts.tag, data_, &request)
              : MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, facts.peer, facts.tag, data_, &request));
}

void MpiTransport::begin_pieces(Message& message, std::byte* bytes) {
  if (delay_.count() > 0) {
    message.sent_at_ns = wall_clock_ns();  // a receive overwrites it with its sender's
    begin_piece(message, &message.sent_at_ns, sizeof(message.sent_at_ns));
  }
  size_t done = 0;
  do {
    size_t count = std::min(kPieceBytes, message.facts.bytes - done);
    begin_piece(message, bytes + done, count);
    done += count;
  } while (done < message.facts.bytes);
  message.statuses.resize(message.requests.size());
}

Ticket MpiTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  std::lock_guard lock(mutex_);
  Message& message = begin({Direction::send, rank(), to, tag, bytes.size()});
  begin_pieces(message, const_cast<std::byte*>(bytes.data()));  // MPI only reads it
  return {message.slot};
}

Ticket MpiTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  std::lock_guard lock(mutex_);
  Message& message = begin({Direction::receive, rank(), from, tag, bytes.size()});
  begin_pieces(message, bytes.data());
  return {message.slot};
}

Message& MpiTransport::message_at(Ticket ticket) {
  BUG_IF(ticket.slot < 0 || ticket.slot >= static_cast<int32_t>(messages_.size()), "rank {} has no message {}", rank(),
         ticket.slot);
  Message& message = messages_[static_cast<size_t>(ticket.slot)];
  BUG_IF(message.requests.empty(), "rank {} waits twice for message {}", rank(), ticket.slot);
  return message;
}

bool MpiTransport::has_arrived(Message& message) {
  if (!message.arrived) {
    int all = 0;
    int code =
        MPI_Testall(static_cast<int>(message.requests.size()), message.requests.data(), &all, message.statuses.data());
    if (error_class(code) == MPI_ERR_IN_STATUS)
      for (const MPI_Status& status : message.statuses)
        if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) code = status.MPI_ERROR;
    const MessageFacts& facts = message.facts;
    if (error_class(code) == MPI_ERR_TRUNCATE) {
      std::string reason = fmt::format("rank {} sends more bytes to rank {} on tag {} than the {} it expects",
                                       facts.peer, facts.rank, facts.tag, facts.bytes);
      end(reason, ExitCode::internal_error);
      BUG("{}", reason);
    }
    require(code);
    if (!all) return false;
    if (facts.direction == Direction::receive) require_sizes(message);
    message.arrived = true;
  }
  bool delayed = delay_.count() > 0 && message.facts.direction == Direction::receive;
  return !delayed || wall_clock_ns() >= message.sent_at_ns + std::chrono::nanoseconds(delay_).count();
}

void MpiTransport::require_sizes(const Message& message) {
  size_t stamp = delay_.count() > 0 ? sizeof(message.sent_at_ns) : 0, total = 0;
  for (const MPI_Status& status : message.statuses) {
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    total += static_cast<size_t>(std::max(count, 0));
  }
  if (total == message.facts.bytes + stamp) return;
  std::string reason = mismatch_reason(message.facts, total - std::min(stamp, total));
  end(reason, ExitCode::internal_error);
  BUG("{}", reason);
}

void MpiTransport::wait(Ticket ticket) {
  WaitClock clock;
  Clock::duration waited{0};
  size_t bytes = 0;
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (ended_) throw_ended();
      Message& message = message_at(ticket);
      if (has_arrived(message)) {
        if (!in_background(message.facts.tag)) rank_status().waited_for(message.facts.peer);
        message.requests.clear();
        unused_.push_back(message.slot);
        return;
      }
      bytes = message.facts.bytes;
      if (!in_background(message.facts.tag))
        rank_status().wait_for(message.facts.peer);  // and so it stays when the wait fails
      listen();
      if (ended_) throw_ended();
      milliseconds timeout = timeout_for(message.facts.tag);
      waited = clock.look();
      if (!message.arrived && waited > timeout)
        fail(timeout_reason(message.facts, timeout, rank_status().seen(), status_lookup_), ExitCode::rank_lost);
    }
    back_off(waited, bytes);
  }
}

// Has another rank ended the run?
void MpiTransport::listen() {
  int heard = 0;
  if (MPI_Test(&hearing_, &heard, MPI_STATUS_IGNORE) != MPI_SUCCESS || !heard) return;
  ended_ = true;
  reason_ = heard_.reason.data();
  code_ = heard_.code;
  session_.fail_with(code_);
  cancel_receives();
}

void MpiTransport::end(const std::string& reason, ExitCode code) {
  if (!ended_) listen();  // the first reason counts
  if (ended_) return;
  ended_ = true;
  reason_ = reason;
  code_ = code;
  session_.fail_with(code);
  notify_peers();
  cancel_receives();
}

void MpiTransport::notify_peers() {
  told_.code = code_;
  std::strncpy(told_.reason.data(), reason_.c_str(), told_.reason.size() - 1);
  std::vector<MPI_Request> telling;
  for (int other = 0; other < size(); ++other)
    if (other != rank())
      MPI_Isend(&told_, sizeof told_, MPI_BYTE, other, 0, control_, &telling.emplace_back(MPI_REQUEST_NULL));
  int all = 0;
  for (Clock::time_point start = Clock::now(); !all && Clock::now() - start < kTellingOthers;
       back_off(Clock::now() - start, 0))
    if (MPI_Testall(static_cast<int>(telling.size()), telling.data(), &all, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
}

// So that nothing arrives in bytes which the unwinding rank frees. A receive that cannot be cancelled is under way from
// a rank that may hang; it moves on only inside MPI calls, and after this none is made but the last.
void MpiTransport::cancel_receives() {
  for (Message& message : messages_) {
    if (message.facts.direction != Direction::receive || message.requests.empty() || message.arrived) continue;
    for (MPI_Request& request : message.requests)
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    int all = 0;
    MPI_Testall(static_cast<int>(message.requests.size()), message.requests.data(), &all, MPI_STATUSES_IGNORE);
  }
}

void MpiTransport::end_run(const std::string& reason, ExitCode code) {
  std::lock_guard lock(mutex_);
  end(reason, code);
}

void MpiTransport::require(int code) {
  if (code != MPI_SUCCESS) fail(fmt::format("rank {}: MPI failed: {}", rank(), error_text(code)), ExitCode::rank_lost);
}

void MpiTransport::fail(const std::string& reason, ExitCode code) {
  end(reason, code);
  if (reason_ != reason) throw_ended();
  throw RunError("", reason, "", code);
}

void MpiTransport::throw_ended() const {
  throw RunEnded(here(), ended_text(reason_), "", code_);
}

}  // namespace

MpiSession::MpiSession() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  host_.assign(name.data(), static_cast<size_t>(length));
  int expected = launched_processes();
  if (provided >= MPI_THREAD_SERIALIZED && (expected <= 1 || expected == size_)) {
    meet_neighbours();
    return;
  }
  MPI_Finalize();
  if (provided < MPI_THREAD_SERIALIZED)
    throw UserError(
        {.place = "MPI", .got = "this library serves one thread only", .expected = "MPI_THREAD_SERIALIZED"});
  throw UserError(
      {.place = "MPI",
       .got = fmt::format("the launcher started {} processes, but MPI sees {}", expected, size_),
       .expected = "a launcher of the MPI library this program was built with",
       .hint = "With srun, try --mpi=pmix (srun --mpi=list shows what there is); else use the library's own mpirun."});
}

// A launcher may have given every rank cores of its own, or all of them the same: the cores that they have between them
// tell.
void MpiSession::meet_neighbours() {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &ranks_on_host_);
  cpu_set_t own, all;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  MPI_Allreduce(&own, &all, sizeof own, MPI_BYTE, MPI_BOR, host);
  MPI_Comm_free(&host);
  cores_per_rank_ = std::max(1, std::min(CPU_COUNT(&own), CPU_COUNT(&all) / ranks_on_host_));
}

void MpiSession::bound_end(milliseconds after_failure, milliseconds after_success) {
  after_failure_ = after_failure;
  after_success_ = after_success;
}

void MpiSession::fail_with(ExitCode code) {
  if (failure_.exchange(code) == ExitCode::finished) exit_within(after_failure_, code);
}

// Every rank passes MPI_Finalize before any of them ends. A launcher that sees the first end with a code other than 0
// (a run that was asked to stop) sends SIGTERM to the others: they are as good as gone, and must keep their code.
MpiSession::~MpiSession() {
  if (failure_ == ExitCode::finished) {
    exit_within(after_success_, success_);
    std::signal(SIGTERM, SIG_IGN);
    MPI_Finalize();
    return;
  }
  std::this_thread::sleep_for(kAbortGrace);
  MPI_Abort(MPI_COMM_WORLD, number_of(failure_));
  std::_Exit(number_of(failure_));
}

std::unique_ptr<Transport> make_mpi_transport(MpiSession& session, std::chrono::milliseconds timeout,
                                              StatusLookup status_lookup) {
  return std::make_unique<MpiTransport>(session, timeout, std::move(status_lookup));
}

}  // namespace sextant
