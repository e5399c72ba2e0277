// CSV as spreadsheets write it, and the places that messages name.
#include "base/csv.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant {
namespace {

std::string complaint(std::string_view text) {
  try {
    parse_csv(text, "runs.csv");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, QuotedFields) {
  CsvTable table = parse_csv("a,b\r\n\"x, y\",\"he said \"\"yes\"\"\"\n\n\"two\nlines\",\n", "runs.csv");
  EXPECT_EQ(table.names, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"x, y", "he said \"yes\""}));
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].fields, (std::vector<std::string>{"two\nlines", ""}));
  EXPECT_EQ(table.rows[1].line, 4);
  EXPECT_EQ(table.column("b"), 1);
  EXPECT_EQ(table.column("c"), -1);
}

TEST(Csv, MessagesNameTheLine) {
  EXPECT_EQ(complaint("a,b\n\"1\n2\",3\n4\n"), "runs.csv:4: 1 fields; expected 2, as the first line has");
  EXPECT_EQ(complaint("a,b\n1,\"2"), "runs.csv:2: a quote that is not closed; expected a closing \"");
  EXPECT_EQ(complaint("a,b\n1,\"2\"x\n"),
            "runs.csv:2: text after a closing quote; expected a comma or the end of the line");
  EXPECT_EQ(complaint("a,a\n"), "runs.csv:1: column 'a' twice; expected each name once");
  EXPECT_EQ(complaint(""), "runs.csv: an empty file; expected a line with the names of the columns");
}

// Such a field went raw to the terminal, and as JSON it ended the program with an internal error.
TEST(Csv, RefusesWhatCannotBeShown) {
  EXPECT_EQ(complaint("a,b\n1,2\n3,x\x1b[31m\n"),
            "runs.csv:3: a control character or a byte that is not UTF-8: 0x1b; expected text in UTF-8");
  EXPECT_EQ(complaint("a\xff,b\n"),
            "runs.csv:1: a control character or a byte that is not UTF-8: 0xff; expected text in UTF-8");
  EXPECT_NE(complaint("a,b\n\"1\r2\",3\n"), "");
  EXPECT_EQ(complaint("a,b\r\n\"1\r\n2\",\t\xc3\xa9\r\n"), "");
}

}  // namespace
}  // namespace sextant
