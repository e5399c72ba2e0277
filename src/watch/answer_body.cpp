#include "watch/answer_body.h"

namespace sextant {

std::string whole_body(const BodyPieces& pieces) {
  std::string out;
  while (pieces(out)) {
  }
  return out;
}

AnswerBody::Made AnswerBody::make(std::string& out) {
  using Clock = std::chrono::steady_clock;
  size_t before = out.size();
  Clock::time_point begin = Clock::now();
  bool more = true;
  while (more && out.size() - before < kPortion && Clock::now() - begin < kSlice) more = pieces_(out);
  auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
  size_t made = out.size() - before;
  if (made > left_.bytes || took > left_.making) return Made::beyond_budget;
  left_.bytes -= made;
  left_.making -= took;
  return more ? Made::part : Made::all;
}

}  // namespace sextant
