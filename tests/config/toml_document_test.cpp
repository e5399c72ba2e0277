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

TEST(TomlDocument, WhatTheParserOnlyAsserts) {
  auto complaint = [](std::string_view text) -> std::string {
    try {
      parse_toml(text, "x.toml");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string_view senseless = "not valid TOML: the parser cannot make sense of this line";
  EXPECT_EQ(complaint("[a]\nk = 1\n [!b]\nl = 2\n"), fmt::format("x.toml:3: {}", senseless));
  EXPECT_EQ(complaint("k = 1979-05-27Topt32: 0"), fmt::format("x.toml:1: {}", senseless));
  for (std::string_view text : {"[", "[]", "[[]]", "[ [a]]", "[[[a", "[a.]", "[a..b]", "[=]", "[a]]", "[é]", "k = é",
                                "é = 1", "k = \"\"\"\\é", "k = 64.\"é\"", "k = 1é"})
    EXPECT_NE(complaint(text), "") << text;
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
