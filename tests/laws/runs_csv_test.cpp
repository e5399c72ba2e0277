#include "laws/runs_csv.h"

#include <gtest/gtest.h>

#include "laws/quantity.h"
#include "laws/refused.h"

namespace sextant {
namespace {

TEST(Quantity, IsReadAsPeopleWriteIt) {
  EXPECT_DOUBLE_EQ(parse_quantity("70B", "x"), 70e9);
  EXPECT_DOUBLE_EQ(parse_quantity("1.4T", "x"), 1.4e12);
  EXPECT_DOUBLE_EQ(parse_quantity(" 70.6 b ", "x"), 70.6e9);
  EXPECT_DOUBLE_EQ(parse_quantity("1e24", "x"), 1e24);
  EXPECT_DOUBLE_EQ(parse_quantity("5.76E+23", "x"), 5.76e23);
  EXPECT_DOUBLE_EQ(parse_quantity("2E", "x"), 2e18);
  EXPECT_DOUBLE_EQ(parse_quantity("400M", "x"), parse_quantity("0.4G", "x"));
}

TEST(Quantity, NonsenseIsRefused) {
  for (const char* text : {"", "B", "70X", "70BB", "-1", "0", "nan", "inf", "1e999", "1,000", "0x10", "7 0", "1e308T"})
    expect_refused([&] { parse_quantity(text, "--params"); }, "--params: ");
  expect_refused([] { parse_quantity("70X", "--params"); },
                 "\"70X\" is not a positive number; expected a number such as 70B");
}

TEST(Quantity, IsWrittenAsPeopleReadIt) {
  EXPECT_EQ(human_quantity(70.6e9), "70.6 B");
  EXPECT_EQ(human_quantity(1.4e12), "1.4 T");
  EXPECT_EQ(human_quantity(999.7e9), "1 T");
  EXPECT_EQ(human_quantity(124439808), "124 M");
  EXPECT_EQ(human_quantity(12), "12");
  EXPECT_EQ(human_quantity(21.2e15), "21200 T");
  EXPECT_EQ(human_flops(5.76e23), "5.76e23");
  EXPECT_EQ(human_ratio(1310.4), "1310");
}

TEST(RunsCsv, ReadsNamedColumnsInAnyOrder) {
  std::vector<LossRun> runs =
      runs_from_csv("loss,name,tokens,params\n3.1,\"a, \"\"first\"\" one\",2e9,100M\n2.9,b,4B,1e8\n");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].loss, 3.1);
  EXPECT_EQ(runs[0].tokens, 2e9);
  EXPECT_EQ(runs[0].params, 1e8);
  EXPECT_EQ(runs[1].tokens, 4e9);
}

TEST(RunsCsv, ShortNamesAndSpreadsheetHabits) {
  std::vector<LossRun> runs =
      runs_from_csv("\xEF\xBB\xBF# mine\r\n N , D,\"L\"\r\n\r\n1e8,2e9,3.5\r\n# more\n2e8,2e9,3.4");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].params, 2e8);
}

TEST(RunsCsv, FlopsStandForWhatIsMissing) {
  EXPECT_DOUBLE_EQ(runs_from_csv("params,flops,loss\n1e8,1.2e18,3\n").front().tokens, 2e9);
  EXPECT_DOUBLE_EQ(runs_from_csv("D,C,L\n2e9,1.2e18,3\n").front().params, 1e8);
  EXPECT_DOUBLE_EQ(runs_from_csv("N,D,C,L\n1e8,2e9,oops,3\n").front().tokens, 2e9);  // not needed, not read
}

void expect_bad(const std::string& csv, const std::string& part) {
  expect_refused([&] { runs_from_csv(csv, "mine.csv"); }, part);
}

TEST(RunsCsv, BadTextIsRefusedWithItsPlace) {
  expect_bad("", "mine.csv:1: the file is empty");
  expect_bad("\n# nothing\n", "the file is empty");
  expect_bad("params,tokens\n1,2\n", "mine.csv:1: there is no column named loss");
  expect_bad("params,loss\n", "two of the columns");
  expect_bad("flops,loss\n1e20,3\n", "two of the columns");
  expect_bad("params,N,tokens,loss\n", "two columns are named N");
  expect_bad("params,tokens,loss\n1e8,2e9,3\n1e8,many,3\n",
             "mine.csv:3 column tokens: \"many\" is not a positive number");
  expect_bad("params,tokens,loss\n1e8,-5,3\n", "mine.csv:2 column tokens");
  expect_bad("params,tokens,loss\n1e8,2e9,nan\n", "mine.csv:2 column loss");
  expect_bad("params,tokens,loss\n1e8,2e9,0\n", "mine.csv:2 column loss");
  expect_bad("params,tokens,loss\n1e8,2e9\n", "mine.csv:2 column loss: there is no value");
  expect_bad("params,tokens,loss\n1e8,,3\n", "mine.csv:2 column tokens: there is no value");
  expect_bad("params,tokens,loss\n1e30,2e9,3\n", "too large");
  expect_bad("params,tokens,loss\n0.5,2e9,3\n", "at least one of each");
  expect_bad("params,flops,loss\n1e20,1,3\n", "at least one of each");
  std::string log = "params,tokens,loss\n";
  for (int i = 0; i < 10'001; ++i) log += "1e8,2e9,3\n";
  expect_bad(log, "mine.csv:10002: more than 10000 rows");
  expect_bad("params,tokens,loss\n\"1e8,2e9,3\n", "mine.csv:2: a quoted cell does not end");
}

}  // namespace
}  // namespace sextant
