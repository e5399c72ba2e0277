#include "app/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/run_file.h"

namespace sextant {

namespace {

// Says that all was written, whatever became of it: a stream that fails would make fmt::print throw.
ssize_t write_or_drop(void*, const char* bytes, size_t count) {
  static std::atomic<bool> failed{false};
  if (!failed && !write_all(STDOUT_FILENO, {bytes, count}) && !failed.exchange(true))
    ::dprintf(STDERR_FILENO, "sextant: cannot write to standard output (%s); the run goes on without it\n",
              ::strerror(errno));
  return static_cast<ssize_t>(count);
}

}  // namespace

void outlive_standard_output() {
  ::signal(SIGPIPE, SIG_IGN);
  ::fflush(stdout);
  FILE* stream =
      ::fopencookie(nullptr, "w", {.read = nullptr, .write = write_or_drop, .seek = nullptr, .close = nullptr});
  if (!stream) return;  // no memory: output as before
  if (::isatty(STDOUT_FILENO) == 1) ::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  stdout = stream;  // the C library lets it be assigned, and flushes it at exit
}

void flush_standard_output() {
  errno = 0;
  if (::fflush(stdout) == 0 && ::ferror(stdout) == 0) return;
  if (errno == EPIPE) return;  // the reader has seen enough
  throw output_error(errno != 0 ? ::strerror(errno) : "an earlier write failed");
}

RunError output_error(std::string_view why) {
  return RunError("standard output", fmt::format("cannot write: {}", why),
                  "free some space, or send the output elsewhere; what was written is not complete");
}

bool terminal_has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value && *value) {
      std::string_view locale = value;
      return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
    }
  return false;
}

}  // namespace sextant
