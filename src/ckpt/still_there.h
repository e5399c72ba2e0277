// Whether an open file is still where it was opened: somebody may have removed or moved it, or a directory above it.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "ckpt/disk.h"

namespace sextant {

// True also where that cannot be told at this moment.
inline bool is_still_at(const Descriptor& file, const std::filesystem::path& path) {
  struct stat about {};
  if (file.is_open() && ::fstat(file.get(), &about) == 0 && about.st_nlink == 0) return false;
  // Network file systems keep a removed file under another name while it is open.
  return ::stat(path.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

}  // namespace sextant
