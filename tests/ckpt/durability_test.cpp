// The order of writes, flushes and renames, as the operating system was asked for them: recorded from a run of this
// very program with the recorder of tests/durability preloaded.
#include <cstdlib>

#include "base/files.h"
#include "ckpt/staged_directory.h"
#include "ckpt/weights_writer.h"
#include "durability/disk_log.h"
#include "scratch.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using DurabilityTest = Scratch;

// The recorded programs: only run by the tests below, each in a process of its own. SEXTANT_PLACE is their directory.
fs::path place() {
  return std::getenv("SEXTANT_PLACE") ? std::getenv("SEXTANT_PLACE") : "";
}

TEST(DurabilitySubject, DISABLED_File) {
  write_file_atomically(place() / "file", "first");
  write_file_atomically(place() / "file", "second");
}

void fill(const fs::path& directory) {
  WeightsWriter writer(directory, plan_weights({{"a", FileDType::f32, {2, 3}}, {"b", FileDType::f32, {4}}}),
                       Share::whole);
  std::vector<float> numbers(6, 1.0f);
  writer.write("a", std::as_bytes(std::span(numbers)));
  writer.write("b", std::as_bytes(std::span(numbers).first(4)));
  writer.finish();
  fs::create_directories(directory / "inner");
  write_text(directory / "inner" / "text", "written by a stream and flushed by nobody");
}

TEST(DurabilitySubject, DISABLED_Directory) {
  StagedDirectory staged(place() / "model", Existing::refuse);
  fill(staged.path());
  staged.commit();
}

TEST(DurabilitySubject, DISABLED_Replaced) {
  for (Replacing replacing : {Replacing::exchange, Replacing::two_renames}) {
    StagedDirectory staged(place() / "model", Existing::replace);
    fill(staged.path());
    staged.commit(replacing);
  }
}

DiskRules recorded(const fs::path& root, const std::string& subject) {
  fs::path log = root.string() + ".log";
  std::string command = fmt::format(
      "{} SEXTANT_PLACE={} {} --gtest_also_run_disabled_tests --gtest_filter=DurabilitySubject.DISABLED_{} >/dev/null "
      "2>&1",
      with_disk_log(log), root.string(), fs::read_symlink("/proc/self/exe").string(), subject);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  DiskRules rules(read_disk_log(log));
  fs::remove(log);
  return rules;
}

void expect_whole(const DiskRules& rules, const fs::path& target, size_t times) {
  size_t found = 0;
  for (size_t at : rules.publications()) found += rules[at].other == target.string() ? 1 : 0;
  EXPECT_EQ(found, times) << target;
  EXPECT_EQ(fmt::format("{}", fmt::join(rules.broken(), "\n")), "");
}

TEST_F(DurabilityTest, AFileIsOnDiskBeforeItHasItsName) {
  if (!kDiskShimWorks) GTEST_SKIP() << "the recorder of system calls does not go beside a sanitizer";
  expect_whole(recorded(root, "File"), root / "file", 2);
}

TEST_F(DurabilityTest, ADirectoryIsOnDiskBeforeItHasItsName) {
  if (!kDiskShimWorks) GTEST_SKIP() << "the recorder of system calls does not go beside a sanitizer";
  expect_whole(recorded(root, "Directory"), root / "model", 1);
}

TEST_F(DurabilityTest, ADirectoryThatIsReplacedIsOnDiskBefore) {
  if (!kDiskShimWorks) GTEST_SKIP() << "the recorder of system calls does not go beside a sanitizer";
  expect_whole(recorded(root, "Replaced"), root / "model", 2);
}

// The rules themselves: each breach is named.
TEST(DiskRules, NameWhatIsMissing) {
  std::vector<DiskEvent> sound{{"create", "/r/x.tmp-1", ""},
                               {"create", "/r/x.tmp-1/staged", ""},
                               {"create", "/r/x.tmp-1/staged/a", ""},
                               {"write", "/r/x.tmp-1/staged/a", ""},
                               {"fsync", "/r/x.tmp-1/staged/a", ""},
                               {"fsync", "/r/x.tmp-1/staged", ""},
                               {"rename", "/r/x.tmp-1/staged", "/r/x"},
                               {"fsync", "/r", ""}};
  EXPECT_TRUE(DiskRules(sound).broken().empty());
  for (size_t left_out : {size_t{4}, size_t{5}, size_t{7}}) {
    std::vector<DiskEvent> events = sound;
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(left_out));
    EXPECT_EQ(DiskRules(events).broken().size(), 1u) << "without event " << left_out;
  }
  std::vector<DiskEvent> late = sound;
  std::swap(late[3], late[4]);  // flushed, then written
  EXPECT_EQ(DiskRules(late).broken().size(), 1u);
  late = sound;
  late.push_back({"write", "/r/x/a", ""});
  EXPECT_EQ(DiskRules(late).broken().size(), 1u);
  late = sound;
  std::swap(late[6], late[7]);  // the parent before the rename
  EXPECT_EQ(DiskRules(late).broken().size(), 1u);
}

}  // namespace
}  // namespace sextant
