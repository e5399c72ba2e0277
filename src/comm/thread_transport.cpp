#include "comm/thread_transport.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/message.h"
#include "comm/tags.h"

namespace sextant {
namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

// unused → posted (waits for its partner) → copying → done → unused; or unused → copying for the one who comes second.
enum class Phase : uint8_t { unused, posted, copying, done };

// One call of send or receive. Changed under the hub's lock; `phase` is read without it by a waiter.
struct Message {
  std::atomic<Phase> phase{Phase::unused};
  MessageFacts facts;
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  Clock::time_point due;              // of a receive when messages are delayed: not delivered before
  Clock::time_point posted_at;        // only kept when messages are delayed
  int32_t slot = 0;
  Message* next = nullptr;  // in a mailbox or among the unused
  std::condition_variable changed;
};

// Unmatched messages between two ranks: sends that one has posted, or receives that the other has posted. Oldest first.
// All entries of one tag have the same direction.
class Mailbox {
 public:
  void put(Message& message) {
    message.next = nullptr;
    (last_ ? last_->next : first_) = &message;
    last_ = &message;
  }

  // The oldest message with this direction and tag, taken out; null when there is none.
  Message* take(Direction direction, int tag) {
    Message* before = nullptr;
    for (Message* at = first_; at; before = at, at = at->next) {
      if (at->facts.direction != direction || at->facts.tag != tag) continue;
      (before ? before->next : first_) = at->next;
      if (last_ == at) last_ = before;
      return at;
    }
    return nullptr;
  }

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

// A waiter looks this long before it sleeps: a few times what it costs to be woken. It offers its core at every look,
// for the rank it waits for may need that very core; a loop that keeps the core was slower than no loop at all on a
// busy machine.
constexpr std::chrono::microseconds kLook{20};

// A core that others want does not come back from an offer before they have used up their time slices. After such an
// offer, as many waits sleep at once: whoever sleeps is scheduled as soon as it is woken.
constexpr std::chrono::microseconds kCoreWanted{200};
constexpr int kWaitsWithoutLook = 500;

// How often a waiter looks at how long it has waited.
constexpr std::chrono::milliseconds kGlance{250};

}  // namespace

struct ThreadHub::State {
  State(int ranks, std::chrono::milliseconds timeout);

  // From one rank to another.
  Mailbox& mailbox(int from, int to) {
    return mailboxes[static_cast<size_t>(to) * ranks.size() + static_cast<size_t>(from)];
  }

  // All with the lock held.
  void end_run(Lock& lock, const std::string& new_reason, ExitCode new_code);
  void until_no_copy(Lock& lock);
  StatusSnapshot seen(int rank) const;
  [[noreturn]] void throw_ended(Lock& lock, const std::string& place);

  std::chrono::milliseconds delay;

