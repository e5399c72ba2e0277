// Archives that are well-formed, and archives that lie.
#include "ckpt/zip_archive.h"

#include "scratch.h"
#include "zip_builder.h"

namespace sextant {
namespace {

using Entry = ZipBuilder::Entry;

std::vector<ZipEntry> parse(const std::string& file) {
  return parse_zip("z", std::as_bytes(std::span(file)));
}

std::string complaint(const std::string& file) {
  return message_of<UserError>([&] { parse(file); });
}

TEST(ZipArchive, GivesStoredEntriesInTheOrderOfTheirData) {
  for (auto format : {ZipBuilder::Format::plain, ZipBuilder::Format::zip64}) {
    ZipBuilder zip{{{"a/data.pkl", "hello"}, {"a/data/0", ""}, {"a/data/1", "xyz"}}, format};
    std::string file = zip.build();
    std::vector<ZipEntry> entries = parse(file);
    ASSERT_EQ(entries.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(entries[i].name, zip.entries[i].name);
      EXPECT_TRUE(std::ranges::equal(entries[i].bytes, std::as_bytes(std::span(zip.entries[i].content))));
    }
  }
  EXPECT_TRUE(parse(ZipBuilder{}.build()).empty());
}

TEST(ZipArchive, RefusesWhatIsNotStored) {
  EXPECT_IN("entry \"b\" is compressed (method 8)", complaint(ZipBuilder{{{"b", "x", 8}}}.build()));
  EXPECT_IN("entry \"b\" is encrypted", complaint(ZipBuilder{{{"b", "x", 0, 1}}}.build()));
}

TEST(ZipArchive, RefusesEntriesThatShareBytes) {
  Entry a{"a", std::string(100, 'x')}, b{.name = "a", .content = "", .claimed_size = "100", .header_at = "0"};
  EXPECT_IN("begins inside another", complaint(ZipBuilder{{a, b}}.build()));
  // Quoted overlap: an entry whose data are the headers of the next.
  Entry outer{.name = "o", .content = "", .claimed_size = "40"};
  EXPECT_IN("begins inside another", complaint(ZipBuilder{{outer, {"i", "0123456789"}}}.build()));
}

TEST(ZipArchive, RefusesEntriesOutsideTheFile) {
  for (auto format : {ZipBuilder::Format::plain, ZipBuilder::Format::zip64}) {
    EXPECT_IN("behind the end of the file",
              complaint(ZipBuilder{{{.name = "a", .content = "x", .claimed_size = "4000000000"}}, format}.build()));
    EXPECT_IN("behind the end of the file",
              complaint(ZipBuilder{{{.name = "a", .content = "x", .header_at = "4000000000"}}, format}.build()));
  }
  EXPECT_IN("behind the end of the file",
            complaint(ZipBuilder{{{.name = "a", .content = "x", .claimed_size = "18446744073709551615"}},
                                 ZipBuilder::Format::zip64}
                          .build()));
}

TEST(ZipArchive, RefusesTwoNamesOfOneEntry) {
  EXPECT_IN("has another name before its data",
            complaint(ZipBuilder{{{.name = "data.pkl", .content = "x", .local_name = "data.pk1"}}}.build()));
}

TEST(ZipArchive, EveryCutIsRefused) {
  for (auto format : {ZipBuilder::Format::plain, ZipBuilder::Format::zip64}) {
    std::string whole = ZipBuilder{{{"a", "hello"}, {"b", "there"}}, format}.build();
    for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
  }
}

}  // namespace
}  // namespace sextant
