// Interruptions: whether a system call that a signal interrupted (EINTR) is made again. So often at most: one that is
// interrupted every time never ends.
#pragma once

#include <cerrno>

namespace sextant {

class Interruptions {
 public:
  // Asked when a call has failed.
  bool may_try_again() { return errno == EINTR && ++count_ < kMost; }
  void passed() { count_ = 0; }  // it has got on

 private:
  static constexpr int kMost = 1000;  // in a row
  int count_ = 0;
};

}  // namespace sextant