  std::mutex mutex;
  std::vector<std::unique_ptr<RankTransport>> ranks;
  std::vector<Mailbox> mailboxes;
  std::atomic<bool> ended{false};
  std::string reason;
  ExitCode code = ExitCode::run_failed;
  int copies = 0;                          // being made at this moment, outside the lock
  std::atomic<int> waits_without_look{0};  // still to come
  std::condition_variable copy_made;
};

class ThreadHub::RankTransport : public Transport {
 public:
  RankTransport(State& hub, int rank, int ranks, std::chrono::milliseconds timeout)
      : Transport(timeout), hub_(hub), rank_(rank), size_(ranks) {
    // Enough for every rank's collectives on a few lanes; how many are under way at once depends on timing.
    while (static_cast<int>(messages_.size()) < std::max(64, 8 * ranks)) add_message();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Ticket send(int to, int tag, std::span<const std::byte> bytes) override;
  Ticket receive(int from, int tag, std::span<std::byte> bytes) override;
  void wait(Ticket ticket) override;

  void wake_all() {
    for (Message& message : messages_) message.changed.notify_all();
  }

 private:
  void end_run(const std::string& reason, ExitCode code) override;
  void add_message();
  Message& take_unused();
  void give_back(Message& message);
  MessageFacts facts_of(Direction direction, int peer, int tag, size_t bytes) const;
  Ticket post(Lock& lock, Message& message);
  void copy(Lock& lock, Message& send, Message& receive);
  void look_for(const Message& message) const;
  void sleep_for(Lock& lock, Message& message);
  bool sleep_at_most(Lock& lock, Message& message, std::chrono::milliseconds timeout);
  void sleep_until_due(Lock& lock, Message& message);

  State& hub_;
  int rank_, size_;
  std::deque<Message> messages_;  // by slot; a deque, for they never move
  Message* unused_ = nullptr;
};

ThreadHub::State::State(int count, std::chrono::milliseconds timeout) : delay(message_delay_from_environment()) {
  BUG_IF(count < 1, "{} ranks", count);
  mailboxes.resize(static_cast<size_t>(count) * static_cast<size_t>(count));
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(std::make_unique<RankTransport>(*this, rank, count, timeout));
}

void ThreadHub::State::end_run(Lock& lock, const std::string& new_reason, ExitCode new_code) {
  if (!ended) {
    reason = new_reason;
    code = new_code;
    ended = true;
    for (auto& rank : ranks) rank->wake_all();
  }
  until_no_copy(lock);
}

// Once the run has ended no copy begins. When those under way are made, every rank may free its bytes.
void ThreadHub::State::until_no_copy(Lock& lock) {
  while (copies > 0) copy_made.wait(lock);
}

void ThreadHub::State::throw_ended(Lock& lock, const std::string& place) {
  until_no_copy(lock);
  throw RunEnded(place, ended_text(reason), "", code);
}

StatusSnapshot ThreadHub::State::seen(int rank) const {
  return ranks[static_cast<size_t>(rank)]->rank_status().seen();
}

void ThreadHub::RankTransport::add_message() {
  Message& message = messages_.emplace_back();
  message.slot = static_cast<int32_t>(messages_.size() - 1);
  give_back(message);
}

Message& ThreadHub::RankTransport::take_unused() {
  if (!unused_) add_message();
  Message& message = *unused_;
  unused_ = message.next;
  return message;
}

void ThreadHub::RankTransport::give_back(Message& message) {
  message.phase.store(Phase::unused, std::memory_order_relaxed);
  message.next = unused_;
  unused_ = &message;
}

MessageFacts ThreadHub::RankTransport::facts_of(Direction direction, int peer, int tag, size_t bytes) const {
  BUG_IF(peer < 0 || peer >= size_, "rank {} has no peer {} among {} ranks", rank_, peer, size_);
  return {.direction = direction, .rank = rank_, .peer = peer, .tag = tag, .bytes = bytes};
}

Ticket ThreadHub::RankTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  MessageFacts facts = facts_of(Direction::send, to, tag, bytes.size());
  Lock lock(hub_.mutex);
  if (hub_.ended) hub_.throw_ended(lock, here());
  Message& message = take_unused();
  message.facts = facts;
  message.source = bytes.data();
  return post(lock, message);
}

Ticket ThreadHub::RankTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  MessageFacts facts = facts_of(Direction::receive, from, tag, bytes.size());
  Lock lock(hub_.mutex);
  if (hub_.ended) hub_.throw_ended(lock, here());
  Message& message = take_unused();
  message.facts = facts;
  message.target = bytes.data();
  return post(lock, message);
}

Ticket ThreadHub::RankTransport::post(Lock& lock, Message& message) {
  bool sends = message.facts.direction == Direction::send;
  if (hub_.delay.count() > 0) message.posted_at = Clock::now();
  Mailbox& mailbox = sends ? hub_.mailbox(rank_, message.facts.peer) : hub_.mailbox(message.facts.peer, rank_);
  Message* partner = mailbox.take(sends ? Direction::receive : Direction::send, message.facts.tag);
  if (!partner) {
    message.phase.store(Phase::posted, std::memory_order_relaxed);
    mailbox.put(message);
  } else if (partner->facts.bytes != message.facts.bytes) {
    std::string reason = mismatch_reason(message.facts, partner->facts.bytes);
    hub_.end_run(lock, reason, ExitCode::internal_error);
    BUG("{}", reason);
  } else {
    int32_t slot = message.slot;
    copy(lock, sends ? message : *partner, sends ? *partner : message);
    lock.unlock();
    partner->changed.notify_all();  // outside the lock, so that the woken need not wait for it
    return {slot};
  }
  return {message.slot};
}

