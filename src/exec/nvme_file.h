// NvmeFile: the bytes of a rank's nvme space. A file of the size planned, reserved on the disk when it is made, so that
// a full disk is found before the first step. It has no name in its directory: it goes with the process, however that
// ends, and a run that is started again reads its checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "exec/file_ring.h"

namespace sextant {

// How large the file is to be, and where. 0 bytes: there is none.
struct FileSpace {
  int64_t bytes = 0;
  std::string directory = {};  // offload.path
};

class NvmeFile {
 public:
  // `space.bytes` is a multiple of kFileBlock. UserError where no file can be made there, DoesNotFit where it is too
  // large for the disk; those of FileRing. The file's bytes are zero.
  explicit NvmeFile(const FileSpace& space);
  ~NvmeFile();
  NvmeFile(const NvmeFile&) = delete;
  NvmeFile& operator=(const NvmeFile&) = delete;

  int64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

  // Any bytes, by any thread; RunError when the disk fails. Where address, size and offset are multiples of kFileBlock
  // nothing is copied on the way. None allocates.
  void read(std::span<std::byte> to, int64_t offset);
  void write(std::span<const std::byte> from, int64_t offset);

 private:
  void create();
  void reserve();
  void move(FileAccess access, std::byte* data, int64_t bytes, int64_t offset);
  // The blocks of the file that hold some of the bytes, as many as there is room for.
  struct Blocks {
    int64_t begin, end;       // in the file
    int64_t skipped, usable;  // bytes before those that are meant, and how many of these there are
  };
  static Blocks blocks_around(int64_t offset, size_t bytes);

  struct FreeBlocks {
    void operator()(std::byte* blocks) const;
  };

  std::string directory_;
  int64_t bytes_;
  int descriptor_ = -1;
  std::mutex mutex_;  // of what follows
  FileRing ring_;
  std::unique_ptr<std::byte[], FreeBlocks> blocks_;  // that bytes pass through which do not lie in blocks
};

}  // namespace sextant
