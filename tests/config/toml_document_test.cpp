#include "base/toml_document.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant {
namespace {

std::string read(std::string_view toml) {
  std::string out;
  for (const TomlEntry& entry : parse_toml(toml, "x.toml"))
    out += fmt::format("{}:{} {} = {}\n", entry.line, entry.column, entry.key, shown(entry.value));
  return out;
}

TEST(TomlDocument, EntriesComeInTheOrderOfTheFile) {
  EXPECT_EQ(read("z = 1\n"
                 "[b]\n"
                 "y = [1, 2]  # two\n"
                 "  x = 'a\\b'\n"
                 "[a.c]\n"
                 "\"k.l\" = 1.5\n"
                 "t = {p = true, q.r = []}\n"
                 "d = 1979-05-27T07:32:00Z\n"),
            "1:1 z = 1\n"
            "2:2 b = a table\n"
            "3:1 b.y = a list of 2\n"
            "4:3 b.x = \"a\\\\b\"\n"
            "5:2 a = a table\n"
            "5:4 a.c = a table\n"
            "6:1 a.c.\"k.l\" = 1.5\n"
            "7:1 a.c.t = a table\n"
            "7:6 a.c.t.p = true\n"
            "7:16 a.c.t.q = a table\n"
            "7:18 a.c.t.q.r = an empty list\n"
            "8:1 a.c.d = the date 1979-05-27T07:32:00Z\n");
  EXPECT_EQ(read(""), "");
}

TEST(TomlDocument, QuotedTextReadsTheSame) {
  for (std::string text : {"", "plain", "a\"b\\c", "line\nbreak\ttab", "\x01\x7f", "naïve ✓"}) {
    std::vector<TomlEntry> entries = parse_toml("k = " + toml_quoted(text), "x.toml");
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(std::get<std::string>(entries[0].value.is), text);
  }
}

TEST(TomlDocument, LongTextIsNotShown) {
  EXPECT_EQ(shown({std::string(81, 'x')}), "a string of 81 bytes");
  EXPECT_EQ(shown({std::string(3, 'x')}), "\"xxx\"");
}

// toml++ itself does not survive these.
TEST(TomlGuard, RefusesWhatTheParserDoesNotSurvive) {
  auto complaint = [](std::string_view text) -> std::string {
    try {
      parse_toml(text, "x.toml");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string_view odd_header = "not valid TOML: a table header that does not begin with a name";
  EXPECT_EQ(complaint("[a]\nk = 1\n [!b]\n"), fmt::format("x.toml:3:2: {}", odd_header));
  EXPECT_EQ(complaint("[[ .b]]\n"), fmt::format("x.toml:1:1: {}", odd_header));
  EXPECT_EQ(complaint("[\na]\n"), fmt::format("x.toml:1:1: {}", odd_header));
  EXPECT_EQ(complaint("k = 1\n\"é\" = 2\nl = é\n"),
            "x.toml:3:5: not valid TOML: a letter outside quotes that is not ASCII");
  EXPECT_EQ(complaint("\"é\" = é"), "x.toml:1:7: not valid TOML: a letter outside quotes that is not ASCII");
  EXPECT_EQ(complaint(std::string_view("k = 1\0", 6)), "x.toml:1:6: not valid TOML: a control character");
  EXPECT_EQ(complaint("k = 10'''é'''"), "x.toml:1:7: not valid TOML: a quote inside a word");
  for (std::string_view text : {"[", "[]", "[[]]", "[ [a]]", "[a.]", "[a..b]", "[=]", "[\xc3\xa9]", "[a]]", "k = \"é"})
    EXPECT_NE(complaint(text), "") << text;
}

TEST(TomlGuard, LeavesValidTextsAlone) {
  for (std::string_view text :
       {"\xef\xbb\xbf[a]\n", "\xef\xbb\xbf\"a\" = 1", "# é [!x] \"\nk = 1", "k = 'é\\' # é", "k = \"é\\\"é\"",
        "[ \"é\" ]\r\n", "k = \"\"\"\n[!x]\né\\\"\"\"\"\"\"\nl = 1", "k = '''\né\\'''\n[b]",
        "k = [\n[1],\n[{a=1}],\n]\n[b]", "k = [\"\", '']\n[b]", "k = { a = [\n1 ] }"})
    EXPECT_NO_THROW(parse_toml(text, "x.toml")) << text;
}

TEST(TomlDocument, NestingHasBounds) {
  std::string dots(1000, '.');
  EXPECT_NO_THROW(parse_toml("# " + dots + "\nk = 1", "x.toml"));
  EXPECT_THROW(parse_toml("k = " + std::string(100000, '[') + std::string(100000, ']'), "x.toml"), UserError);
  std::string parts = "a";
  for (int i = 1; i < 64; ++i) parts += ".a";
  EXPECT_NO_THROW(parse_toml(parts + " = 1", "x.toml"));
  EXPECT_THROW(parse_toml("[" + parts + ".a]", "x.toml"), UserError);
}

}  // namespace
}  // namespace sextant
