// Work that several ranks take part in, where one of them fails.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "comm/transport.h"

namespace sextant {

// The first thing that goes wrong is kept; the messages that others wait for go on.
inline void try_to(std::string& failure, const std::function<void()>& work) {
  try {
    if (failure.empty()) work();
  } catch (const RunEnded&) {
    throw;
  } catch (const std::runtime_error& error) {
    failure = error.what();
  }
}

}  // namespace sextant
