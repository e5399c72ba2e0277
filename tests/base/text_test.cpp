// Sizes, counts and durations for people; strings for TOML files; files of any size, and of none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/toml_document.h"
#include "base/units.h"

namespace sextant {
namespace {

TEST(Units, Sizes) {
  EXPECT_EQ(human(Bytes{0}), "0 B");
  EXPECT_EQ(human(Bytes{1023}), "1023 B");
  EXPECT_EQ(human(Bytes{1024}), "1.00 KiB");
  EXPECT_EQ(human(Bytes{-3 * 1024 * 1024}), "-3.00 MiB");
  EXPECT_EQ(human(Bytes{int64_t{5} << 40}), "5.00 TiB");
}

TEST(Units, Counts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(-1234567), "-1,234,567");
}

TEST(Units, Durations) {
  EXPECT_EQ(human_duration(0.0123), "12 ms");
  EXPECT_EQ(human_duration(0.9996), "1.0 s");
  EXPECT_EQ(human_duration(59.94), "59.9 s");
  EXPECT_EQ(human_duration(61), "1 m 01 s");
  EXPECT_EQ(human_duration(3599), "59 m 59 s");
  EXPECT_EQ(human_duration(3600), "1 h 00 m");
  EXPECT_EQ(human_duration(2 * 3600 + 5 * 60), "2 h 05 m");
}

TEST(TomlQuoted, EscapesWhatTomlDoes) {
  EXPECT_EQ(toml_quoted("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
  EXPECT_EQ(toml_quoted("\n\t\x01\x7f~é"), "\"\\n\\t\\u0001\\u007F~é\"");
}

TEST(Files, AreReadWholeAndReplacedWhole) {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("sextant-base-" + std::to_string(::getpid()));
  std::string large(3 * 4096 + 17, 'x');
  for (const std::string& text : {std::string("short"), large, std::string()}) {
    write_file_atomically(path, text);
    EXPECT_EQ(read_file(path), text);
    EXPECT_EQ(MappedFile(path).bytes().size(), text.size());
  }
  std::filesystem::remove(path);
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // says that it has no size
}

}  // namespace
}  // namespace sextant
