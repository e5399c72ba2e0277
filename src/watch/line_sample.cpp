#include "watch/line_sample.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "ckpt/disk.h"

namespace sextant {

void sample_lines(const std::filesystem::path& path, size_t count, size_t smallest,
                  const std::function<void(std::string_view)>& line) {
  constexpr size_t kPiece = 4096;  // a line and the one before it, as a rule
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  auto size = static_cast<size_t>(about.st_size);
  if (size < smallest || count < 2) return;
  std::string piece(kPiece, '\0');
  size_t behind = 0;  // the end of the last line taken
  for (size_t i = 0; i < count; ++i) {
    // The last piece ends with the file.
    size_t from = std::max(behind, (size - std::min(size, kPiece)) * i / (count - 1));
    ssize_t got = ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(from));
    if (got <= 0) return;
    std::string_view text(piece.data(), static_cast<size_t>(got));
    size_t begin = from == behind ? 0 : text.find('\n') + 1;
    bool is_last = i + 1 == count;
    if (from != behind && begin == 0) continue;  // no line begins here
    size_t end = is_last ? text.rfind('\n') : text.find('\n', begin);
    if (is_last && end != text.npos && end > begin) begin = std::max(begin, text.rfind('\n', end - 1) + 1);
    if (end == text.npos || end <= begin) continue;
    line(text.substr(begin, end - begin));
    behind = from + end + 1;
  }
}

}  // namespace sextant
