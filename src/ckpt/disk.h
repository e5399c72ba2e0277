// Files on the way to disk. Every failure is a RunError that says what to do; nothing saved before is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace sextant {

// An open file or directory.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// `error` is an errno.
[[noreturn]] void throw_disk_error(const std::filesystem::path& path, std::string_view doing, int error);

// fresh: what was there is dropped. shared: several writers fill one file, each its own bytes; any of them may be
// first.
enum class Creation { fresh, shared };

// A file of known size, written at offsets, in any order and from any thread. The space is reserved when it is opened,
// so a full disk shows before the first byte, where the file system can do so.
class OutputFile {
 public:
  OutputFile(std::filesystem::path path, int64_t size, Creation creation);

  void write_at(int64_t offset, std::span<const std::byte> bytes);
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace sextant
