#include "comm/message.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace sextant {

std::string timeout_reason(const MessageFacts& message, std::chrono::milliseconds waited) {
  double seconds = std::chrono::duration<double>(waited).count();
  if (message.direction == Direction::receive)
    return fmt::format("rank {} waited {} s for a message from rank {} (tag {}, {} bytes) that did not come",
                       message.rank, seconds, message.peer, message.tag, message.bytes);
  return fmt::format("rank {} waited {} s for rank {} to take a message (tag {}, {} bytes)", message.rank, seconds,
                     message.peer, message.tag, message.bytes);
}

std::string mismatch_reason(const MessageFacts& message, size_t met) {
  bool sends = message.direction == Direction::send;
  return fmt::format("rank {} sends {} bytes to rank {} on tag {}, which expects {}",
                     sends ? message.rank : message.peer, sends ? message.bytes : met,
                     sends ? message.peer : message.rank, message.tag, sends ? met : message.bytes);
}

std::string ended_text(const std::string& reason) { return fmt::format("the run was ended: {}", reason); }

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
