// Environments in which calls of a program fail, or its wall clock jumps (error_shim.cpp), for the shell.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "checkout.h"
#include "durability/disk_log.h"

namespace sextant {

inline constexpr bool kErrorShimWorks = kDiskShimWorks;

inline std::string error_shim() {  // built beside the other
  return (std::filesystem::path(checkout::kDiskShim).parent_path() / "liberror_shim.so").string();
}

struct FailingCalls {
  std::string call;  // list, look, write or fallocate
  int error = 0;     // an errno
  std::string path;
  int from = 1, to = 1;  // which of them, from 1
  std::string counter;   // a file that is not there yet
};
inline std::string with_failing(const FailingCalls& c) {
  return fmt::format("SEXTANT_SHIM_ERROR={},{},{},{},{},{} LD_PRELOAD={}", c.call, c.error, c.path, c.from, c.to,
                     c.counter, error_shim());
}

inline std::string with_clock_jump(const std::string& once_there, int seconds) {
  return fmt::format("SEXTANT_SHIM_CLOCK={},{} LD_PRELOAD={}", once_there, seconds, error_shim());
}

}  // namespace sextant
