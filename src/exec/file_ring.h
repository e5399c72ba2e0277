// FileRing: reads and writes of a file through io_uring, in pieces of which many are under way at once: a disk reaches
// its rate only with many requests in its queue. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace sextant {

enum class FileAccess : uint8_t { read, write };

// Where a transfer stopped.
struct FileFailure {
  int error = 0;       // of errno; 0: the file took or gave fewer bytes than asked for
  int64_t offset = 0;  // in the file
};

class FileRing {
 public:
  FileRing();  // UserError in a build without liburing, and where the kernel does not let this process use io_uring
  ~FileRing();
  FileRing(const FileRing&) = delete;
  FileRing& operator=(const FileRing&) = delete;

  // Moves all bytes, or says why not; then none of them is under way any more. Address, size and offset are multiples
  // of kFileBlock. Allocates nothing.
  std::optional<FileFailure> move(FileAccess access, int descriptor, std::byte* data, int64_t bytes, int64_t offset);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant
