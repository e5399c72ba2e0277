#include "exec/nvme_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/interruptions.h"
#include "base/path_error.h"
#include "base/temporary_name.h"
#include "base/units.h"
#include "ir/memory_space.h"

namespace sextant {

namespace {

constexpr int64_t kBytesThroughBlocks = 8 << 20;

bool is_block_aligned(const std::byte* data, size_t bytes, int64_t offset) {
  return reinterpret_cast<uintptr_t>(data) % kFileBlock == 0 && bytes % kFileBlock == 0 && offset % kFileBlock == 0;
}

[[noreturn]] void refuse_directory(const std::string& directory, int error) {
  if (!is_mistake_in_path(error))
    throw RunError("offload.path", fmt::format("cannot make a file in '{}': {}", directory, std::strerror(error)));
  throw UserError({.place = "offload.path",
                   .got = fmt::format("cannot make a file in '{}': {}", directory, std::strerror(error)),
                   .expected = "a directory on a local disk that this process may write to",
                   .hint = "create it on every host, or name another one"});
}

}  // namespace

void NvmeFile::FreeBlocks::operator()(std::byte* blocks) const {
  std::free(blocks);
}

NvmeFile::NvmeFile(const FileSpace& space)
    : directory_(space.directory),
      bytes_(space.bytes),
      blocks_(static_cast<std::byte*>(std::aligned_alloc(kFileBlock, kBytesThroughBlocks))) {
  BUG_IF(bytes_ % kFileBlock != 0, "a file of {} bytes, which are no whole blocks", bytes_);
  if (!blocks_) throw RunError("memory", "cannot allocate a buffer for the offload file");
  create();
  try {
    reserve();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

NvmeFile::~NvmeFile() {
  ::close(descriptor_);
}

void NvmeFile::create() {
  const std::string path = (std::filesystem::path(directory_) / temporary_name("sextant-offload")).string();
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0) refuse_directory(directory_, errno);
  ::unlink(path.c_str());
  (void)::fcntl(descriptor_, F_SETFL, O_DIRECT);  // some file systems do not have it
}

void NvmeFile::reserve() {
  Interruptions interruptions;
  do
    if (::fallocate(descriptor_, 0, 0, bytes_) == 0) return;
  while (interruptions.may_try_again());
  // A file system that cannot reserve, or not without being interrupted: what is missing then shows when it is written.
  if ((errno == EOPNOTSUPP || errno == EINTR) && ::ftruncate(descriptor_, bytes_) == 0) return;
  const int error = errno;
  if (error != ENOSPC && error != EFBIG && error != EDQUOT) refuse_directory(directory_, error);
  struct statvfs disk {};
  const bool known = ::fstatvfs(descriptor_, &disk) == 0;
  const Bytes free{known ? static_cast<int64_t>(disk.f_bavail * disk.f_frsize) : 0};
  throw DoesNotFit({.place = "offload.path",
                    .got = fmt::format("a rank keeps {} there, and {} {}", human(Bytes{bytes_}), directory_,
                                       known && error != EFBIG ? fmt::format("has {} free", human(free))
                                                               : fmt::format("says: {}", std::strerror(error))),
                    .expected = "room for the files of all ranks of the host",
                    .hint = "free some, name a directory on a larger disk, or share optimizer state among more ranks "
                            "(mesh.zero=1)"});
}

void NvmeFile::move(FileAccess access, std::byte* data, int64_t bytes, int64_t offset) {
  BUG_IF(offset < 0 || offset + bytes > bytes_, "{} bytes at {} of a file of {}", bytes, offset, bytes_);
  std::optional<FileFailure> failure = ring_.move(access, descriptor_, data, bytes, offset);
  if (!failure) return;
  throw RunError(
      fmt::format("offload.path {}", directory_),
      fmt::format("cannot {} byte {} of a rank's file of {}: {}", access == FileAccess::read ? "read" : "write",
                  failure->offset, human(Bytes{bytes_}),
                  failure->error == 0 ? "fewer bytes were moved than asked for" : std::strerror(failure->error)),
      "checkpoints are not touched: see to the disk, or name another directory, and start the run again; it "
      "resumes from the latest checkpoint");
}

NvmeFile::Blocks NvmeFile::blocks_around(int64_t offset, size_t bytes) {
  const int64_t begin = offset / kFileBlock * kFileBlock;
  const int64_t end = std::min(round_up(offset + static_cast<int64_t>(bytes), kFileBlock), begin + kBytesThroughBlocks);
  const int64_t skipped = offset - begin;
  return {begin, end, skipped, std::min(static_cast<int64_t>(bytes), end - begin - skipped)};
}

void NvmeFile::read(std::span<std::byte> to, int64_t offset) {
  std::lock_guard lock(mutex_);
  if (is_block_aligned(to.data(), to.size(), offset))
    return move(FileAccess::read, to.data(), static_cast<int64_t>(to.size()), offset);
  while (!to.empty()) {
    const Blocks b = blocks_around(offset, to.size());
    move(FileAccess::read, blocks_.get(), b.end - b.begin, b.begin);
    std::memcpy(to.data(), blocks_.get() + b.skipped, static_cast<size_t>(b.usable));
    to = to.subspan(static_cast<size_t>(b.usable));
    offset += b.usable;
  }
}

void NvmeFile::write(std::span<const std::byte> from, int64_t offset) {
  std::lock_guard lock(mutex_);
  // The ring takes one kind of address for both ways, and only reads from this one.
  if (is_block_aligned(from.data(), from.size(), offset))
    return move(FileAccess::write, const_cast<std::byte*>(from.data()), static_cast<int64_t>(from.size()), offset);
  while (!from.empty()) {
    const Blocks b = blocks_around(offset, from.size());
    // Blocks at the ends keep what others have in them.
    if (b.usable != b.end - b.begin) move(FileAccess::read, blocks_.get(), b.end - b.begin, b.begin);
    std::memcpy(blocks_.get() + b.skipped, from.data(), static_cast<size_t>(b.usable));
    move(FileAccess::write, blocks_.get(), b.end - b.begin, b.begin);
    from = from.subspan(static_cast<size_t>(b.usable));
    offset += b.usable;
  }
}

}  // namespace sextant
