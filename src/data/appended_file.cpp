#include "data/appended_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace fs = std::filesystem;

AppendedFile::AppendedFile(fs::path path) : path_(std::move(path)), temporary_(path_) {
  temporary_ += fmt::format(".tmp-{}", ::getpid());
  file_.reset(std::fopen(temporary_.c_str(), "wbe"));
  if (!file_) fail("cannot create");
}

AppendedFile::~AppendedFile() {
  file_.reset();
  if (!committed_) ::unlink(temporary_.c_str());
}

void AppendedFile::write(std::span<const std::byte> bytes) {
  BUG_IF(!file_, "{} is written after flush()", path_.string());
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("cannot write");
}

void AppendedFile::rewrite_front(std::span<const std::byte> bytes) {
  BUG_IF(!file_, "{} is written after flush()", path_.string());
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("cannot write");
  write(bytes);
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail("cannot write");
}

void AppendedFile::flush() {
  if (!file_) return;
  if (std::fflush(file_.get()) != 0) fail("cannot write");
  if (::fsync(::fileno(file_.get())) != 0) fail("cannot flush to disk");
  if (std::fclose(file_.release()) != 0) fail("cannot close");
}

void AppendedFile::commit() {
  flush();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename into place");
  committed_ = true;
  flush_to_disk(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

void AppendedFile::fail(std::string_view doing) const {
  int why = errno;
  throw RunError(path_.string(), fmt::format("{}: {}", doing, std::strerror(why)),
                 why == ENOSPC ? "free some space; what was there before is untouched" : "");
}

}  // namespace sextant
