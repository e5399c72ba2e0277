#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sextant {
namespace {

TEST(Printable, KeepsTextAndWritesControlsAsEscapes) {
  EXPECT_EQ(printable("layers.3 – größer, 漢字 🙂"), "layers.3 – größer, 漢字 🙂");
  EXPECT_EQ(printable("a\x1b[31mred\x07\x7f"), "a\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("a\nb\tc", Newlines::kept), "a\nb\\tc");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\u202etxt");                                                      // right to left from here
  EXPECT_EQ(printable("\xff\xc3(\xed\xa0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");  // no UTF-8
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, JsonSaysTheSameWithoutControls) {
  EXPECT_EQ(escaped_json("{\"a\": \"\xc2\x9b"
                         "31m \x7f größer\"}\n"),
            "{\"a\": \"\\u009b31m \\u007f größer\"}\n");
}

TEST(Printable, Utf8KeepsAllThatIsUtf8) {
  EXPECT_EQ(utf8_text("größer\n\x1b"), "größer\n\x1b");
  EXPECT_EQ(utf8_text("a\xff\xc3("), "a\\xff\\xc3(");
}

TEST(Printable, ShortensLongTextAndSaysHowLongItWas) {
  EXPECT_EQ(printable(std::string(2000, 'a')), std::string(2000, 'a'));
  std::string shown = printable("begin " + std::string(60000, 'x') + " end");
  EXPECT_LT(shown.size(), 2100u);
  EXPECT_TRUE(shown.starts_with("begin xxx"));
  EXPECT_TRUE(shown.ends_with("xxx end"));
  EXPECT_NE(shown.find("(shortened: 60010 bytes)"), std::string::npos);
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string text = printable(std::string(shift, 'a') + [] {
      std::string many;
      for (int i = 0; i < 1000; ++i) many += "漢";
      return many;
    }());
    EXPECT_EQ(text.find("\\x"), std::string::npos) << "a character was cut";
  }
}

TEST(Printable, ErrorsShowOutsideTextSafely) {
  UserError error(
      std::vector<Complaint>{{.place = "a\x1b]0;b\nc", .got = "got \x1b[2J", .expected = "x\x08", .hint = "h\x9b"},
                             {.place = "second", .got = std::string(60000, 'y')}});
  std::string text = error.what();
  EXPECT_TRUE(text.starts_with("a\\x1b]0;b\\nc: got \\x1b[2J; expected x\\x08\n  hint: h\\x9b\nsecond: yyy"))
      << text.substr(0, 200);
  EXPECT_LT(text.size(), 2500u);
  EXPECT_STREQ(RunError("file\x1b", "what\x1b\n  hint: kept", "\x07").what(),
               "file\\x1b: what\\x1b\n  hint: kept\n  hint: \\x07");
}

}  // namespace
}  // namespace sextant
