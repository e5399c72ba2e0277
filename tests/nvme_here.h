// Whether this build and this kernel can keep values on NVMe: containers often forbid io_uring.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "exec/file_ring.h"

namespace sextant {

// Nothing where they can.
inline std::optional<std::string> why_no_nvme() {
  try {
    FileRing ring;
    return std::nullopt;
  } catch (const UserError& error) {
    return error.what();
  }
}

// Where runs of tests keep it: in memory where there is such a directory, for speed. That disks do as well is
// nvme_file_test.cpp's.
inline std::string nvme_directory() {
  const char* shared_memory = "/dev/shm";
  return ::access(shared_memory, W_OK) == 0 ? shared_memory : std::filesystem::temp_directory_path().string();
}

}  // namespace sextant
