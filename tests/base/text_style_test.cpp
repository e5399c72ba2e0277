#include "base/text_style.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace sextant {
namespace {

TEST(TextStyle, EscapesOnlyWhereColoursAreOn) {
  EXPECT_EQ(styled("ok", TextStyle::good, Colours::off), "ok");
  EXPECT_EQ(styled("ok", TextStyle::good, Colours::on), "\033[32mok\033[0m");
}

TEST(TextStyle, OnTerminalsUnlessTheEnvironmentSaysNo) {
  int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::isatty(terminal) != 1) GTEST_SKIP() << "there are no pseudo-terminals here";
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(colours_of(terminal), Colours::on);
  ::setenv("NO_COLOR", "", 1);  // empty counts as not set
  EXPECT_EQ(colours_of(terminal), Colours::on);
  ::setenv("NO_COLOR", "0", 1);
  EXPECT_EQ(colours_of(terminal), Colours::off);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(colours_of(terminal), Colours::off);
  ::close(terminal);
  int file = ::open("/dev/null", O_WRONLY);
  ::setenv("TERM", "xterm", 1);
  EXPECT_EQ(colours_of(file), Colours::off);
  ::close(file);
}

}  // namespace
}  // namespace sextant
