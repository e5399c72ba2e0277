#include "comm/message.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"

namespace sextant {

namespace {

// "; rank 3 was last seen in step 7, waiting for rank 1; rank 1 was last seen …", until one waits for nobody or for one
// who was named.
std::string chain_from(int first, int waiting, const StatusLookup& status_lookup) {
  std::string text;
  std::set<int> named{waiting};
  for (int rank = first; rank >= 0 && named.insert(rank).second;) {
    StatusSnapshot snapshot = status_lookup(rank);
    if (snapshot.text().empty()) break;
    text += fmt::format("; rank {} was last seen {}", rank, snapshot.text());
    if (snapshot.waiting_for >= 0) text += fmt::format(", waiting for rank {}", snapshot.waiting_for);
    rank = snapshot.waiting_for;
  }
  return text;
}

}  // namespace

std::string timeout_reason(const MessageFacts& message, std::chrono::milliseconds waited, const StatusSnapshot& here,
                           const StatusLookup& status_lookup) {
  double seconds = std::chrono::duration<double>(waited).count();
  std::string where = here.text();
  std::string text =
      fmt::format("rank {} waited {} s{}{} for ", message.rank, seconds, where.empty() ? "" : " ", where);
  if (message.direction == Direction::receive)
    text += fmt::format("a message from rank {} (tag {}, {} bytes) that did not come", message.peer, message.tag,
                        message.bytes);
  else
    text += fmt::format("rank {} to take a message (tag {}, {} bytes)", message.peer, message.tag, message.bytes);
  return status_lookup ? text + chain_from(message.peer, message.rank, status_lookup) : text;
}

std::string mismatch_reason(const MessageFacts& message, size_t met) {
  bool sends = message.direction == Direction::send;
  return fmt::format("rank {} sends {} bytes to rank {} on tag {}, which expects {}",
                     sends ? message.rank : message.peer, sends ? message.bytes : met,
                     sends ? message.peer : message.rank, message.tag, sends ? met : message.bytes);
}

std::string ended_text(const std::string& reason) {
  return fmt::format("the run was ended: {}", reason);
}

std::chrono::steady_clock::duration WaitClock::look() {
  constexpr std::chrono::steady_clock::duration kLongestGap =
      std::chrono::milliseconds(300);  // a little more than waiters leave
  auto now = std::chrono::steady_clock::now();
  waited_ += std::min(now - last_, kLongestGap);
  last_ = now;
  return waited_;
}

std::chrono::milliseconds message_delay_from_environment() {
  const char* given = std::getenv("SEXTANT_MESSAGE_DELAY_MS");
  if (given == nullptr || *given == '\0') return std::chrono::milliseconds(0);
  constexpr int kLongest = 60'000;
  std::string_view text = given;
  int delay = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), delay);
  if (error != std::errc() || end != text.data() + text.size() || delay < 0 || delay > kLongest)
    throw UserError({.place = "SEXTANT_MESSAGE_DELAY_MS",
                     .got = fmt::format("cannot use \"{}\"", text),
                     .expected = fmt::format("whole milliseconds from 0 to {}", kLongest),
                     .hint = "Unset it: it is for tests and benchmarks."});
  return std::chrono::milliseconds(delay);
}

}  // namespace sextant
