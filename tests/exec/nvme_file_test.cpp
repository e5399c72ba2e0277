// The file of the nvme space: any bytes come back as in memory, and what goes wrong with a disk is said.
#include "exec/nvme_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "ir/memory_space.h"
#include "nvme_here.h"

namespace sextant {
namespace {

class NvmeFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto why = why_no_nvme()) GTEST_SKIP() << *why;
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  FileSpace space(int64_t bytes) const { return {bytes, directory_.string()}; }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / fmt::format("sextant-nvme-file-{}", ::getpid());
};

// Pieces of all sizes at all offsets, within a block and over many, against the same done to memory.
TEST_F(NvmeFileTest, HoldsWhatMemoryWould) {
  constexpr int64_t kBytes = 1024 * kFileBlock;
  NvmeFile file(space(kBytes));
  EXPECT_EQ(file.bytes(), kBytes);
  std::vector<std::byte> memory(kBytes), piece, read(kBytes);
  Random random(17, "nvme_file");
  uint64_t drawn = 0;
  auto draw = [&](int64_t below) { return static_cast<int64_t>(random.below(drawn++, static_cast<uint64_t>(below))); };
  for (int round = 0; round < 40; ++round) {
    const int64_t size = 1 + draw(round % 4 == 0 ? 2 << 20 : 10000), at = draw(kBytes - size + 1);
    piece.resize(static_cast<size_t>(size));
    for (size_t i = 0; i < piece.size(); ++i)
      piece[i] = static_cast<std::byte>(i * 7 + (i >> 8) + static_cast<size_t>(at));
    file.write(piece, at);
    std::ranges::copy(piece, memory.begin() + at);
    const int64_t look_size = 1 + draw(300000), look_at = draw(kBytes - look_size + 1);
    std::vector<std::byte> seen(static_cast<size_t>(look_size));
    file.read(seen, look_at);
    ASSERT_TRUE(std::equal(seen.begin(), seen.end(), memory.begin() + look_at)) << round;
  }
  file.read(read, 0);
  EXPECT_EQ(read, memory);
}

TEST_F(NvmeFileTest, LeavesNothingInTheDirectory) {
  NvmeFile file(space(kFileBlock));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(NvmeFileTest, RefusesADirectoryThatIsNone) {
  for (const char* name : {"missing", "file"}) {
    if (std::string_view(name) == "file") write_file_atomically(directory_ / name, "text");
    try {
      NvmeFile file({kFileBlock, (directory_ / name).string()});
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("offload.path"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST_F(NvmeFileTest, RefusesMoreThanTheDiskHas) {
  EXPECT_THROW(NvmeFile(space(int64_t{1} << 50)), DoesNotFit);
}

// The end of the file is where a disk that gives fewer bytes would stop.
TEST_F(NvmeFileTest, SaysWhereADiskStops) {
  NvmeFile file(space(4 * kFileBlock));
  ASSERT_EQ(::ftruncate(file.descriptor(), kFileBlock), 0);
  std::vector<std::byte> bytes(4 * kFileBlock);
  try {
    file.read(bytes, 0);
    ADD_FAILURE() << "bytes behind the end of a file";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot read byte 4096 "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(directory_.string()), std::string::npos) << error.what();
  }
  file.read(std::span(bytes).first(kFileBlock), 0);  // it goes on where it can
}

// A file system that could not reserve the file finds out when it is written.
TEST_F(NvmeFileTest, SaysThatTheDiskIsFull) {
  NvmeFile file(space(kFileBlock));
  const int full = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_GE(full, 0);
  ASSERT_EQ(::dup2(full, file.descriptor()), file.descriptor());
  ::close(full);
  std::vector<std::byte> bytes(kFileBlock);
  try {
    file.write(bytes, 0);
    ADD_FAILURE() << "bytes on a full disk";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot write byte 0 "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos) << error.what();
  }
}

#ifdef __x86_64__
// From now on the kernel refuses this process every io_uring_enter that submits fewer requests than a full ring.
void refuse_small_submits() {
  std::array<sock_filter, 6> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 32, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
  }};
  sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(77);
}

// The first call hands the kernel a full ring, the next one fails: what was handed over is done when that is said.
TEST_F(NvmeFileTest, AKernelThatTakesNoMoreCallsLeavesNothingUnderWay) {
  pid_t child = ::fork();
  if (child == 0) {
    constexpr int64_t kBytes = 48 << 20;
    NvmeFile file(space(kBytes));
    std::vector<std::byte> bytes(kBytes, std::byte{7});
    file.write(bytes, 0);
    std::ranges::fill(bytes, std::byte{0});
    refuse_small_submits();
    try {
      file.read(bytes, 0);
      ::_exit(0);  // every request of the first call was done at once, and so on: nothing was refused
    } catch (const RunError& error) {
      std::vector<std::byte> then = bytes;
      ::usleep(100'000);
      bool said = std::string(error.what()).find("Cannot allocate memory") != std::string::npos;
      ::_exit(!said ? 2 : then != bytes ? 3 : 0);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace sextant
