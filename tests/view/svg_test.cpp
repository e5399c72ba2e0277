#include "view/svg.h"

#include <gtest/gtest.h>

#include "view/page.h"
#include "view/xml_check.h"

namespace sextant {
namespace {

TEST(XmlCheck, FindsWhatIsBroken) {
  EXPECT_EQ(why_not_well_formed("<!DOCTYPE html>\n<a x=\"1\" y=\"&amp;\"><b/>text &lt;</a>\n"), "");
  for (const char* broken : {"<a>", "<a></b>", "<a/><a/>", "<a x=\"1/>", "<a><b></a></b>", "<a> < </a>",
                             "<a>&nbsp;</a>", "<a x=1/>", "<a x=\"1\" x=\"2\"/>", "<a>\x01</a>", "text"})
    EXPECT_NE(why_not_well_formed(broken), "") << broken;
}

TEST(Escaped, NothingHostileIsLeft) {
  EXPECT_EQ(escaped("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(why_not_well_formed("<a x=\"" + escaped(kHostile) + "\">" + escaped(kHostile) + "</a>"), "");
}

TEST(Escaped, KeepsUtf8AndReplacesWhatIsNone) {
  EXPECT_EQ(escaped("µ … 漢 😀"), "µ … 漢 😀");
  const std::string replaced = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("a\xff"), "a" + replaced);
  EXPECT_EQ(escaped("\xc0\xaf"), replaced + replaced);                 // overlong
  EXPECT_EQ(escaped("\xe6\xbc"), replaced + replaced);                 // cut short
  EXPECT_EQ(escaped("\xed\xa0\x80"), replaced + replaced + replaced);  // half of a surrogate pair
  EXPECT_EQ(escaped("\x7f\x00x"), " ");                                // a C string ends there
}

TEST(Shortened, KeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shortened("short", 10), "short");
  EXPECT_EQ(shortened("0123456789", 5), "01…89");
  std::string cut = shortened("ééééééééé", 7);
  EXPECT_EQ(escaped(cut), cut);
}

TEST(TickStep, IsARoundNumberOfTheRightSize) {
  EXPECT_DOUBLE_EQ(tick_step(12), 1);
  EXPECT_DOUBLE_EQ(tick_step(13), 2);
  EXPECT_DOUBLE_EQ(tick_step(0.5), 0.05);
  EXPECT_DOUBLE_EQ(tick_step(100, 5), 20);
}

TEST(SvgGrid, HoldsAllPicturesInOne) {
  std::vector<std::string> pictures;
  for (int i = 0; i < 3; ++i) pictures.push_back(Svg({10, 10}, kHostile).finish());
  std::string grid = svg_grid(pictures, {.title = kHostile, .note = kHostile, .each = {10, 10}});
  EXPECT_EQ(why_not_well_formed(grid), "");
  EXPECT_EQ(count_of(grid, "<svg"), 4u);
}

TEST(Page, IsOneFileThatAsksForNothing) {
  Page page(kHostile);
  page.lead(kHostile);
  page.figures({{kHostile, kHostile, Mood::bad}});
  page.section(kHostile);
  page.paragraph(kHostile);
  page.picture(Svg({10, 10}, "x").finish(), kHostile);
  page.section("two");
  page.pictures({Svg({10, 10}, "y").finish(), Svg({10, 10}, "z").finish()}, "");
  page.table({.heads = {{kHostile}, {"b", true}}, .rows = {{kHostile, "1"}, {"in all", "1"}}, .total_rows = 1});
  page.folded(kHostile, {.heads = {{"a"}}, .rows = {{"1"}}});
  std::string html = std::move(page).finish();
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_EQ(count_of(html, "<script"), 0u);
  EXPECT_EQ(count_of(html, "<link"), 0u);
  EXPECT_EQ(count_of(html, "@import"), 0u);
  EXPECT_EQ(count_of(html, "src="), 0u);
  EXPECT_EQ(count_of(html, "http"), count_of(html, "xmlns=\"http"));
  EXPECT_EQ(count_of(html, "<tr class=\"total\">"), 1u);
  for (const char* part : {"name=\"viewport\"", "@media print", "prefers-color-scheme: dark"})
    EXPECT_GT(count_of(html, part), 0u) << part;
}

}  // namespace
}  // namespace sextant
