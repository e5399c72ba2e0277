#include "describe/choice.h"

#include <gtest/gtest.h>

#include "describe/setting.h"

namespace sextant {
namespace {

enum class Colour : uint8_t { red, green, dark_blue };

struct ColourChoice : Choice<Colour> {
  int wavelength = 0;
};
inline constexpr ColourChoice kColours[] = {
    {{Colour::red, "red", "long waves"}, 700},
    {{Colour::green, "green"}, 530},
    {{Colour::dark_blue, "dark-blue", "short waves"}, 450},
};
constexpr const auto& choices_of(Colour) {
  return kColours;
}

static_assert(HasChoices<Colour>);
static_assert(!HasChoices<RangeEnd>);
static_assert(word_of(Colour::dark_blue) == "dark-blue");
static_assert(value_of_word<Colour>("green") == Colour::green);
static_assert(!value_of_word<Colour>("blue"));
static_assert(choice_of(Colour::green).wavelength == 530);

TEST(Choices, AreSaidInOrder) {
  EXPECT_EQ(words_text(kTextsOf<kColours>), "red, green or dark-blue");
  EXPECT_EQ(words_text(std::span(kTextsOf<kColours>).first(1)), "red");
  EXPECT_EQ(meanings_text(kTextsOf<kColours>), "`red`: long waves; `dark-blue`: short waves");
  EXPECT_EQ(meanings_text(std::span(kTextsOf<kColours>).subspan(1, 1)), "");
}

TEST(Settings, SayWhatTheyTake) {
  EXPECT_EQ(expected_of(Setting{.kind = Kind::flag}), "true or false");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::integer, .range = from_to(1, 1 << 30)}),
            "an integer from 1 to 1073741824");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::integer}), "an integer");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::number, .range = above(0)}), "a number above 0");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::number, .range = above_to(0, 1)}), "a number above 0, at most 1");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::number, .range = from_0_below_1()}), "a number from 0 to below 1");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::numbers, .range = at_least(0.5)}), "a list of numbers of at least 0.5");
  EXPECT_EQ(expected_of(Setting{.choices = kTextsOf<kColours>}), "one of red, green, dark-blue");
  EXPECT_EQ(expected_of(Setting{.kind = Kind::list, .choices = kTextsOf<kColours>}),
            "a list of red, green or dark-blue");
  EXPECT_EQ(expected_of(Setting{}), "a string");
}

TEST(Settings, RangesKnowTheirEnds) {
  EXPECT_TRUE(from_to(0, 1).contains(0) && from_to(0, 1).contains(1));
  EXPECT_FALSE(above(0).contains(0));
  EXPECT_TRUE(above_to(0, 1).contains(1) && !above_to(0, 1).contains(0));
  EXPECT_FALSE(from_0_below_1().contains(1));
  EXPECT_FALSE(at_least(0).contains(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(at_least(0).contains(std::numeric_limits<double>::infinity()));
}

TEST(Settings, AreWrittenAsToml) {
  EXPECT_EQ(toml_text({}), "");
  EXPECT_EQ(toml_text(true), "true");
  EXPECT_EQ(toml_text(0.1), "0.1");
  EXPECT_EQ(toml_text(std::string("a\"b")), R"("a\"b")");
  EXPECT_EQ(toml_text(std::vector<std::string>{"a", "b"}), R"(["a", "b"])");
  EXPECT_EQ(toml_text(std::vector<double>{1, 2.5}), "[1, 2.5]");
}

}  // namespace
}  // namespace sextant
