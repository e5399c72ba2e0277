#include "data/jsonl.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "data/scratch_folder.h"

namespace sextant {
namespace {

using nlohmann::json;

// The line's text by nlohmann::json; nullopt when the line is not an object with a string "text".
std::optional<std::string> text_by_nlohmann(const std::string& line) {
  json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("text") || !parsed["text"].is_string()) return std::nullopt;
  return parsed["text"].get<std::string>();
}

std::optional<std::string> text_by_us(const std::string& line) {
  JsonText text("text");
  try {
    return std::string(text.parse(line, {.file = "f"}));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

TEST(JsonLine, AgreesOnChosenLines) {
  for (std::string value :
       {R"("plain")", R"("")", R"("\"\\\/\b\f\n\r\t")", R"("\u0041\u00e9\u20AC\ud83d\uDE00\u0000")", "\"\x7f\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xf4\x8f\xbf\xbf\"", "\"\xed\x9f\xbf\xee\x80\x80\"",
        // not to be accepted:
        R"("\ud83d")", R"("\ud83d\u0041")", R"("\ude00")", R"("\u00g0")", R"("\x")", R"("\u12)", "\"\x1f\"", "\"\t\"",
        "\"\xc0\xaf\"", "\"\xe0\x80\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"",
        "\"\xe2\x82\"", "\"\x80\"", "\"", "5", "{}", "[]", ""}) {
    std::string line = "{\"text\":" + value + "}";
    EXPECT_EQ(text_by_us(line), text_by_nlohmann(line)) << line;
  }
  for (std::string other :
       {"0", "-0", "12", "-1.5e+10", "1E5", "true", "false", "null", "[]", "{}", "[1,[2,{\"a\":[]}],\"]\"]",
        "{\"text\": \"inner\", \"b\": {}}", " [ 1 , 2 ] ", "\t1\r\n",
        // not to be accepted:
        "01", "-", "1.", ".5", "1e", "+1", "0x1", "tru", "nul", "nulll", "[1,]", "[,1]", "[1 2]", "[}", "{1:2}",
        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "]", "\v1", "\f1", "1,", "[1", "{\"a\":1", "NaN", "'a'", "\xc2\xa0\x31"}) {
    for (const std::string& line : {"{\"text\":\"t\",\"other\":" + other + "}",
                                    "{\"other\":" + other + ",\"text\":\"t\"}", "{\"text\":\"t\"}" + other, other})
      EXPECT_EQ(text_by_us(line), text_by_nlohmann(line)) << line;
  }
  EXPECT_EQ(text_by_us("\xEF\xBB\xBF{\"text\":\"t\"}"), "t");
  EXPECT_EQ(text_by_us(std::string("{\"text\":\"t\"}\0", 13)), std::nullopt);
}

// Lines with a byte or two changed, taken out or put in.
TEST(JsonLine, AgreesOnDamagedLines) {
  const std::string whole =
      "{\"id\": [1, -2.5, {\"a\": null}], \"text\": \"A\\u00e9\\ud83d\\ude00\xe2\x82\xac\\n\", \"b\": {\"c\": [true, "
      "{}]}}";
  const std::string symbols = "{}[]:,\"\\0123456789.-+u dDeEtrfn\xc3\xe2\x82\xf4\x80\x1f\n";
  ASSERT_TRUE(text_by_us(whole));
  Random random(1, "damage");
  uint64_t draws = 0, still_good = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string line = whole;
    for (uint64_t change = 0, changes = 1 + random.below(draws++, 2); change < changes; ++change) {
      size_t at = random.below(draws++, line.size());
      char symbol = symbols[random.below(draws++, symbols.size())];
      switch (random.below(draws++, 3)) {
        case 0:
          line[at] = symbol;
          break;
        case 1:
          line.erase(at, 1);
          break;
        default:
          line.insert(at, 1, symbol);
      }
    }
    auto ours = text_by_us(line);
    still_good += ours.has_value();
    ASSERT_EQ(ours, text_by_nlohmann(line)) << line;
  }
  EXPECT_GT(still_good, 4000u);
  EXPECT_LT(still_good, 36000u);
}

TEST(JsonLine, KeyTwiceIsRefusedThoughNlohmannTakesTheLast) {
  EXPECT_EQ(text_by_us("{\"text\":\"a\",\"text\":\"b\"}"), std::nullopt);
}

}  // namespace
}  // namespace sextant
