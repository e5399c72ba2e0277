// The lines of a file that grows while it is read. A line without its end is left for later; a file that was replaced,
// cut or written anew is read from its beginning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sextant {

class LineTail {
 public:
  explicit LineTail(std::filesystem::path path) : path_(std::move(path)) {}

  enum class Change : uint8_t { none, grown, restarted, gone };

  // Reads at most about `budget` bytes and hands over every whole line, without its end. `restart` is called before
  // the first line of a file that is not the continuation of what was read. Lines longer than a mebibyte are left out.
  Change read(size_t budget, const std::function<void()>& restart, const std::function<void(std::string_view)>& line);

  bool has_more() const { return has_more_; }     // the budget ended before the file did
  int64_t modified() const { return modified_; }  // seconds since 1970; 0: no file
  const std::filesystem::path& path() const { return path_; }

 private:
  struct FileState {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, seconds = 0, nanoseconds = 0;
    bool operator==(const FileState&) const = default;
  };

  bool continues(int fd, const FileState& now) const;
  void forget();

  std::filesystem::path path_;
  FileState seen_;
  int64_t offset_ = 0, modified_ = 0;
  std::string pending_;  // a line that has no end yet
  std::string before_;   // the bytes before offset_, to recognise the file by
  bool skips_line_ = false, has_more_ = false;
};

}  // namespace sextant
