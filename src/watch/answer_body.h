// The body of an answer that is made piece by piece while it is sent: one request holds neither the memory for all of
// its answer nor the server's thread until it is done.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace sextant {

// Appends the next piece; false where that was the last one.
using BodyPieces = std::function<bool(std::string&)>;

// All pieces at once, for a file.
std::string whole_body(const BodyPieces& pieces);

// Limits of one answer, in bytes and time.
struct AnswerBudget {
  size_t bytes = size_t{64} << 20;
  std::chrono::milliseconds making{10'000};  // of the server's thread
};

class AnswerBody {
 public:
  AnswerBody(BodyPieces pieces, AnswerBudget budget) : pieces_(std::move(pieces)), left_(budget) {}

  enum class Made : uint8_t { part, all, beyond_budget };
  // Appends about kPortion bytes, or what can be made within kSlice.
  Made make(std::string& out);

  static constexpr size_t kPortion = size_t{64} << 10;
  static constexpr std::chrono::milliseconds kSlice{5};

 private:
  BodyPieces pieces_;
  AnswerBudget left_;
};

}  // namespace sextant
