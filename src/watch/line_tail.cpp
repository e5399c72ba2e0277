#include "watch/line_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/interruptions.h"

namespace sextant {

namespace {

constexpr size_t kReadBlock = 1 << 18, kLongestLine = 1 << 20, kRecognised = 128;

class TailDescriptor {
 public:
  // A link is not followed: the folder of a run must not lead to other files. Not blocking, for the case of a pipe.
  explicit TailDescriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~TailDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  TailDescriptor(const TailDescriptor&) = delete;
  TailDescriptor& operator=(const TailDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

bool LineTail::continues(int fd, const FileState& now) const {
  if (now.device != seen_.device || now.inode != seen_.inode || now.size < offset_) return false;
  std::string there(before_.size(), '\0');
  ssize_t got = ::pread(fd, there.data(), there.size(), offset_ - static_cast<int64_t>(before_.size()));
  return got == static_cast<ssize_t>(there.size()) && there == before_;
}

void LineTail::forget() {
  seen_ = {};
  offset_ = modified_ = 0;
  pending_.clear();
  before_.clear();
  skips_line_ = has_more_ = false;
}

LineTail::Change LineTail::read(size_t budget, const std::function<void()>& restart,
                                const std::function<void(std::string_view)>& line) {
  TailDescriptor file(path_);
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    bool was_there = seen_.inode != 0;
    forget();
    if (was_there) restart();
    return was_there ? Change::gone : Change::none;
  }
  FileState now{static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino), about.st_size,
                about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
  if (now == seen_ && !has_more_) return Change::none;
  Change change = Change::grown;
  if (seen_.inode != 0 && !continues(file.get(), now)) {
    forget();
    restart();
    change = Change::restarted;
  }
  seen_ = now;
  modified_ = now.seconds;
  std::vector<char> block(kReadBlock);
  bool any = false;
  has_more_ = true;
  Interruptions interruptions;
  for (size_t done = 0; done < budget;) {
    ssize_t got = ::pread(file.get(), block.data(), block.size(), offset_);
    if (got < 0 && interruptions.may_try_again()) continue;
    if (got <= 0) {
      has_more_ = false;
      break;
    }
    interruptions.passed();
    any = true;
    std::string_view text(block.data(), static_cast<size_t>(got));
    done += text.size();
    offset_ += got;
    before_.append(text.substr(text.size() - std::min(text.size(), kRecognised)));
    if (before_.size() > kRecognised) before_.erase(0, before_.size() - kRecognised);
    for (size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      if (skips_line_) {
        skips_line_ = false;
      } else if (pending_.empty()) {
        line(text.substr(0, end));
      } else {
        pending_.append(text.substr(0, end));
        line(pending_);
      }
      pending_.clear();
    }
    if (!skips_line_) pending_.append(text);
    if (pending_.size() > kLongestLine) {
      pending_.clear();
      skips_line_ = true;
    }
  }
  return any || change == Change::restarted ? change : Change::none;
}

}  // namespace sextant