// Leaves the lock for the copy itself: ranks must not wait for each other's bytes.
void ThreadHub::RankTransport::copy(Lock& lock, Message& send, Message& receive) {
  if (hub_.delay.count() > 0) receive.due = send.posted_at + hub_.delay;
  send.phase.store(Phase::copying, std::memory_order_relaxed);
  receive.phase.store(Phase::copying, std::memory_order_relaxed);
  ++hub_.copies;
  lock.unlock();
  if (send.facts.bytes > 0) std::memcpy(receive.target, send.source, send.facts.bytes);
  lock.lock();
  --hub_.copies;
  send.phase.store(Phase::done, std::memory_order_release);
  receive.phase.store(Phase::done, std::memory_order_release);
  if (hub_.ended) hub_.copy_made.notify_all();
}

void ThreadHub::RankTransport::wait(Ticket ticket) {
  Lock lock(hub_.mutex);
  if (hub_.ended) hub_.throw_ended(lock, here());
  BUG_IF(ticket.slot < 0 || ticket.slot >= static_cast<int32_t>(messages_.size()), "rank {} has no message {}", rank_,
         ticket.slot);
  Message& message = messages_[static_cast<size_t>(ticket.slot)];
  BUG_IF(message.phase == Phase::unused, "rank {} waits twice for message {}", rank_, ticket.slot);
  if (message.phase != Phase::done) {
    lock.unlock();
    look_for(message);
    lock.lock();
  }
  sleep_for(lock, message);
  if (hub_.delay.count() > 0 && message.facts.direction == Direction::receive) sleep_until_due(lock, message);
  if (hub_.ended) hub_.throw_ended(lock, here());
  give_back(message);
}

void ThreadHub::RankTransport::look_for(const Message& message) const {
  if (hub_.waits_without_look.load(std::memory_order_relaxed) > 0) {
    hub_.waits_without_look.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  Clock::time_point now = Clock::now(), end = now + kLook;
  while (message.phase.load(std::memory_order_acquire) != Phase::done && !hub_.ended && now < end) {
    std::this_thread::yield();
    Clock::time_point back = Clock::now();
    if (back - now > kCoreWanted) hub_.waits_without_look.store(kWaitsWithoutLook, std::memory_order_relaxed);
    now = back;
  }
}

void ThreadHub::RankTransport::sleep_for(Lock& lock, Message& message) {
  if (message.phase == Phase::done || hub_.ended) return;
  const bool holds_up_rank = !in_background(message.facts.tag);
  if (holds_up_rank) rank_status().wait_for(message.facts.peer);  // and so it stays when the wait fails
  std::chrono::milliseconds timeout = timeout_for(message.facts.tag);
  auto over = [&] { return message.phase == Phase::done || hub_.ended; };
  // A copy that is being made is no reason to give up.
  if (!sleep_at_most(lock, message, timeout) && message.phase == Phase::copying) message.changed.wait(lock, over);
  if (message.phase == Phase::done && holds_up_rank) rank_status().waited_for(message.facts.peer);
  if (over()) return;
  std::string reason =
      timeout_reason(message.facts, timeout, rank_status().seen(), [this](int rank) { return hub_.seen(rank); });
  hub_.end_run(lock, reason, ExitCode::rank_lost);
  throw RunError("", reason, "", ExitCode::rank_lost);
}

// False when the time is up.
bool ThreadHub::RankTransport::sleep_at_most(Lock& lock, Message& message, std::chrono::milliseconds timeout) {
  auto over = [&] { return message.phase == Phase::done || hub_.ended; };
  WaitClock clock;
  for (Clock::duration waited{0}; waited < timeout; waited = clock.look())
    if (message.changed.wait_for(lock, std::min<Clock::duration>(kGlance, timeout - waited), over)) return true;
  return false;
}

void ThreadHub::RankTransport::sleep_until_due(Lock& lock, Message& message) {
  message.changed.wait_until(lock, message.due, [&] { return hub_.ended.load(); });
}

void ThreadHub::RankTransport::end_run(const std::string& reason, ExitCode code) {
  Lock lock(hub_.mutex);
  hub_.end_run(lock, reason, code);
}

ThreadHub::ThreadHub(int ranks, std::chrono::milliseconds timeout) : state_(std::make_unique<State>(ranks, timeout)) {}
ThreadHub::~ThreadHub() = default;

Transport& ThreadHub::transport(int rank) {
  BUG_IF(rank < 0 || rank >= static_cast<int>(state_->ranks.size()), "no rank {}", rank);
  return *state_->ranks[static_cast<size_t>(rank)];
}

}  // namespace sextant
