// Files, whole: read, map, and write so that a crash never leaves half a file under the final name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sextant {

// A descriptor of a regular file, or of a pipe that the shell made for <(command) or /dev/stdin. UserError when it cannot be
// opened, and for what might never end or answer: named pipes, devices.
int open_for_reading(const std::filesystem::path& path);

// The whole file. UserError when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes to a temporary name, flushes to disk, renames. RunError (disk full, no permission) leaves what was there.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// fsync of a file or directory; RunError on failure.
void flush_to_disk(const std::filesystem::path& path);

// A file mapped read-only. UserError when it cannot be opened.
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
};

}  // namespace sextant
