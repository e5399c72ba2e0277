// Files, whole: read, map, and write so that a crash never leaves half a file under the final name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/mapping_guard.h"

namespace sextant {

// A descriptor of a regular file, or of a pipe that the shell made for <(command) or /dev/stdin. UserError when it
// cannot be opened, and for what might never end or answer: named pipes, devices.
int open_for_reading(const std::filesystem::path& path);

// The whole file. UserError when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes to a temporary name, flushes to disk, renames. RunError (disk full, no permission) leaves what was there. A
// link at `path` is replaced, not followed.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Removes what write_file_atomically left in a directory when its process was killed. For the owner of the directory: a
// file that somebody is writing there at this moment would go too.
void remove_temporary_files(const std::filesystem::path& directory);

// fsync of a file or directory; RunError on failure.
void flush_to_disk(const std::filesystem::path& path);

// A file mapped read-only. UserError when it cannot be opened. One that gets shorter while it is mapped ends the
// process with a message when what is gone is touched (mapping_guard.h).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappingGuard guard_;
};

// Notices that a file in use has become shorter, before a reader of its mapping does: that would end the process, and
// between the new end and the end of its page a mapping reads as zeros without any sign.
class SizeWatch {
 public:
  explicit SizeWatch(const std::filesystem::path& path);  // UserError when it cannot be opened
  ~SizeWatch();
  SizeWatch(SizeWatch&& other) noexcept;
  SizeWatch& operator=(SizeWatch&& other) noexcept;

  void check() const;  // RunError when the file is shorter than it was; costs one system call

 private:
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace sextant
