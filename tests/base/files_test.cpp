#include "base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/error.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class Mapped : public testing::Test {
 protected:
  Mapped() { std::ofstream(path_, std::ios::binary) << std::string(1 << 20, 'x'); }
  ~Mapped() override { fs::remove(path_); }

  const fs::path path_ = fs::temp_directory_path() / ("sextant-mapped-" + std::to_string(::getpid()) + ".bin");
};

using MappedDeath = Mapped;

TEST_F(MappedDeath, CutShortWhileInUseEndsWithAMessageAndExitCode3) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto read_what_is_gone = [&] {
    MappedFile first(path_), moved(std::move(first));
    fs::resize_file(path_, 4096);
    std::thread reader([&] { std::_Exit(std::to_integer<int>(moved.bytes()[1 << 19])); });
    reader.join();
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(3), "sextant-mapped-.*cut short.*had 1048576 bytes");
}

TEST_F(MappedDeath, FaultsElsewhereAreNotOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto raise_it = [&] {
    { MappedFile gone(path_); }
    MappedFile here(path_);
    ::raise(SIGBUS);
    std::_Exit(0);
  };
  EXPECT_EXIT(
      raise_it(),
      [](int status) { return !(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)); }, "");
}

TEST_F(Mapped, SizeWatchNoticesWhatIsGone) {
  SizeWatch watch(path_);
  watch.check();
  std::ofstream(path_, std::ios::app) << "more";
  watch.check();
  fs::resize_file(path_, (1 << 20) - 1);
  EXPECT_THROW(watch.check(), RunError);
  SizeWatch moved = SizeWatch(path_);
  moved.check();
}

}  // namespace
}  // namespace sextant
