// A file written piece by piece that appears under its name only when it is whole: until commit() it has a temporary
// name, and is removed if it is never committed. RunError (disk full, no permission) leaves what was there.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace sextant {

class AppendedFile {
 public:
  explicit AppendedFile(std::filesystem::path path);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void rewrite_front(std::span<const std::byte> bytes);  // the first bytes, which were written before
  void flush();                                          // to disk; nothing may be written afterwards
  void commit();                                         // flush, unless done, and rename

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail(std::string_view doing) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::unique_ptr<std::FILE, Close> file_;
  bool committed_ = false;
};

}  // namespace sextant
